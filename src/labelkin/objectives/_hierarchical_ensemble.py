"""Hierarchical ensembles (HiE, Jain et al., 2023): a classifier of the parents corrects the classifier of the classes."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import check_number
from labelkin.functional import cross_entropy
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import Shared
from labelkin.objectives._tree import LeafObjective, grouped_target
from labelkin.objectives._tree_buffers import in_class_order
from labelkin.structure import Taxonomy


class HierarchicalEnsemble(LeafObjective):
    """Train a classifier z of the classes and a classifier a of their parents with `CE(z, y) + coarse * CE(a, parent of y)`.

    The probability of a class is proportional to `softmax(z)_y softmax(a)_(parent of y)`: the classifier of the parents makes
    fewer mistakes between distant classes and corrects the other one (Jain et al., 2023, "Test-time amendment with a coarse
    classifier for fine-grained classification"). The authors train two networks. Here two linear heads share one backbone, so
    that it is compared with other objectives on equal networks; `labelkin.decide.hierarchical_ensemble` combines the
    probabilities of two networks. Outputs are the logits of the classes and those of the parents side by side.

    Args:
        taxonomy: the tree of the classes. A parent counts only the classes directly below it.
        coarse: weight of the loss of the parents, at least 0.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms `cross_entropy` and `parents`.

    Example:
        >>> import torch
        >>> from labelkin import HierarchicalEnsemble, Taxonomy
        >>> head = HierarchicalEnsemble(Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]}))
        >>> outputs = torch.tensor([[0.30, 0.20, 0.50, 0.75, 0.25]]).log()  # cat, dog, car; animal, vehicle
        >>> head.probs(outputs)
        tensor([[0.4500, 0.3000, 0.2500]])
    """

    parent_of_class: Tensor

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        coarse: float = 1.0,
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        check_number("coarse", coarse, low=0)
        tree = in_class_order(taxonomy, classes)
        parents, places = np.unique(tree.parents[tree.leaves], return_inverse=True)
        super().__init__(taxonomy, classes=classes, _width=len(tree.leaves) + len(parents), **shared)
        self.coarse, self.num_parents = coarse, len(parents)
        self.register_buffer("parent_of_class", torch.from_numpy(places.reshape(-1)), persistent=False)

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        fine, coarse = self._split(outputs)
        hard = cross_entropy(fine, batch.target)
        parent = grouped_target(batch.target, self.parent_of_class, self.num_parents)
        parents = self.coarse * cross_entropy(coarse, parent)
        terms = {"cross_entropy": self._reduce(hard, batch), "parents": self._reduce(parents, batch)}
        return Loss(self._reduce(hard + parents, batch), terms)

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return the normalized sums (..., K) of the log-probabilities of the classes and of their parents."""
        fine, coarse = self._split(inputs.single(self, outputs))
        own = F.log_softmax(fine, -1)
        joint = own + F.log_softmax(coarse, -1)[..., self.parent_of_class]
        # Where the two classifiers exclude each other by logits of -inf, the classes alone decide.
        possible = torch.isfinite(joint).any(-1, keepdim=True)
        return F.log_softmax(torch.where(possible, joint, own), -1)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        fine, coarse = torch.split(outputs, [self.num_classes, self.num_parents], -1)
        return fine, coarse
