"""Runs as a reproduction sees them, from a store or from a file of results, and the measures that papers print of them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isnan
from statistics import fmean
from typing import Any, NamedTuple

from labelkin.experiments.published import Measure
from labelkin.experiments.reproduce.verdict import Measured
from labelkin.metrics.curves import first_epoch_reaching, share_of_epochs_saved


class Run(NamedTuple):
    """A finished run. Accuracies are shares."""

    label: str
    seed: int
    final: Mapping[str, float]
    curve: tuple[float, ...]  # test accuracy by epoch
    losses: tuple[float, ...] = ()  # training loss by epoch, where it is known
    seconds: float | None = None
    record: Any = None  # `labelkin.experiments.store.Record`, where the run's folder is at hand


Arms = Mapping[str, Sequence[Run]]  # the runs of a column by row


def measured(measure: Measure, runs: Sequence[Run], reference: Sequence[Run] = ()) -> Measured | None:
    """The measure seed by seed; None where it was not taken. `reference` is the row that epochs are saved against."""
    if measure.name == "epochs_saved":
        saved = share_of_epochs_saved(mean_curve(runs), mean_curve(reference))
        return None if saved is None else Measured({0: 100 * saved})
    take = MEASURES.get(measure.name)
    if take is None:
        return None
    scale = 100.0 if measure.unit == "%" else 1.0
    found = {run.seed: take(run) for run in runs}
    values = {seed: scale * value for seed, value in found.items() if value is not None and not isnan(value)}
    return Measured(values) if values else None


def _final(name: str) -> Callable[[Run], float | None]:
    return lambda run: run.final.get(name)


def _seconds_an_epoch(run: Run) -> float | None:
    return None if run.seconds is None or not run.curve else run.seconds / len(run.curve)


def _dev_error(run: Run) -> float | None:
    """On the validation data, at the epoch that they chose; a run's folder alone knows it."""
    rows = [] if run.record is None else run.record.history()
    right = next((row.get("val_accuracy") for row in rows if row["epoch"] == run.final.get("epoch")), None)
    return None if right is None else 1 - right


# By the name that a measure has in the published files.
MEASURES: dict[str, Callable[[Run], float | None]] = {
    "accuracy": _final("accuracy"),
    "argmax": _final("accuracy"),
    "error": lambda run: 1 - run.final["accuracy"],
    "dev_error": _dev_error,
    "top5": _final("top5"),
    "structure": _final("structure"),
    "mse": _final("digit_mse"),
    "kmeans": _final("kmeans_accuracy"),
    "seconds": _final("seconds"),
    "auac": lambda run: fmean(run.curve) if run.curve else None,
    "seconds_an_epoch": _seconds_an_epoch,
}


def mean_curve(runs: Sequence[Run]) -> list[float]:
    """Test accuracy by epoch, averaged over seeds."""
    return [fmean(column) for column in zip(*(run.curve for run in runs if run.curve), strict=False)]


def reached(runs: Sequence[Run], reference: Sequence[Run]) -> int | None:
    """The first epoch at which the mean curve is at the reference's best; None where it never is."""
    return first_epoch_reaching(mean_curve(runs), mean_curve(reference))


def restlessness(values: Sequence[float]) -> float:
    """The mean change from epoch to epoch over the second half: how much a curve fluctuates once it has settled."""
    late = values[len(values) // 2 :]
    return fmean(abs(b - a) for a, b in pairwise(late)) if len(late) > 1 else 0.0
