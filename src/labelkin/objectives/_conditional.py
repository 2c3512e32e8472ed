"""Tree losses from the literature: conditional softmax (Redmon & Farhadi) and HXE (Bertinetto et al.)."""

from collections.abc import Sequence
from typing import ClassVar, Unpack

import torch.nn.functional as F
from torch import Tensor

from labelkin import functional
from labelkin._checks import check_number
from labelkin.functional import open_subtree_logsumexp
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import Shared
from labelkin.objectives._tree import TreeObjective
from labelkin.structure import Taxonomy


class ConditionalSoftmax(TreeObjective):
    """Train node logits with a softmax over every set of siblings (Redmon & Farhadi).

    The loss is the negative log-likelihood of the leaf, `-sum log p_j` along its path.

    Args:
        taxonomy: the tree of the classes.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; outputs have one logit for each non-root node.

    Example:
        >>> import torch
        >>> from labelkin import ConditionalSoftmax, Taxonomy
        >>> head = ConditionalSoftmax(taxonomy=Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> head.loss(torch.zeros(1, 4), torch.tensor([0]))  # log 2 for pet, log 2 for cat
        tensor(1.3863)
    """

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = functional.conditional_softmax(outputs, self.known(batch), self.tree())
        return self._only_term("conditional_softmax", losses, batch)


class HierarchicalCrossEntropy(TreeObjective):
    """Train a flat softmax with HXE, `-sum exp(-alpha depth) log p(node | parent)` along the path (Bertinetto et al.).

    Args:
        taxonomy: the tree of the classes.
        alpha: 0 gives cross entropy; larger values weigh coarse mistakes more.
        normalize: divide the weights by their sum over the tree, as the authors' code does.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; outputs are K leaf logits, not node logits.

    Example:
        >>> import torch
        >>> from labelkin import HierarchicalCrossEntropy, Taxonomy
        >>> head = HierarchicalCrossEntropy(taxonomy=Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), alpha=0.0)
        >>> head.loss(torch.zeros(1, 3), torch.tensor([0]))
        tensor(1.0986)
    """

    softmax_logits: ClassVar[bool] = True

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        alpha: float = 0.1,
        normalize: bool = False,
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        check_number("alpha", alpha, low=0)
        leaves = len(taxonomy.leaves) if isinstance(taxonomy, Taxonomy) else None
        super().__init__(taxonomy, classes=classes, _width=leaves, **shared)
        self.alpha = alpha
        self.normalize = normalize

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = functional.hierarchical_cross_entropy(
            outputs, self.known(batch), self.tree(), alpha=self.alpha, normalize=self.normalize
        )
        return self._only_term("hierarchical_cross_entropy", losses, batch)

    def node_log_probs(self, outputs: Tensor) -> Tensor:
        """Return (..., N - 1) log-probabilities of all non-root nodes, from sums over their leaves."""
        subtree = open_subtree_logsumexp(inputs.single(self, outputs), self.tree())
        return subtree[..., 1:] - subtree[..., :1]

    def log_probs(self, outputs: Tensor) -> Tensor:
        return F.log_softmax(inputs.single(self, outputs), -1)
