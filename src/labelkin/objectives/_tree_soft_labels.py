"""Soft labels from tree distances (Bertinetto et al., 2020)."""

from collections.abc import Sequence
from typing import ClassVar, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import check_choice
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import Shared
from labelkin.objectives._semantic_smoothing import row_losses
from labelkin.objectives._tree import LeafObjective
from labelkin.relations import tree_targets
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy


class TreeSoftLabels(LeafObjective):
    """Train with `-sum_k t_k log p_k`, where `t = softmax(-beta d(y, .) / max d)` (Bertinetto et al., 2020).

    d is the distance in the tree, and the class itself takes part in the softmax with distance 0 ("Making better mistakes:
    leveraging class hierarchies with deep networks", Sec. 3.2). `SemanticSmoothing` with the relation of a tree differs: there
    the class keeps a fixed share of the target.

    Args:
        taxonomy: the tree of the classes.
        beta: how fast weights fall with distance, above 0. The authors try values from 4 (soft) to 30 (nearly one-hot); the
            default is one of theirs.
        distance: the kind of distance; see `Taxonomy.distance`. The authors' code uses "depth", which equals "height" if all
            leaves have one depth.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, TreeSoftLabels
        >>> head = TreeSoftLabels(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), beta=4.0)
        >>> head.label_vectors([0])  # cat, dog, car
        tensor([[0.8668, 0.1173, 0.0159]])
        >>> head.loss(torch.zeros(1, 3), torch.tensor([0]))
        tensor(1.0986)
    """

    softmax_logits: ClassVar[bool] = True

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        beta: float = 10.0,
        distance: DistanceKind = "height",
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        check_choice("distance", distance, DISTANCES)
        super().__init__(taxonomy, classes=classes, **shared)
        self.beta, self.distance = beta, distance
        rows = tree_targets(self.taxonomy, beta=beta, distance=distance, structured=True)
        self.targets = rows.to(torch.get_default_dtype())

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        return self._only_term("cross_entropy", row_losses(outputs, batch.target, self.targets), batch)

    def log_probs(self, outputs: Tensor) -> Tensor:
        return F.log_softmax(inputs.single(self, outputs), -1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the soft labels, (K, K), or only the rows of `classes`."""
        return self.targets.forward(self._rows(classes))
