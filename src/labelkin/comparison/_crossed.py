"""The interval of a difference that was measured by several seeds on the same test samples.

A difference has two sources of error: other seeds would have given other models, and other test samples would have been
easier or harder. `crossed` estimates both from d[s, i], the difference of seed s on test sample i:

    d[s, i] = mean + seed[s] + sample[i] + residual[s, i]

Its three variances come from the mean squares of the two-way layout without replication, and the mean of all d has the variance

    V = var_seed / S + var_sample / n + var_residual / (S n) = (MS_seed + MS_sample - MS_residual) / (S n)

The interval is Student's with Satterthwaite's freedom, V^2 / sum of (MS / (S n))^2 / freedom(MS). It is never narrower than the
interval over seeds alone (`paired`), which three or five seeds would otherwise undercut by chance. A bootstrap that resamples
both seeds and samples is too narrow with so few seeds.
"""

from collections.abc import Callable
from math import nan, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError
from labelkin.comparison._statistics import MOST_SEEDS, POWER_QUANTILE, paired, student

Floats = npt.NDArray[np.float64]
MOST_SAMPLES = 10_000_000  # larger answers are reported as None


class MeanSquares(NamedTuple):
    """The mean squares of differences (S, n) in a two-way layout without replication."""

    seed: float
    sample: float
    residual: float
    seeds: int
    samples: int

    @property
    def variance(self) -> float:
        """The variance of the mean; components with a negative estimate count as 0."""
        total = max(self.seed + self.sample - self.residual, self.seed, self.sample)
        return total / (self.seeds * self.samples)

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom of `variance`."""
        parts = (
            (self.seed, self.seeds - 1),
            (self.sample, self.samples - 1),
            (self.residual, (self.seeds - 1) * (self.samples - 1)),
        )
        doubt = sum(square**2 / freedom for square, freedom in parts)
        total = self.variance * self.seeds * self.samples
        return total**2 / doubt if doubt > 0 else float(self.seeds - 1)

    @property
    def half_width(self) -> float:
        """The half-width of Student's 95 % interval."""
        return student(self.freedom) * sqrt(self.variance)

    @property
    def settled_difference(self) -> float:
        """The smallest difference that is shown with a power of 80 %."""
        alone = self.seed / (self.seeds * self.samples)  # the interval is at least as wide as that over seeds alone
        return max(
            (student(self.freedom) + POWER_QUANTILE) * sqrt(self.variance),
            (student(self.seeds - 1) + POWER_QUANTILE) * sqrt(alone),
        )

    def components(self) -> "Variances":
        """Return the variance components; negative estimates become 0."""
        return Variances(
            max(0.0, (self.seed - self.residual) / self.samples),
            max(0.0, (self.sample - self.residual) / self.seeds),
            self.residual,
        )


class Variances(NamedTuple):
    """The variance components of a difference: between seeds, between test samples, and the rest."""

    seed: float
    sample: float
    residual: float

    def expected(self, seeds: int, samples: int) -> MeanSquares:
        """Return the mean squares to expect from so many seeds and test samples."""
        by_seed, by_sample = samples * self.seed + self.residual, seeds * self.sample + self.residual
        return MeanSquares(by_seed, by_sample, self.residual, seeds, samples)


class Crossed(NamedTuple):
    """The mean of crossed differences with its 95 % interval, which covers new seeds and new test samples.

    Attributes:
        mean: The mean difference.
        low: The lower end of the interval; NaN with fewer than two seeds.
        high: The upper end of the interval.
        seeds: The number of seeds.
        samples: The number of test samples.
        variances: The variance components, at least 0; None with fewer than two seeds.
        seeds_to_settle: The number of seeds that would show a difference of this size on these test samples; None if more than
            1,000, which is so when the test samples are too few.
        samples_to_settle: The number of test samples that would show it with these seeds; None if no number would.
        largest_share: The share of the mean that is due to the test sample with the largest influence.
    """

    mean: float
    low: float
    high: float
    seeds: int
    samples: int
    variances: Variances | None
    seeds_to_settle: int | None
    samples_to_settle: int | None
    largest_share: float

    @property
    def needs_samples(self) -> bool:
        """Whether test samples, more than seeds, limit what is shown: most of the variance of the mean is theirs."""
        if self.variances is None or self.samples_to_settle is None:
            return False
        rest = self.variances.seed / self.seeds + self.variances.residual / (self.seeds * self.samples)
        return self.variances.sample / self.samples > rest

    @property
    def shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def crossed(differences: npt.ArrayLike) -> Crossed:
    """Summarize differences (S, n) of S seeds on the same n test samples.

    >>> found = crossed([[-1, 0, 0, -1], [-1, 0, -1, 0], [-1, 0, -1, 0]])
    >>> found.mean, found.seeds, found.samples
    (-0.5, 3, 4)
    """
    given = np.asarray(differences, dtype=np.float64)
    if given.ndim != 2 or not given.size:
        raise InputError(f"differences: expected an array of seeds x test samples, got the shape {given.shape}.")
    seeds, samples = given.shape
    center = float(given.mean())
    largest = float(np.abs(given.mean(0)).max()) / samples / abs(center) if center else nan
    if seeds < 2 or samples < 2:
        return Crossed(center, nan, nan, seeds, samples, None, None, None, largest)
    alone = paired(given.mean(1).tolist())
    squares = mean_squares(given)
    parts, reach = squares.components(), squares.half_width
    return Crossed(
        mean=center,
        low=min(alone.low, center - reach),
        high=max(alone.high, center + reach),
        seeds=seeds,
        samples=samples,
        variances=parts,
        seeds_to_settle=_least(center, lambda count: parts.expected(count, samples).settled_difference, MOST_SEEDS),
        samples_to_settle=_least(center, lambda count: parts.expected(seeds, count).settled_difference, MOST_SAMPLES),
        largest_share=largest,
    )


def mean_squares(differences: Floats) -> MeanSquares:
    """Return the mean squares of differences (S, n)."""
    seeds, samples = differences.shape
    center, by_seed, by_sample = differences.mean(), differences.mean(1), differences.mean(0)
    rest = differences - by_seed[:, None] - by_sample + center
    return MeanSquares(
        seed=samples * float(((by_seed - center) ** 2).sum()) / (seeds - 1),
        sample=seeds * float(((by_sample - center) ** 2).sum()) / (samples - 1),
        residual=float((rest**2).sum()) / ((seeds - 1) * (samples - 1)),
        seeds=seeds,
        samples=samples,
    )


def _least(difference: float, settled: Callable[[int], float], most: int) -> int | None:
    """Return the smallest count from 2 to `most` that would show the difference."""
    if difference == 0 or settled(most) > abs(difference):
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) <= abs(difference) else (middle, high)
    return high
