"""What a handful of seeds can show: paired differences with intervals, and how many seeds would settle the matter."""

from collections.abc import Sequence
from math import ceil, nan, sqrt
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
POWER = 2.8016  # standard errors between nothing and a difference found in four of five tries, at the 5 % level
RESAMPLES = 10_000
TIE = 1e-9  # of a difference: what rounding makes of none
MOST_SEEDS = 1_000  # beyond that the answer is: never


class Paired(NamedTuple):
    """Differences of pairs: their mean, their spread, and the 95 % interval of the mean; NaN below two pairs."""

    mean: float
    spread: float
    low: float
    high: float
    seeds_to_settle: int | None  # pairs that would show a difference of this size; None where that is more than 1,000

    @property
    def shown(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0


def paired(differences: Sequence[float]) -> Paired:
    """The interval is the bootstrap's (percentile, 10,000 resamples of the pairs), never narrower than Student's.

    Of n pairs the bootstrap never leaves their range, which misses the truth in 2 of 2^n cases: for a few seeds Student's
    interval, which is wider there, is the honest one. Differences that are all the same, as a small test set gives now and
    then, say nothing of their spread: they count as spread out as far as they lie from 0.
    """
    count = len(differences)
    if count < 2:
        return Paired(differences[0] if count else nan, nan, nan, nan, None)
    centre, spread = mean(differences), stdev(differences)
    supposed = spread if spread > TIE * abs(centre) else abs(centre)
    reach = student(count - 1) * supposed / sqrt(count)
    low, high = bootstrap(differences)
    settled_by = seeds_to_settle(centre, supposed)
    return Paired(centre, spread, min(low, centre - reach), max(high, centre + reach), settled_by)


def better_by_chance(rivals: int) -> str:
    """How many of so many equals would look better: half of what the intervals miss."""
    return f"{rivals * (1 - LEVEL) / 2:.1f}"


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """The percentile interval of the mean, from resamples of a fixed seed."""
    given = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(0, len(given), (RESAMPLES, len(given)))
    low, high = np.quantile(given[drawn].mean(1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def seeds_to_settle(difference: float, spread: float) -> int | None:
    """The pairs with which a difference of this size and spread is shown four times of five."""
    if difference == 0:
        return None
    count = max(2, ceil((POWER * spread / difference) ** 2))
    while count <= MOST_SEEDS and (student(count - 1) + 0.8416) * spread > abs(difference) * sqrt(count):
        count += 1
    return count if count <= MOST_SEEDS else None


def student(freedom: int) -> float:
    """The half-width of a 95 % interval in standard errors."""
    from scipy.special import stdtrit  # here, since listing runs needs none of it

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Which points (accuracy, severity) no other beats: at least as accurate and as mild, and one of them more so."""
    return [not any(_beats(other, point) for other in points) for point in points]


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] >= other[0] and one[1] <= other[1]
