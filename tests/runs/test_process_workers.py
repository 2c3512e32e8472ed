"""Processes that train runs and die at awkward moments: while they wait, or in the middle of a line."""

import sys
from pathlib import Path

import pytest

from labelkin.runs import RunSpec
from labelkin.runs._engines import processes
from labelkin.runs._engines.attempt import Job

# A worker that answers a job named "slow" only after the file "go" is there, and dies as its first argument says.
WORKER = """
import json, os, sys, time
how, go = sys.argv[1:]
for line in sys.stdin:
    title = json.loads(line)["title"]
    while title == "slow" and not os.path.exists(go):
        time.sleep(0.01)
    if how == "half a line" and title == "quick" and not os.path.exists(go):
        open(go, "w").close()
        os.write(1, b'{"kind": "fin')
        os._exit(9)
    print(json.dumps({"kind": "finished", "message": ""}), flush=True)
    if how == "waiting" and title == "quick":
        sys.stdout.close()
        open(go, "w").close()
        os._exit(9)
"""


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("waiting", [("quick", "finished"), ("slow", "finished")]),
        ("half a line", [("quick", "retried"), ("quick", "finished"), ("slow", "finished")]),
    ],
)
def test_a_worker_that_dies_stops_no_other_run(
    how: str, expected: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(processes, "COMMAND", [sys.executable, "-c", WORKER, how, str(tmp_path / "go")])
    jobs = [Job(title, RunSpec(data="digits", objective="one-hot"), tmp_path / title) for title in ("slow", "quick")]
    events = list(processes.run_in_processes(iter(jobs), count=2))
    assert sorted((event.job.title, event.kind) for event in events) == sorted(expected)
