"""Confidence intervals, and the split of the samples into a fitting half and a measuring half."""

from math import nan, sqrt

import torch
from torch import Tensor

from labelkin.audit._decision_findings import Saving
from labelkin.audit._findings import Difference, Interval
from labelkin.decide import Halves, split_halves

LEAST_SAMPLES = 20  # fewer are not split into halves
Z = 1.959963984540054  # normal quantile of 0.975


def split_if_enough(count: int, seed: int) -> Halves | None:
    """Split `count` samples into random halves; None if there are too few samples."""
    return None if count < LEAST_SAMPLES else split_halves(count, seed)


def share_interval(hits: int, count: int) -> Interval:
    """Return Wilson's interval of a share; it stays within 0 and 1."""
    share, spread = hits / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    reach = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    return Interval(max(0.0, middle - reach), min(1.0, middle + reach))


def mean_interval(values: Tensor) -> Interval:
    """Return the interval of a mean over samples, by the normal distribution; NaN for a single sample."""
    reach = Z * float(values.double().std()) / sqrt(len(values)) if len(values) > 1 else nan
    middle = float(values.double().mean())
    return Interval(middle - reach, middle + reach)


def mean_difference(before: Tensor, after: Tensor) -> Difference:
    """Return the difference of two means over the same samples."""
    ones = torch.ones(len(before), dtype=torch.float64)
    return ratio_difference((before, ones), (after, ones))


def ratio_difference(before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor]) -> Difference:
    """Return the difference of two ratios `sum(part) / sum(whole)` over the same samples.

    The severity is such a ratio: its `whole` counts the mistakes, which differ before and after. To first order, a sample
    moves a ratio by `(part - ratio * whole) / mean(whole)`; the interval uses the variance of the difference of these
    contributions. A ratio whose `whole` is 0 is NaN.
    """
    differ = int(((before[0] != after[0]) | (before[1] != after[1])).sum())
    ratios, contributions = [], []
    for part, whole in ((p.double(), w.double()) for p, w in (before, after)):
        if not whole.any():
            ratios.append(nan)
            continue
        ratios.append(float(part.sum() / whole.sum()))
        contributions.append((part - ratios[-1] * whole) / whole.mean())
    if len(contributions) < 2 or len(contributions[0]) < 2:
        return Difference(ratios[0], ratios[1], differ)
    change = ratios[1] - ratios[0]
    reach = Z * float((contributions[1] - contributions[0]).std()) / sqrt(len(contributions[0]))
    return Difference(ratios[0], ratios[1], differ, change, change - reach, change + reach)


def saving(before: Tensor, after: Tensor) -> Saving:
    """Return the share of the total cost `before` that `after` saves, over the same samples; NaN if nothing was spent.

    It is `1 - sum(after) / sum(before)`. The interval counts the variance of both sums, as in `ratio_difference`.
    """
    spent, left = before.double(), after.double()
    if not spent.any():
        return Saving(nan, nan, nan)
    ratio = float(left.sum() / spent.sum())
    if len(spent) < 2:
        return Saving(1 - ratio, nan, nan)
    reach = Z * float(((left - ratio * spent) / spent.mean()).std()) / sqrt(len(spent))
    return Saving(1 - ratio, 1 - ratio - reach, 1 - ratio + reach)
