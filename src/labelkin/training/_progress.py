"""Progress output while training: a bar on a terminal, one line for each epoch elsewhere, or nothing."""

from collections.abc import Mapping
from time import monotonic
from typing import Any, ClassVar, Protocol, Self

from torch import Tensor

from labelkin._extras import MissingExtra, require

REDRAW = 0.1  # seconds between two updates of the bar


class Progress(Protocol):
    """The interface through which `Trainer` reports its progress; a context manager around the whole run."""

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        """Report a finished step.

        Args:
            epoch: The current epoch, counted from 0.
            step: The number of finished steps in it.
            loss: The step's loss, on the device; reading it makes the host wait for the device.
        """
        ...

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        """Report a finished epoch, counted from 0, and its metrics."""
        ...

    def note(self, text: str) -> None:
        """Report something a user may want to know about how the run is computed."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


class Silent:
    """Show nothing; a base class for other displays."""

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        pass

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Lines(Silent):
    """Print one line for each epoch, for logs and pipes.

    Args:
        title: The name of the run.
        epochs: The number of epochs in the run.
    """

    def __init__(self, title: str, epochs: int) -> None:
        self.title, self.epochs, self.begun = title, epochs, monotonic()

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        print(
            f"{self.title}  epoch {epoch + 1}/{self.epochs}  {metrics_text(metrics)}  {monotonic() - self.begun:.1f} s",
            flush=True,
        )

    def note(self, text: str) -> None:
        print(f"{self.title}  {text}", flush=True)


class Bars(Silent):
    """Show a progress bar with epoch, steps per second, time left, loss and accuracy.

    The bars of runs that train at once are shown together, since a terminal has room for one live display.

    Args:
        title: The name of the run.
        epochs: The number of epochs in the run.
        steps: The number of steps in an epoch.
    """

    display: ClassVar[Any] = None  # of all bars that are shown now

    def __init__(self, title: str, epochs: int, steps: int) -> None:
        rich = require("rich.progress", extra="cli", use="a progress bar")
        self.epochs, self.steps = epochs, steps
        self.bar: Any = Bars.display or rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(bar_width=24),
            rich.TextColumn("{task.fields[rate]}"),
            rich.TimeRemainingColumn(),
            rich.TextColumn("{task.fields[now]}"),
            transient=True,
        )
        self.title, self.measured = title, ""
        self.begun, self.drawn = monotonic(), 0.0
        self.first: int | None = None
        self.row: Any = None

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        if monotonic() - self.drawn < REDRAW and step < self.steps:
            return  # reading the loss makes the host wait for the device
        self.drawn = monotonic()
        done = epoch * self.steps + step
        self.first = done - 1 if self.first is None else self.first
        rate = (done - self.first) / max(self.drawn - self.begun, 1e-9)
        self.bar.update(
            self.row,
            completed=done,
            description=f"{self.title}  epoch {epoch + 1}/{self.epochs}",
            rate=f"{rate:.0f} steps/s",
            now=f"loss {float(loss):.3f}{self.measured}",
        )

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        shown = {name: value for name, value in metrics.items() if name.endswith("accuracy")}
        self.measured = "".join(f"  {name} {value:.3f}" for name, value in shown.items())

    def note(self, text: str) -> None:
        self.bar.console.print(f"{self.title}  {text}", markup=False, highlight=False)

    def __enter__(self) -> Self:
        self.row = self.bar.add_task(self.title, total=self.epochs * self.steps, now="", rate="")
        if Bars.display is None:
            Bars.display = self.bar
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.remove_task(self.row)
        if not self.bar.task_ids:
            self.bar.stop()
            Bars.display = None


def progress_for(title: str, epochs: int, steps: int, *, terminal: bool) -> Progress:
    """Return a bar for a terminal if rich is installed, else lines."""
    if not terminal:
        return Lines(title, epochs)
    try:
        return Bars(title, epochs, steps)
    except MissingExtra:
        return Lines(title, epochs)


def metrics_text(metrics: Mapping[str, float]) -> str:
    """Return an epoch's metrics on one line.

    >>> metrics_text({"epoch": 1, "lr": 0.1, "loss": 0.5, "test_accuracy": 0.98765})
    'loss 0.5  test_accuracy 0.9877'
    """
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items() if name not in ("epoch", "lr"))
