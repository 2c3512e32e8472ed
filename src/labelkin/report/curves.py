"""Learning curves of a comparison: the mean over seeds, and how far the seeds lie apart."""

from math import nan
from statistics import mean, stdev
from typing import NamedTuple

from labelkin.experiments.comparison import Comparison
from labelkin.experiments.store import Record


class Curve(NamedTuple):
    """Test accuracy (0 to 1) after each epoch."""

    label: str
    epochs: tuple[int, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]  # the standard deviation over seeds; NaN with one seed
    reached: int | None  # the epoch at which the mean passes the reference's best


def mean_curves(comparison: Comparison) -> list[Curve]:
    """A curve for each objective whose runs kept their metrics by epoch, as far as all of its seeds go."""
    reached = {row.label: row.epochs_to_reference for row in comparison.rows}
    found = [_mean_curve(label, records, reached.get(label)) for label, records in comparison.records.items()]
    return [curve for curve in found if curve.epochs]


def _mean_curve(label: str, records: list[Record], reached: int | None) -> Curve:
    seeds = [[row["test_accuracy"] for row in record.history() if "test_accuracy" in row] for record in records]
    epochs = list(zip(*seeds, strict=False))
    spread = tuple(stdev(values) if len(values) > 1 else nan for values in epochs)
    return Curve(label, tuple(range(1, len(epochs) + 1)), tuple(mean(values) for values in epochs), spread, reached)
