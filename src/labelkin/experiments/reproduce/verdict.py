"""Published against measured, in words that can be checked.

A level is "within spread" where the two means differ by no more than the sum of both spreads and the rounding in print;
else "better" or "worse" by the difference. A direction is a row's difference to its column's reference row: the sign
printed, and the sign measured seed by seed, settled where the 95 % interval of the paired differences leaves out zero.
"""

from collections.abc import Mapping
from math import isnan, nan
from statistics import fmean, stdev
from typing import NamedTuple

from labelkin.experiments.published import Cell
from labelkin.experiments.statistics import Paired, paired

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
