"""Several runs at once: processes and Ray. Killed in mid-epoch and begun again, nothing is lost, repeated or different."""

import os
import signal
import time
from pathlib import Path

import pytest

from labelkin import OBJECTIVES
from labelkin.comparison import Plan, execute
from labelkin.runs._engines import processes
from support.commands import call, start
from support.requires import skip_unless

# Two epochs are enough here, but too few for Retrospection, which says so.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Retrospection")]

TIMES = ("timing.json", "state.json")  # they hold seconds
COMMAND = (
    "compare",
    "--objectives",
    "all",
    "--seeds",
    "0,1,2,3,4",
    "--epochs",
    2,
    "--batch-size",
    128,
    "--lr",
    "0.005",
    "--subset",
    0.3,
)


def contents(store: Path) -> dict[str, bytes]:
    """All files but those with times, by place."""
    files = [p for p in store.rglob("*") if p.is_file() and p.name not in TIMES and not p.name.startswith(".")]
    return {str(p.relative_to(store)): p.read_bytes() for p in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All objectives, five seeds, one after the other and never disturbed."""
    out = tmp_path_factory.mktemp("whole")
    assert call(*COMMAND, "--out", out).exit_code == 0
    return out


def wait_for(condition, process, seconds=600):
    limit = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)


def finished(store: Path) -> set[str]:
    return {path.parent.name for path in store.glob("*/final.json")}


def in_flight(store: Path) -> bool:
    """Whether a run is between its first epoch and its end."""
    begun = {path.parent.name for path in store.glob("*/state.json")}
    return bool(begun - finished(store))


FEW = ("--objectives", "one-hot,label-embedding")


@pytest.mark.parametrize(("killing", "objectives"), [("all at once", ()), ("the first process alone", FEW)])
def test_a_comparison_that_is_killed_goes_on_with_what_it_has(whole: Path, tmp_path: Path, killing: str, objectives):
    out = tmp_path / "runs"
    runs = 5 * (2 if objectives else len(OBJECTIVES))
    command = (*COMMAND, *objectives, "--jobs", 2, "--out", out)
    process = start(*command, start_new_session=True)
    wait_for(lambda: len(finished(out)) >= 3 and in_flight(out), process)
    if killing == "all at once":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()  # its workers end by themselves
    process.communicate()
    done = {run: (out / run / "final.json").stat().st_mtime_ns for run in finished(out)}
    assert 3 <= len(done) < runs
    again = start(*command)
    _, told = again.communicate(timeout=1200)
    assert again.returncode == 0, told
    # What was finished was not touched; a worker that outlived its parent for a moment may have finished one more.
    assert {run: (out / run / "final.json").stat().st_mtime_ns for run in done} == done
    trained = sum(line.startswith("[") for line in told.splitlines())
    assert trained <= runs - len(done)
    assert len(finished(out)) == runs
    ours, theirs = contents(out), contents(whole)
    assert ours == {name: theirs[name] for name in ours}
    assert (len(ours) == len(theirs)) == (not objectives)


def test_a_worker_that_dies_is_replaced_and_its_run_gone_on_with(whole: Path, tmp_path: Path, monkeypatch):
    started: list[processes.Worker] = []

    class Counted(processes.Worker):
        def __init__(self, *given) -> None:
            super().__init__(*given)
            started.append(self)

    monkeypatch.setattr(processes, "Worker", Counted)
    said: list[str] = []

    def listen(line: str) -> None:
        said.append(line)
        if line.startswith("[2/"):
            victim = next(worker for worker in started if worker.process.poll() is None)
            victim.process.kill()

    settings = {"epochs": 2, "batch_size": 128, "lr": 5e-3}
    plan = Plan.from_dict(
        {
            "objectives": ["one-hot", "label-embedding"],
            "seeds": [0, 1, 2],
            "training": settings,
            "data_options": {"subset": 0.3},
        }
    )
    outcome = execute(plan, tmp_path, jobs=2, say=listen)
    assert (len(outcome.finished), outcome.failed) == (6, [])
    assert outcome.retries == 1
    assert any("its process ended with -9; resuming it" in line for line in said)
    ours, theirs = contents(tmp_path), contents(whole)
    assert ours == {name: theirs[name] for name in ours}


def test_a_run_that_keeps_dying_fails_alone(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # Every worker that is handed the label-smoothing run dies, as one does that is out of memory.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'labelkin.runs._engines.worker' in ' '.join(sys.orig_argv):\n"
        "    from labelkin.objectives import OBJECTIVES\n"
        "    OBJECTIVES['label-smoothing'].compute = lambda *given: os._exit(9)\n"
    )
    plan = Plan.from_dict({"objectives": ["label-smoothing", "one-hot"], "training": {"epochs": 1, "batch_size": 256}})
    outcome = execute(plan, tmp_path / "runs", jobs=2)
    assert [run.label for run in outcome.finished] == ["one-hot"]
    ((failed, why),) = outcome.failed
    assert failed.label == "label-smoothing"
    assert "ended with 9, 4 times; is there enough memory?" in why
    assert outcome.retries == 3


def test_ctrl_c_saves_every_run_in_hand(tmp_path: Path):
    out = tmp_path / "runs"
    command = ("compare", "--objectives", "one-hot,label-smoothing", "--epochs", 60, "--batch-size", 16, "--jobs", 2)
    process = start(*command, "--out", out, start_new_session=True)
    wait_for(lambda: len(list(out.glob("*/state.json"))) == 2, process)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=1200)
    assert process.returncode == 130, told
    assert "Resume with: labelkin compare" in told
    assert "Traceback" not in told
    assert not finished(out)


# Ray


@pytest.fixture
def ray():
    try:
        import ray
    except ImportError:
        skip_unless(False, "ray", "ray")
    yield ray
    ray.shutdown()


def test_ray_makes_the_same_files_when_a_worker_is_killed(whole: Path, tmp_path: Path, ray):
    psutil = pytest.importorskip("psutil")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    killed: list[int] = []

    def training() -> list[int]:
        """The workers that train right now."""
        mine = psutil.Process().children(recursive=True)
        return [p.pid for p in mine if "_train_on_node" in " ".join(p.cmdline()) and p.status() != "zombie"]

    def listen(line: str) -> None:
        if line.startswith("[2/") and not killed:
            limit = time.monotonic() + 300
            while not (found := training()) and time.monotonic() < limit:
                time.sleep(0.01)
            os.kill(found[0], signal.SIGKILL)
            killed.append(found[0])

    plan = Plan.from_dict(
        {
            "objectives": "all",
            "seeds": [0],
            "training": {"epochs": 2, "batch_size": 128, "lr": 5e-3},
            "data_options": {"subset": 0.3},
        }
    )
    outcome = execute(plan, tmp_path / "runs", engine="ray", jobs=2, say=listen)
    assert killed
    assert (len(outcome.finished), outcome.failed) == (len(OBJECTIVES), [])
    assert outcome.retries >= 1
    ours, theirs = contents(tmp_path / "runs"), contents(whole)
    assert ours == {name: theirs[name] for name in ours}
    assert len({Path(name).parts[0] for name in ours}) == len(OBJECTIVES)


def test_a_ray_that_is_not_there_is_said(ray, tmp_path: Path):
    told = start(
        *("compare", "--objectives", "one-hot", "--epochs", 1, "--engine", "ray", "--address", "127.0.0.1:1"),
        *("--out", tmp_path),
        env={"RAY_gcs_server_request_timeout_seconds": "1", "RAY_NUM_REDIS_GET_RETRIES": "1"},
    )
    _, errors = told.communicate(timeout=600)
    assert told.returncode == 2, errors
    assert "--address: there is no Ray at 127.0.0.1:1" in errors
    assert "Traceback" not in errors


def test_an_interrupt_of_the_parent_alone_reaches_the_workers(tmp_path: Path):
    """`kill -INT` on the parent, which the shell does not pass on to the workers as it does Ctrl-C."""
    command = ("compare", "--objectives", "one-hot,label-smoothing", "--epochs", 200, "--batch-size", 32, "--jobs", 2)
    process = start(*command, "--out", tmp_path, start_new_session=True)
    wait_for(lambda: in_flight(tmp_path), process)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=1200)
    assert process.returncode == 130
    assert "the current step is saved. Resume with" in errors
    assert "Traceback" not in errors
    assert not finished(tmp_path)


@pytest.mark.parametrize("seconds", [0.5, 1.5])
def test_ctrl_c_while_workers_start_prints_no_traceback(tmp_path: Path, seconds: float):
    command = ("compare", "--objectives", "one-hot,label-smoothing", "--epochs", 200, "--jobs", 2, "--out", tmp_path)
    process = start(*command, start_new_session=True)
    began = time.monotonic()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text().strip() and time.monotonic() - began < 600:
        time.sleep(0.02)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_notes_of_workers_are_notes(tmp_path: Path):
    command = ("compare", "--objectives", "retrospection,one-hot", "--epochs", 1, "--jobs", 2, "--out", tmp_path)
    told = start(*command)
    _, errors = told.communicate(timeout=600)
    assert told.returncode == 0
    assert "Note: Retrospection: 1 epoch cannot learn from earlier outputs" in errors
    assert "UserWarning" not in errors
