"""Hierarchy-based embeddings (Barz & Denzler, 2019): unit vectors of classes whose inner products are tree similarities."""

from collections.abc import Sequence
from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import check_choice, check_number
from labelkin.functional import cosine_to_vectors, cross_entropy, frame_vectors
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import Shared
from labelkin.objectives._tree import LeafObjective
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy


class UnitSphere(LeafObjective):
    """Train outputs z with `1 - cos(z, v_y) + ce_weight * CE(A z + b, y)` for fixed unit vectors v of the classes.

    The inner products of the vectors are the similarities `1 - d / max d` in the tree (Barz & Denzler, 2019, "Hierarchy-based
    image embeddings for semantic image retrieval", Sec. 3). With `ce_weight` above 0, a linear classifier on z is trained with
    them and predicts, and its softmax gives the probabilities; A starts as the vectors (ours), so that it predicts from the
    first step. With `ce_weight=0`, the class of the nearest vector is the
    prediction, and the probabilities are the softmax of the cosines (ours: the paper defines none), which need a fitted
    temperature. The authors' code applies ReLU and batch norm to the unit vector of z before the classifier; here it reads z
    itself, so that a loss depends on no other sample.

    Args:
        taxonomy: the tree of the classes.
        ce_weight: weight of the cross entropy, at least 0; 0.1 is the authors' value, and 0 their loss without classifier.
        distance: the kind of distance; see `Taxonomy.distance`. The authors use "height".
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms `cosine`, and `cross_entropy` if it has a weight.
        Outputs are K wide.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, UnitSphere
        >>> head = UnitSphere(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), ce_weight=0.0)
        >>> v = head.label_vectors()
        >>> (v @ v.T).round(decimals=2)  # cat, dog, car
        tensor([[1.0000, 0.5000, 0.0000],
                [0.5000, 1.0000, 0.0000],
                [0.0000, 0.0000, 1.0000]])
        >>> head.predict(v)
        tensor([0, 1, 2])
    """

    vectors: Tensor

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        ce_weight: float = 0.1,
        distance: DistanceKind = "height",
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        check_number("ce_weight", ce_weight, low=0)
        check_choice("distance", distance, DISTANCES)
        super().__init__(taxonomy, classes=classes, **shared)
        self.ce_weight, self.distance = ce_weight, distance
        apart = torch.from_numpy(self.taxonomy.distance(distance))
        vectors = frame_vectors(1 - apart / apart.max())
        self.register_buffer("vectors", vectors.to(torch.get_default_dtype()), persistent=False)
        self.classifier = nn.Linear(self.width, self.num_classes) if ce_weight else None
        if self.classifier is not None:
            with torch.no_grad():
                self.classifier.weight.copy_(vectors)
                self.classifier.bias.zero_()

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        cosine = cosine_to_vectors(outputs, batch.target, self.vectors.to(outputs.dtype))
        if self.classifier is None:
            return self._only_term("cosine", cosine, batch)
        hard = cross_entropy(self._logits(outputs), batch.target)
        terms = {"cosine": self._reduce(cosine, batch), "cross_entropy": self._reduce(hard, batch)}
        return Loss(self._reduce(cosine + self.ce_weight * hard, batch), terms)

    def _logits(self, outputs: Tensor) -> Tensor:
        """Return the logits (..., K) of the classifier, or the cosines without one, in the precision of the outputs."""
        if self.classifier is None:
            return self._products(F.normalize(outputs, dim=-1), self.vectors)
        return self._products(outputs, self.classifier.weight) + self.classifier.bias.to(outputs.dtype)

    def scores(self, outputs: Tensor) -> Tensor:
        """Return the log-probabilities (..., K) of the classifier; without one, the cosines to the vectors of the classes."""
        return self._logits(inputs.single(self, outputs)) if self.classifier is None else self.log_probs(outputs)

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return the log-softmax (..., K) of the classifier's logits; without a classifier, that of the cosines (ours)."""
        return F.log_softmax(self._logits(inputs.single(self, outputs)), -1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the vectors of the classes, (K, K) with unit rows, or only the rows of `classes`."""
        return self.vectors[self._rows(classes)]
