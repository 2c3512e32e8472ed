"""Measured runs as a reproduction sees them, and verdicts on published numbers.

A level is "within spread" where the two means differ by no more than the sum of both spreads and the rounding in print;
else "better" or "worse" by the difference. A direction is a row's difference to its column's reference row: the sign
printed, and the sign measured seed by seed, settled where the 95 % interval of the paired differences leaves out zero.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isnan, nan
from statistics import fmean, stdev
from typing import Any, NamedTuple

from labelkin.comparison import Paired, paired
from labelkin.metrics import first_epoch_reaching, share_of_epochs_saved
from labelkin.papers._published import Cell, Measure

WITHIN, BETTER, WORSE = "within spread", "better", "worse"
REPRODUCED, UNSETTLED, REVERSED, MISSED = (
    "direction reproduced",
    "direction as published, not settled",
    "direction reversed",
    "direction not reproduced",
)
FLAT = "printed without a difference"


class Measured(NamedTuple):
    """A cell's values by seed."""

    values: Mapping[int, float]

    @property
    def mean(self) -> float:
        return fmean(self.values.values()) if self.values else nan

    @property
    def spread(self) -> float | None:
        """The standard deviation over seeds; None for one seed."""
        return stdev(self.values.values()) if len(self.values) > 1 else None


class Verdict(NamedTuple):
    level: str | None  # WITHIN, BETTER or WORSE; None where levels cannot be compared
    difference: float  # measured minus published; NaN where levels cannot be compared
    direction: str | None  # to the reference row; None where there is none
    words: str


def level(published: Cell, measured: Measured, better: str | None) -> tuple[str, float]:
    difference = measured.mean - published.value
    if abs(difference) <= (published.spread or 0.0) + (measured.spread or 0.0) + published.rounding:
        return WITHIN, difference
    return (BETTER if (difference > 0) == (better == "higher") else WORSE), difference


def apart(row: Measured, reference: Measured) -> Paired:
    """The differences seed by seed, with their 95 % interval."""
    return paired([value - reference.values[seed] for seed, value in row.values.items() if seed in reference.values])


def direction(published: float, rounding: float, measured: Paired) -> str | None:
    """Whether the printed difference to the reference row is found; None where nothing was measured to tell."""
    if isnan(measured.mean):
        return None
    if abs(published) <= rounding:
        return FLAT
    if (published > 0) == (measured.mean > 0) and measured.mean != 0:
        return REPRODUCED if measured.shown else UNSETTLED
    return REVERSED if measured.shown else MISSED


def judge(
    published: Cell,
    measured: Measured,
    better: str | None,
    *,
    reference: tuple[Cell, Measured] | None = None,
    levels: bool = True,
) -> Verdict:
    """A cell's verdict; `levels=False` where the run was shorter, smaller or other than the paper's."""
    found, difference, words = None, nan, []
    if levels:
        found, difference = level(published, measured, better)
        words.append(found if found == WITHIN else f"{found} by {abs(difference):.3g}")
        if published.spread is None and measured.spread is None:
            words[-1] += " (no spread known)"
    way = None
    if reference is not None:
        printed = published.value - reference[0].value
        way = direction(printed, 1.01 * max(published.rounding, reference[0].rounding), apart(measured, reference[1]))
        words.extend([way] if way is not None else [])
    return Verdict(found, difference, way, "; ".join(words) or "measured, not compared")


class Run(NamedTuple):
    """A finished run. Accuracies are shares."""

    label: str
    seed: int
    final: Mapping[str, float]
    curve: tuple[float, ...]  # test accuracy by epoch
    losses: tuple[float, ...] = ()  # training loss by epoch, where it is known
    seconds: float | None = None
    record: Any = None  # `labelkin.runs._store.Record`, where the run's folder is at hand


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
