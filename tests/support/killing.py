"""Kills training at chosen moments, resumes it, and compares what is left with a run that was never killed.

A script, so that one process pays for the imports: each run is a forked child. Prints a line a mismatch; exits 1 on any.

    python tests/support/killing.py OBJECTIVE FOLDER
"""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from labelkin import _files
from labelkin.runs import DataWorkspace, RunSpec
from labelkin.runs import train_run as train
from labelkin.training import Settings
from labelkin.training._fabric import make_fabric
from labelkin.training._progress import Silent

RANDOM_KILLS = 10


def spec_for(objective: str) -> RunSpec:
    settings = Settings(epochs=2, batch_size=64, augment=("shift", "rotation:10"), lr=2e-3, schedule="cosine")
    options = {"retrospection": {"every": 1}, "adaptive-labels": {"momentum": 0.5, "repel": 1.0}}.get(objective, {})
    return RunSpec(objective=objective, settings=settings, options=options, data_options={"subset": 0.2})


def child(run: Any) -> int:
    """The exit status of `run` in a forked process; negative where a signal ended it."""
    pid = os.fork()
    if not pid:
        try:
            run()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class CountedWrites:
    """Counts the moments at which a file is written or renamed, and dies at one of them."""

    def __init__(self, fatal: int | None) -> None:
        self.count, self.fatal = 0, fatal

    def moment(self) -> None:
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def install(self) -> None:
        replace, fsync = os.replace, os.fsync

        def dying_fsync(handle: int) -> None:
            if self.count == self.fatal:
                os.ftruncate(handle, os.fstat(handle).st_size // 2)  # only part of the content reached the disk
            self.moment()
            fsync(handle)

        def dying_replace(source: str, target: Any) -> None:
            replace(source, target)
            self.moment()

        _files.os = _Patched(os, fsync=dying_fsync, replace=dying_replace)  # type: ignore[attr-defined]


class _Patched:
    def __init__(self, module: Any, **replaced: Any) -> None:
        self._module, self._replaced = module, replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name) or getattr(self._module, name)


def contents(folder: Path) -> dict[str, bytes]:
    """Everything that must not depend on whether the run was killed."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name not in ("timing.json", "state.json")}


def main() -> int:
    objective, base = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    spec = spec_for(objective)
    bench = DataWorkspace(spec)
    bench.context.without_data()
    make_fabric(spec.settings)  # so that the children inherit the data and the imports

    def run(folder: Path, fatal: int | None = None, slow: float = 0.0) -> None:
        writes = CountedWrites(fatal)
        writes.install()
        train(spec, folder, resume=True, workspace=bench, progress=lambda steps: Slow(slow))
        (folder.parent / f"{folder.name}.count").write_text(str(writes.count))

    whole = base / "whole"
    assert child(lambda: run(whole)) == 0
    expected, moments = contents(whole), int((base / "whole.count").read_text())
    wrong = 0

    def finish_and_compare(folder: Path, label: str) -> None:
        nonlocal wrong
        status = child(lambda: run(folder))
        left = contents(folder)
        different = sorted(n for n in expected.keys() | left.keys() if expected.get(n) != left.get(n))
        if status or different:
            wrong += 1
            print(f"{objective}: {label}: exit {status}, differs: {', '.join(different) or 'nothing'}")

    for moment in range(moments):
        folder = base / f"moment-{moment}"
        assert child(lambda m=moment, f=folder: run(f, m)) == -signal.SIGKILL
        finish_and_compare(folder, f"killed at moment {moment} of {moments}")
    generator = random.Random(0)
    for kill in range(RANDOM_KILLS):
        folder = base / f"random-{kill}"
        pid = os.fork()
        if not pid:
            run(folder, slow=0.01)
            os._exit(0)
        time.sleep(generator.uniform(0.0, 0.6))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        finish_and_compare(folder, f"killed at a random time ({kill})")
    print(f"{objective}: {moments} moments and {RANDOM_KILLS} random times, {wrong} wrong")
    return 1 if wrong else 0


class Slow(Silent):
    """Stretches the steps, so that a kill at a random time falls among them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def step(self, epoch: int, step: int, loss: torch.Tensor) -> None:
        time.sleep(self.seconds)


if __name__ == "__main__":
    sys.exit(main())
