"""Counts of the pairs of a true and a predicted class, from which accuracy, distances and costs of predictions follow."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor


class Pairs(NamedTuple):
    """The different pairs of a true and a predicted class, by true class and then by predicted class.

    Attributes:
        true: (P,) class positions.
        predicted: (P,) class positions.
        times: (P,) how many samples are such a pair, 1 or more.
    """

    true: Tensor
    predicted: Tensor
    times: Tensor

    @property
    def mistakes(self) -> "Pairs":
        """The pairs of different classes."""
        wrong = self.true != self.predicted
        return Pairs(*(part[wrong] for part in self))

    def matrix(self, classes: int) -> Tensor:
        """Return the counts (K, K) with true classes as rows."""
        counts = torch.zeros(classes, classes, dtype=torch.int64)
        counts[self.true, self.predicted] = self.times
        return counts

    def mean(self, values: Tensor, weight: Tensor | None = None) -> float:
        """Return the mean over samples of a value of their pair (P,), perhaps weighted by another value of it."""
        times = self.times.double() if weight is None else self.times * weight.double()
        return float((times * values.double()).sum() / times.sum())


def count_pairs(blocks: Iterable[tuple[Tensor, Tensor]], classes: int) -> Pairs:
    """Count the pairs of samples.

    Args:
        blocks: The true and the predicted class positions of some samples at a time.
        classes: The number of classes.
    """
    counts = torch.zeros(classes * classes, dtype=torch.int64)
    for true, predicted in blocks:
        counts.index_add_(0, true * classes + predicted, torch.ones_like(true))
    found = counts.nonzero().flatten()
    return Pairs(found // classes, found % classes, counts[found])
