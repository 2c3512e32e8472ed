"""Sums over pairs of values before and after a change of the same samples, and the intervals that follow from them."""

from math import nan, sqrt

import torch
from torch import Tensor

from labelkin.audit._decision_findings import Saving
from labelkin.audit._findings import Difference

Z = 1.959963984540054  # normal quantile of 0.975


class Paired:
    """The sums that the difference of two ratios `sum(part) / sum(whole)` over the same samples and its interval need.

    The severity is such a ratio: its `whole` counts the mistakes, which differ before and after. A mean is one whose `whole`
    is 1. Samples are added block by block: means and scatter are updated as by Chan, Golub and LeVeque (1983). Of the values
    after the change, the scatter is that of their differences from those before, which is 0 if nothing changes.

    With the moments that the model's probabilities expect, the variance of a mean is the larger one: the observed one, or the
    expected one, which counts costly mistakes that are too rare to occur in the samples.
    """

    def __init__(self) -> None:
        self.count, self.differ = 0, 0
        self._sums = torch.zeros(4, dtype=torch.float64)  # part and whole before, part and whole after
        self._is_zero = torch.ones(4, dtype=torch.bool)
        self._means = torch.zeros(4, dtype=torch.float64)  # part and whole before, and what is added to both
        self._scatter = torch.zeros(4, 4, dtype=torch.float64)
        self._expected, self._expects = torch.zeros(5, dtype=torch.float64), 0

    def add(
        self,
        before: Tensor,
        after: Tensor,
        whole_before: Tensor | None = None,
        whole_after: Tensor | None = None,
        *,
        expected: Tensor | None = None,
    ) -> "Paired":
        """Add the parts of some samples (m,), and their wholes unless these are 1.

        Args:
            before: The parts before the change.
            after: The parts after it.
            whole_before: The wholes before the change.
            whole_after: The wholes after it.
            expected: (5, m) moments of the parts, from `expected_moments`; only for wholes of 1.
        """
        if expected is not None:
            self._expected += expected.sum(1)
            self._expects += expected.shape[1]
        ones = torch.ones(len(before), dtype=torch.float64)
        wholes = (ones if part is None else part.double() for part in (whole_before, whole_after))
        values = torch.stack([part.double() for pair in zip((before, after), wholes, strict=True) for part in pair])
        self._sums += values.sum(1)
        self._is_zero &= (values == 0).all(1)
        values[2:] -= values[:2]
        self.differ += int((values[2:] != 0).any(0).sum())
        means = values.mean(1)
        values -= means.unsqueeze(1)
        share, away = len(before) / (self.count + len(before)), means - self._means
        self._scatter += values @ values.T + torch.outer(away, away) * (self.count * share)
        self._means += away * share
        self.count += len(before)
        return self

    def difference(self) -> Difference:
        """Return the change of the ratio, NaN for one whose `whole` is 0.

        To first order, a sample moves a ratio by `(part - ratio * whole) / mean(whole)`; the interval uses the variance of the
        difference of these contributions.
        """
        part, whole, part_after, whole_after = self._sums.tolist()
        undefined = (bool(self._is_zero[1]), bool(self._is_zero[3]))
        before, after = nan if undefined[0] else part / whole, nan if undefined[1] else part_after / whole_after
        if any(undefined) or self.count < 2:
            return Difference(before, after, self.differ)
        first, second = self.count / whole, self.count / whole_after
        effect = (second - first, before * first - after * second, second, -after * second)
        change, reach = after - before, self._reach(effect)
        return Difference(before, after, self.differ, change, change - reach, change + reach)

    def saving(self) -> Saving:
        """Return the share of the sum of the parts that the change saves, `1 - sum(after) / sum(before)`; NaN if that is 0.

        The interval is Fieller's: the shares with which `mean(after) - (1 - share) mean(before)` is not significant. So it
        excludes 0 if and only if the interval of the difference does. It is NaN if the mean before the change may be 0, and
        every share is possible.
        """
        spent, _, left, _ = self._sums.tolist()
        if bool(self._is_zero[0]):
            return Saving(nan, nan, nan)
        share = 1 - left / spent
        ratios = [self._ratios(*moments) for moments in self._squares()] if self.count > 1 else [None]
        known = [ratio for ratio in ratios if ratio is not None]
        if len(known) < len(ratios):
            return Saving(share, nan, nan)
        return Saving(share, 1 - max(high for _, high in known), 1 - min(low for low, _ in known))

    def _squares(self) -> list[tuple[float, float, float]]:
        """Return the variances of the means before and after, with their covariance in the middle: observed, and expected."""
        before, both, change = (float(self._scatter[place]) for place in ((0, 0), (0, 2), (2, 2)))
        found = [(before, before + both, before + 2 * both + change)]
        if self._expects == self.count:
            first, second, square, product, other = self._expected.tolist()
            means = first / self.count, second / self.count
            found.append((square - first * means[0], product - first * means[1], other - second * means[1]))
        scale = 1 / (self.count - 1) / self.count
        return [(scale * square, scale * product, scale * other) for square, product, other in found]

    def _ratios(self, square: float, product: float, other: float) -> tuple[float, float] | None:
        """Return the least and the largest ratio of the means that these variances allow; None if there is no limit."""
        before, after = float(self._sums[0]) / self.count, float(self._sums[2]) / self.count
        leading, middle, last = before**2 - Z**2 * square, before * after - Z**2 * product, after**2 - Z**2 * other
        if leading <= 0:
            return None
        half = sqrt(max(0.0, middle**2 - leading * last))
        return (middle - half) / leading, (middle + half) / leading

    def _reach(self, effect: tuple[float, ...]) -> float:
        """Return half the length of the interval of a sum of the four values times their effects."""
        weights = torch.tensor(effect, dtype=torch.float64)
        variance = float(weights @ self._scatter @ weights)
        if self._expects == self.count:
            variance = max(variance, self.count * self._expected_variance(effect[0] - effect[2], effect[2]))
        return Z * sqrt(max(0.0, variance) / (self.count - 1) / self.count)

    def _expected_variance(self, before: float, after: float) -> float:
        """Return the variance of `before` times the part before the change plus `after` times the part after it."""
        first, second, square, product, other = map(float, self._expected / self.count)
        mean = before * first + after * second
        return before * before * square + 2 * before * after * product + after * after * other - mean * mean
