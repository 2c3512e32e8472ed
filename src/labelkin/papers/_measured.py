"""Measures of runs, and verdicts on published numbers.

The level of a cell is "within spread" if the two means differ by no more than both standard deviations and the rounding of
the published number together; otherwise it is "better" or "worse". The direction of a cell is the sign of its difference from
the reference row of its column. It is significant if the 95 % interval of the differences, paired by seed, excludes zero.
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
    "direction as published, not significant",
    "direction reversed",
    "direction not reproduced",
)
FLAT = "no published difference"


class Measured(NamedTuple):
    """The values of a cell by seed."""

    values: Mapping[int, float]

    @property
    def mean(self) -> float:
        """The mean over seeds; NaN without seeds."""
        return fmean(self.values.values()) if self.values else nan

    @property
    def spread(self) -> float | None:
        """The standard deviation over seeds; None for one seed."""
        return stdev(self.values.values()) if len(self.values) > 1 else None


class Verdict(NamedTuple):
    """The comparison of a measured value with the published one."""

    level: str | None  # WITHIN, BETTER or WORSE; None if levels cannot be compared
    difference: float  # measured minus published; NaN if levels cannot be compared
    direction: str | None  # of the difference from the reference row; None if there is none
    words: str


def level(published: Cell, measured: Measured, better: str | None) -> tuple[str, float]:
    """Return the level of a cell, and the measured minus the published value."""
    difference = measured.mean - published.value
    if abs(difference) <= (published.spread or 0.0) + (measured.spread or 0.0) + published.rounding:
        return WITHIN, difference
    return (BETTER if (difference > 0) == (better == "higher") else WORSE), difference


def paired_by_seed(row: Measured, reference: Measured) -> Paired:
    """Summarize the differences between a row and the reference row, paired by seed."""
    return paired([value - reference.values[seed] for seed, value in row.values.items() if seed in reference.values])


def direction(published: float, rounding: float, measured: Paired) -> str | None:
    """Compare the published with the measured difference from the reference row. Returns None if nothing was measured."""
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
    """Return the verdict on a cell. Pass `levels=False` if the runs differ from the paper's in length, data or network."""
    found, difference, words = None, nan, []
    if levels:
        found, difference = level(published, measured, better)
        words.append(found if found == WITHIN else f"{found} by {abs(difference):.3g}")
        if published.spread is None and measured.spread is None:
            words[-1] += " (no spread known)"
    way = None
    if reference is not None:
        published_difference = published.value - reference[0].value
        way = direction(
            published_difference,
            1.01 * max(published.rounding, reference[0].rounding),
            paired_by_seed(measured, reference[1]),
        )
        words.extend([way] if way is not None else [])
    return Verdict(found, difference, way, "; ".join(words) or "measured, not compared")


class Run(NamedTuple):
    """A finished run. Accuracies are between 0 and 1."""

    label: str
    seed: int
    final: Mapping[str, float]
    curve: tuple[float, ...]  # test accuracy by epoch
    losses: tuple[float, ...] = ()  # training loss by epoch, if it is known
    seconds: float | None = None
    record: Any = None  # a `labelkin.runs.Record`, if the folder of the run is available


Arms = Mapping[str, Sequence[Run]]  # the runs of a column by row


def measured(measure: Measure, runs: Sequence[Run], reference: Sequence[Run] = ()) -> Measured | None:
    """Return the values of a measure by seed, or None if it was not measured.

    Args:
        measure: The measure.
        runs: The runs of a row.
        reference: The runs of the row that saved epochs are counted against.
    """
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
    """Return the validation error of the reported epoch; only the folder of a run has it."""
    rows = [] if run.record is None else run.record.history()
    right = next((row.get("val_accuracy") for row in rows if row["epoch"] == run.final.get("epoch")), None)
    return None if right is None else 1 - right


# Measures by their names in the published files.
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
    "fluctuation": lambda run: fluctuation(run.curve) if len(run.curve) > 3 else None,
}


def mean_curve(runs: Sequence[Run]) -> list[float]:
    """Return the test accuracy by epoch, averaged over seeds."""
    return [fmean(column) for column in zip(*(run.curve for run in runs if run.curve), strict=False)]


def reached(runs: Sequence[Run], reference: Sequence[Run]) -> int | None:
    """Return the first epoch at which the mean curve reaches the reference's best, or None if it never does."""
    return first_epoch_reaching(mean_curve(runs), mean_curve(reference))


def fluctuation(values: Sequence[float]) -> float:
    """Return the mean absolute change from epoch to epoch over the second half of a curve."""
    late = values[len(values) // 2 :]
    return fmean(abs(b - a) for a, b in pairwise(late)) if len(late) > 1 else 0.0
