"""Confidence intervals, and the split into a fitting half and a measuring half."""

from math import nan, sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin.audit._findings import Difference, Interval

LEAST = 20  # samples, below which a half tells nothing


class Halves(NamedTuple):
    fitted: Tensor  # positions of samples
    measured: Tensor


def halves_of(count: int, seed: int) -> Halves | None:
    """Drawn by `seed`; None where there are too few samples."""
    if count < LEAST:
        return None
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return Halves(order[: count // 2].sort().values, order[count // 2 :].sort().values)


Z = 1.959963984540054  # normal quantile of 0.975


def share_interval(hits: int, count: int) -> Interval:
    """Wilson's interval of a share, which stays within 0 and 1."""
    share, spread = hits / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    reach = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    return Interval(max(0.0, middle - reach), min(1.0, middle + reach))


def mean_interval(values: Tensor) -> Interval:
    """Of a mean over samples, by the normal distribution; NaN for a single sample."""
    reach = Z * float(values.double().std()) / sqrt(len(values)) if len(values) > 1 else nan
    middle = float(values.double().mean())
    return Interval(middle - reach, middle + reach)


def mean_difference(before: Tensor, after: Tensor) -> Difference:
    """Of two means over the same samples."""
    ones = torch.ones(len(before), dtype=torch.float64)
    return ratio_difference((before, ones), (after, ones))


def ratio_difference(before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor]) -> Difference:
    """Of two ratios `sum(part) / sum(whole)` over the same samples, as the mean over each run's own mistakes.

    A ratio moves with a sample by `(part - ratio * whole) / mean(whole)` to first order, so the difference has the
    variance of the difference of those. NaN where a ratio has nothing to divide by.
    """
    differ = int(((before[0] != after[0]) | (before[1] != after[1])).sum())
    ratios, moves = [], []
    for part, whole in ((p.double(), w.double()) for p, w in (before, after)):
        if not whole.any():
            ratios.append(nan)
            continue
        ratios.append(float(part.sum() / whole.sum()))
        moves.append((part - ratios[-1] * whole) / whole.mean())
    if len(moves) < 2 or len(moves[0]) < 2:
        return Difference(ratios[0], ratios[1], differ)
    change = ratios[1] - ratios[0]
    reach = Z * float((moves[1] - moves[0]).std()) / sqrt(len(moves[0]))
    return Difference(ratios[0], ratios[1], differ, change, change - reach, change + reach)
