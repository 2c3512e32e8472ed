"""CUDA MPS: a daemon of its own, stopped in every case. A program that records its calls stands in for NVIDIA's."""

import os
import stat
import sys
from pathlib import Path

import pytest

from labelkin import InputError
from labelkin.comparison import Plan, execute
from labelkin.runs import cuda_mps
from labelkin.runs._engines import mps, processes
from support.commands import call

RECORDS = f"""#!{sys.executable}
import os, sys
commands = "" if "-d" in sys.argv else sys.stdin.read().strip()
pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
with open(os.environ["FAKE_MPS_CALLS"], "a") as file:
    print(" ".join(sys.argv[1:]) or commands, pipe, os.environ["CUDA_MPS_LOG_DIRECTORY"], os.path.isdir(pipe), file=file)
if os.environ.get("FAKE_MPS_FAILS", "never") in (commands or "-d"):
    print("the driver says no", file=sys.stderr)
    sys.exit(1)
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The calls of a control program on the PATH, one per line, on a machine with a GPU."""
    program = tmp_path / "bin" / mps.CONTROL
    program.parent.mkdir()
    program.write_text(RECORDS)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_MPS_CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr(mps, "_has_gpu", lambda: True)
    return tmp_path / "calls"


def test_a_daemon_is_started_and_stopped_with_pipes_of_its_own(calls: Path):
    with cuda_mps() as variables:
        folder = Path(variables["CUDA_MPS_PIPE_DIRECTORY"]).parent
        assert folder.name.startswith("labelkin-mps-")
        assert calls.read_text().split()[0] == "-d"
    expected = [variables["CUDA_MPS_PIPE_DIRECTORY"], variables["CUDA_MPS_LOG_DIRECTORY"], "True"]
    assert [line.split() for line in calls.read_text().splitlines()] == [["-d", *expected], ["quit", *expected]]
    assert not folder.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_daemon_is_stopped_after_errors(calls: Path, error: type[BaseException]):
    with pytest.raises(error), cuda_mps():
        raise error
    assert [line.split()[0] for line in calls.read_text().splitlines()] == ["-d", "quit"]


def test_a_daemon_that_does_not_obey_is_ended_by_its_own_number(calls: Path, monkeypatch: pytest.MonkeyPatch):
    ended = []
    monkeypatch.setenv("FAKE_MPS_FAILS", "quit")
    monkeypatch.setattr(os, "kill", lambda number, with_signal: ended.append(number))
    with cuda_mps() as variables:
        (Path(variables["CUDA_MPS_PIPE_DIRECTORY"]) / f"{mps.CONTROL}.pid").write_text("4242\n")
    assert ended == [4242]
    with cuda_mps():
        pass  # without a number nothing is ended
    assert ended == [4242]


@pytest.mark.long
def test_bad_input_is_one_sentence(calls: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    plan = Plan.from_dict({"training": {"epochs": 1}})
    with pytest.raises(InputError, match=r"--mps: is for several processes .*; add --jobs N"):
        execute(plan, tmp_path / "runs", mps=True)
    monkeypatch.setenv("FAKE_MPS_FAILS", "-d")
    with (
        pytest.raises(InputError, match=r"--mps: .* cannot be started \(the driver says no\); leave --mps out"),
        cuda_mps(),
    ):
        pass
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(InputError, match=r"--mps: there is no nvidia-cuda-mps-control on the PATH"), cuda_mps():
        pass
    monkeypatch.setattr(mps, "_has_gpu", lambda: False)
    result = call("compare", "digits", "--jobs", 2, "--mps", "--subset", 0.1, "--out", tmp_path / "runs")
    assert result.exit_code == 2
    assert "--mps: expected an NVIDIA GPU, and torch finds none; leave --mps out." in result.stderr


WORKER = f"""
import json, os, pathlib, sys
for line in sys.stdin:
    job = json.loads(line)
    seen = pathlib.Path(os.environ["FAKE_WORKER_SEEN"])
    times = len(seen.read_text().splitlines()) if seen.exists() else 0
    with seen.open("a") as file:
        print(os.environ["CUDA_MPS_PIPE_DIRECTORY"], file=file)
    if times < int(os.environ["FAKE_WORKER_CRASHES"]):
        os._exit({processes.CRASHED})
    print(json.dumps({{"kind": "failed", "message": "reached the end"}}), flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize(("crashes", "attempts", "message"), [(1, 2, "reached the end"), (9, 2, "the GPU failed")])
def test_a_run_whose_gpu_failed_is_tried_once_more(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crashes: int, attempts: int, message: str
):
    """The processes get the daemon's variables, and end before it."""
    seen = tmp_path / "seen"
    monkeypatch.setenv("FAKE_WORKER_SEEN", str(seen))
    monkeypatch.setenv("FAKE_WORKER_CRASHES", str(crashes))
    monkeypatch.setattr(processes, "COMMAND", [sys.executable, "-c", WORKER])
    plan = Plan.from_dict({"objectives": ["one-hot"], "data_options": {"subset": 0.1}, "training": {"epochs": 1}})
    outcome = execute(plan, tmp_path / "runs", jobs=2, mps=True)
    assert outcome.retries == 1
    assert message in outcome.failed[0][1]
    assert len(seen.read_text().splitlines()) == attempts
    assert "labelkin-mps-" in seen.read_text()
    assert [line.split()[0] for line in calls.read_text().splitlines()] == ["-d", "quit"]


def test_only_errors_of_cuda_are_crashes(tmp_path: Path):
    from labelkin.runs import Event, Job, RunSpec
    from labelkin.runs._engines.attempt import is_gpu_crash

    job = Job("one-hot", RunSpec(), tmp_path)
    assert is_gpu_crash(Event(job, "failed", "CUDA error: an illegal memory access was encountered (see ...)"))
    assert not is_gpu_crash(Event(job, "failed", "CUDA out of memory. Tried to allocate 2 GiB"))
    assert not is_gpu_crash(Event(job, "refused", "CUDA error: no"))
