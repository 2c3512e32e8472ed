"""Hier-COS (Sani & Anand, 2026): a coordinate for every node, and for every class the subspace of its path."""

from collections.abc import Sequence
from typing import Unpack

import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import check_number
from labelkin.functional import subspace_scores, subspace_terms
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import Shared
from labelkin.objectives._tree import LeafObjective
from labelkin.objectives._tree_buffers import in_class_order
from labelkin.structure import Taxonomy


class HierCOS(LeafObjective):
    """Train a coordinate z_n for each node with `KL(t_y || softmax|z|) + alpha * sum_l || e_l - |z_l| / ||z_l||_2 ||_1`.

    t_y lies on the path of the class, level l of h weighted by `exp(2 / (h + 1 - l))`, normalized; e_l marks the true node of
    level l, and z_l are the coordinates of its nodes. At a level below the leaf of the class, the second term is the sum of
    |z_l| (Sani & Anand, 2026, "Making deep features hierarchy-aware via composition of orthogonal subspaces"). The score of a
    class is `sqrt(sum of z_n^2 over its path)`, the length of the projection on its subspace.

    The authors turn the coordinates by a fixed orthogonal matrix, which the linear head can learn, and average the second term
    over the samples that reach a level; here it is a mean over all samples. The paper defines no probabilities of classes:
    here they are the softmax of the scores (ours), which need a fitted temperature.

    Args:
        taxonomy: the tree of the classes.
        alpha: weight of the second term, at least 0; 0.05 is the authors' value for CIFAR-100.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms `divergence` and `levels`. Outputs have one coordinate for
        each non-root node.

    Example:
        >>> import torch
        >>> from labelkin import HierCOS, Taxonomy
        >>> head = HierCOS(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), features=4)
        >>> head.loss(head(torch.randn(8, 4)), torch.randint(3, (8,))).backward()
        >>> head.scores(torch.tensor([[4.0, 1.0, 3.0, 0.0]]))  # coordinates of pet, car, cat, dog
        tensor([[5., 4., 1.]])
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        alpha: float = 0.05,
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        check_number("alpha", alpha, low=0)
        super().__init__(taxonomy, classes=classes, _width=len(in_class_order(taxonomy, classes)) - 1, **shared)
        self.alpha = alpha

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        found = subspace_terms(outputs, batch.target, self.tree())
        total = self._reduce(found.divergence + self.alpha * found.levels, batch)
        return Loss(total, {name: self._reduce(losses, batch) for name, losses in found._asdict().items()})

    def scores(self, outputs: Tensor) -> Tensor:
        """Return the length (..., K) of the projection on the subspace of each class."""
        return subspace_scores(inputs.single(self, outputs), self.tree())

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return the log-softmax (..., K) of the scores (ours: the paper defines no probabilities)."""
        return F.log_softmax(self.scores(outputs), -1)
