"""What a person sees while training: bars on a terminal, a line an epoch elsewhere, nothing where nobody looks."""

from collections.abc import Mapping
from time import monotonic
from typing import Any, Protocol, Self

from torch import Tensor

from labelkin._extras import MissingExtra, require

REDRAW = 0.1  # seconds


class Progress(Protocol):
    def step(self, epoch: int, step: int, loss: Tensor) -> None: ...
    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


class Silent:
    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        pass

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Lines(Silent):
    """A plain line an epoch, for logs and pipes."""

    def __init__(self, title: str, epochs: int) -> None:
        self.title, self.epochs, self.begun = title, epochs, monotonic()

    def epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        print(
            f"{self.title}  epoch {epoch + 1}/{self.epochs}  {described(metrics)}  {monotonic() - self.begun:.1f} s",
            flush=True,
        )


class Bars(Silent):
    """One bar over the run: epoch, step rate, time left, loss, accuracy."""

    def __init__(self, title: str, epochs: int, steps: int) -> None:
        rich = require("rich.progress", extra="cli", use="a progress bar")
        self.epochs, self.steps = epochs, steps
        self.bar: Any = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(bar_width=24),
            rich.TextColumn("{task.fields[rate]}"),
            rich.TimeRemainingColumn(),
            rich.TextColumn("{task.fields[now]}"),
            transient=True,
        )
        self.row = self.bar.add_task(title, total=epochs * steps, now="", rate="")
        self.title, self.measured = title, ""
        self.begun, self.drawn = monotonic(), 0.0
        self.first: int | None = None

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        if monotonic() - self.drawn < REDRAW and step < self.steps:
            return  # looking at the loss makes a GPU wait
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

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()


def progress_for(title: str, epochs: int, steps: int, *, terminal: bool) -> Progress:
    if not terminal:
        return Lines(title, epochs)
    try:
        return Bars(title, epochs, steps)
    except MissingExtra:
        return Lines(title, epochs)


def described(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items() if name not in ("epoch", "lr"))
