"""The outputs of the label embedding network, and the sums over samples of which its loss is made."""

from typing import NamedTuple

from torch import Tensor


class TwoHeads(NamedTuple):
    """The outputs of a label embedding network, each (..., K)."""

    z1: Tensor  # predicts
    z2: Tensor  # learns which classes are similar; no gradient reaches the backbone


class Sums(NamedTuple):
    """The terms summed over the samples of this process, with the weight of all samples and of those z2 gets right."""

    hard: Tensor
    soft: Tensor
    similarity: Tensor
    confidence: Tensor
    embedding: Tensor
    tree: Tensor  # one sum for each tree term
    weight: Tensor
    right: Tensor
