"""Statistics over seeds: paired differences with intervals, and the number of seeds that would show a difference."""

from collections.abc import Sequence
from math import ceil, nan, sqrt
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
POWER = 2.8016  # standard errors for a power of 80 % at the 5 % level
POWER_QUANTILE = 0.8416  # of the normal distribution at 80 %
RESAMPLES = 10_000
TIE = 1e-9  # relative to a mean; smaller spreads are rounding errors
MOST_SEEDS = 1_000  # larger answers are reported as None


class Paired(NamedTuple):
    """Mean, standard deviation and 95 % interval of paired differences; NaN with fewer than two pairs."""

    mean: float
    spread: float
    low: float
    high: float
    seeds_to_settle: int | None  # pairs that would show a difference of this size; None above 1,000

    @property
    def shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def paired(differences: Sequence[float]) -> Paired:
    """Summarize paired differences.

    The interval is the percentile bootstrap (10,000 resamples of the pairs), or Student's interval if that is wider. The
    bootstrap never leaves the range of the n pairs, so it misses the true mean in at least 2 of 2^n cases; for few seeds
    Student's interval is the reliable one. If all differences are equal, which happens with small test sets, their mean is
    taken as the standard deviation.
    """
    count = len(differences)
    if count < 2:
        return Paired(differences[0] if count else nan, nan, nan, nan, None)
    center, spread = mean(differences), stdev(differences)
    assumed = spread if spread > TIE * abs(center) else abs(center)
    reach = student(count - 1) * assumed / sqrt(count)
    low, high = bootstrap(differences)
    needed = seeds_to_settle(center, assumed)
    return Paired(center, spread, min(low, center - reach), max(high, center + reach), needed)


def better_by_chance(rivals: int) -> str:
    """Return how many of `rivals` equally good objectives would look better by chance: half of 5 %."""
    return f"{rivals * (1 - LEVEL) / 2:.1f}"


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean. The seed is fixed."""
    given = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(0, len(given), (RESAMPLES, len(given)))
    low, high = np.quantile(given[drawn].mean(1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def seeds_to_settle(difference: float, spread: float) -> int | None:
    """Return the number of pairs that shows a difference of this size and spread with a power of 80 %."""
    if difference == 0 or POWER * spread / abs(difference) > MOST_SEEDS:  # the square would overflow
        return None
    count = max(2, ceil((POWER * spread / difference) ** 2))
    while count <= MOST_SEEDS and (student(count - 1) + POWER_QUANTILE) * spread > abs(difference) * sqrt(count):
        count += 1
    return count if count <= MOST_SEEDS else None


def student(freedom: float) -> float:
    """Return the half-width of Student's 95 % interval in standard errors."""
    from scipy.special import stdtrit  # imported here, because listing runs does not need scipy

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return which points (accuracy, severity) are on the Pareto front: no other is as good in both and better in one."""
    return [not any(_beats(other, point) for other in points) for point in points]


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] >= other[0] and one[1] <= other[1]
