"""Tree losses from the field: conditional softmax (Redmon & Farhadi) and HXE (Bertinetto et al.)."""

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from labelkin import functional
from labelkin._checks import check_number
from labelkin.functional.hierarchical import open_subtree_logsumexp
from labelkin.objectives import inputs
from labelkin.objectives.batch import Batch, Loss
from labelkin.objectives.tree import TreeObjective
from labelkin.structure import Taxonomy


class ConditionalSoftmax(TreeObjective):
    """A softmax over every set of siblings; the loss is the negative log-likelihood of the leaf (Redmon & Farhadi)."""

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = functional.conditional_softmax(outputs, self.known(batch), self.tree())
        return self.only_term("conditional_softmax", losses, batch)


class HierarchicalCrossEntropy(TreeObjective):
    """HXE: a flat softmax over K leaf logits, its errors weighted `exp(-alpha depth)` along the path (Bertinetto et al.).

    `alpha=0` is cross entropy; larger values care more for coarse mistakes. `normalize` divides the weights by their sum
    over the tree, as the authors' code does. Outputs are K leaf logits, not node logits.
    """

    def __init__(
        self,
        *,
        taxonomy: Taxonomy,
        alpha: float = 0.1,
        normalize: bool = False,
        classes: int | Sequence[str] | None = None,
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        check_number("alpha", alpha, low=0)
        leaves = len(taxonomy.leaves) if isinstance(taxonomy, Taxonomy) else None
        super().__init__(
            taxonomy=taxonomy, classes=classes, features=features, class_weight=class_weight, _width=leaves
        )
        self.alpha = alpha
        self.normalize = normalize

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = functional.hierarchical_cross_entropy(
            outputs, self.known(batch), self.tree(), alpha=self.alpha, normalize=self.normalize
        )
        return self.only_term("hierarchical_cross_entropy", losses, batch)

    def node_log_probs(self, outputs: Tensor) -> Tensor:
        """(..., N - 1) log-probabilities of all non-root nodes: those of their leaves, summed."""
        subtree = open_subtree_logsumexp(inputs.single(self, outputs), self.tree())
        return subtree[..., 1:] - subtree[..., :1]

    def log_probs(self, outputs: Tensor) -> Tensor:
        return F.log_softmax(inputs.single(self, outputs), -1)
