"""Progress of runs in other processes: a worker reports it as lines of JSON, and the first process shows it."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

import torch
from torch import Tensor

from labelkin.runs._engines.attempt import Job
from labelkin.training import Progress, Silent

EVERY = 0.5  # seconds between two reports of a step, which wait for the device


class Reporter(Silent):
    """Report the progress of a run.

    Args:
        report: Called with each report, a value for JSON.
        steps: The number of steps in an epoch.
    """

    def __init__(self, report: Callable[[dict[str, Any]], None], steps: int) -> None:
        self.report, self.reported = report, monotonic()
        report({"steps": steps})

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        if monotonic() - self.reported >= EVERY:
            self.reported = monotonic()
            self.report({"step": [epoch, step, float(loss)]})

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        self.report({"epoch": [epoch, dict(metrics)]})

    def note(self, text: str) -> None:
        self.report({"note": text})


class Shown:
    """Show what a worker reports of its current job.

    Args:
        progress: Called with a run's title, epochs and steps per epoch; returns the object that shows them.
    """

    def __init__(self, progress: Callable[[str, int, int], Progress]) -> None:
        self.progress = progress
        self.display: Progress | None = None

    def take(self, job: Job, report: Mapping[str, Any]) -> None:
        """Show a report of a job."""
        if "steps" in report:
            self.end()
            self.display = self.progress(job.title, job.spec.settings.epochs, report["steps"]).__enter__()
        elif self.display is not None and "step" in report:
            epoch, step, loss = report["step"]
            self.display.step(epoch, step, torch.tensor(loss))
        elif self.display is not None and "epoch" in report:
            self.display.epoch(*report["epoch"])
        elif self.display is not None and "note" in report:
            self.display.note(report["note"])

    def end(self) -> None:
        """Remove the display of a job that ended or lost its process."""
        if self.display is not None:
            self.display.__exit__(None, None, None)
        self.display = None
