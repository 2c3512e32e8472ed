"""HAFrame (Liang & Davis, 2023): a fixed classifier whose vectors have the angles that the tree prescribes."""

from collections.abc import Sequence
from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import check_choice, check_number
from labelkin.functional import frame_similarity, frame_vectors, haframe
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import Shared
from labelkin.objectives._tree import LeafObjective
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy


class HAFrame(LeafObjective):
    """Train features f for a fixed frame W, with `(1 - share) CE(W f, y) + share * sum_k (cos(f, w_k) - S_yk)^2`.

    The rows of W are unit vectors with `W W^T = S` and `S = (1 - s) exp(-gamma d / max d) + s`, where d is the distance in the
    tree and s the smallest number in [-1, -1 / (K - 1)] for which such vectors exist (Liang & Davis, 2023, "Inducing neural
    collapse to a fixed hierarchy-aware frame for reducing mistake severity"). Outputs are the K features f; the logits are
    `W f`. s is computed exactly instead of by a search over 100 values, and W is the symmetric square root of S instead of a
    random rotation of it, which the linear head in front of it can undo.

    Args:
        taxonomy: the tree of the classes.
        gamma: how fast similarity falls with distance, above 0; 2 is the authors' value for CIFAR-100.
        share: weight of the cosine term, from 0 to 1; 0.4 is the authors' value for CIFAR-100.
        distance: the kind of distance; see `Taxonomy.distance`. The authors' code uses "depth", which equals "height" if all
            leaves have one depth.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the input of the head; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms `cross_entropy` and `cosine`.

    Example:
        >>> import torch
        >>> from labelkin import HAFrame, Taxonomy
        >>> head = HAFrame(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), features=4)
        >>> head.loss(head(torch.randn(8, 4)), torch.randint(3, (8,))).backward()
        >>> w = head.label_vectors()
        >>> bool((w @ w.T)[0, 1] > (w @ w.T)[0, 2])  # cat is nearer to dog than to car
        True
    """

    vectors: Tensor
    similarity: Tensor

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        gamma: float = 2.0,
        share: float = 0.4,
        distance: DistanceKind = "height",
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        check_number("gamma", gamma, low=0, open_low=True)
        check_number("share", share, low=0, high=1)
        check_choice("distance", distance, DISTANCES)
        super().__init__(taxonomy, classes=classes, **shared)
        self.gamma, self.share, self.distance = gamma, share, distance
        similarity = frame_similarity(torch.from_numpy(self.taxonomy.distance(distance)), gamma)
        self.register_buffer("similarity", similarity.to(torch.get_default_dtype()), persistent=False)
        self.register_buffer("vectors", frame_vectors(similarity).to(torch.get_default_dtype()), persistent=False)

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        vectors, similarity = self.vectors.to(outputs.dtype), self.similarity.to(outputs.dtype)
        losses, hard, cosine = haframe(outputs, batch.target, vectors, similarity, share=self.share)
        terms = {"cross_entropy": self._reduce(hard, batch), "cosine": self._reduce(cosine, batch)}
        return Loss(self._reduce(losses, batch), terms)

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return the log-softmax (..., K) of `W f`."""
        return F.log_softmax(self._products(inputs.single(self, outputs), self.vectors), -1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the frame W, (K, K) with unit rows, or only the rows of `classes`."""
        return self.vectors[self._rows(classes)]
