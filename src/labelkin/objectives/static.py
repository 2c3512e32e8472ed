"""Static labels (Chen et al.), 001's StaticLabel baseline: the vector of a class is given, and the network aims at it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.functional import huber_to_vectors, label_distances
from labelkin.objectives import inputs
from labelkin.objectives.base import Objective
from labelkin.objectives.batch import Batch, Loss
from labelkin.relations.matrices import count_classes
from labelkin.relations.vectors import read_vectors

if TYPE_CHECKING:
    from labelkin.objectives.context import Context


class StaticLabels(Objective):
    """The Huber loss (delta 1) between the output and its class's vector; the nearest vector is the prediction.

    `vectors` (K, D) are a text encoder's of the class names in 001 (`labelkin.data.class_vectors`); any that set the
    classes apart will do. Outputs are D wide.
    """

    has_probabilities: ClassVar[bool] = False

    vectors: Tensor

    def __init__(
        self,
        *,
        classes: int | Sequence[str],
        vectors: Any,
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        given = read_vectors(vectors).to(torch.get_default_dtype())
        count = count_classes(classes)
        if given.dim() != 2 or len(given) != count or not given.shape[1]:
            raise InputError(f"vectors: expected shape ({count}, D), one row a class, got {tuple(given.shape)}.")
        if len(torch.unique(given, dim=0)) < count:
            raise InputError("vectors: two classes have the same vector and could never be told apart.")
        super().__init__(classes=classes, features=features, class_weight=class_weight, _width=given.shape[1])
        self.register_buffer("vectors", given)

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        given = super().defaults(context, options)
        return given if "vectors" in options else {**given, "vectors": context.class_vectors()}

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = huber_to_vectors(outputs, self.vectors[batch.target].to(outputs.dtype))
        return self.only_term("huber", losses, batch)

    def scores(self, outputs: Tensor) -> Tensor:
        """(..., K) minus the distance to each class's vector."""
        z = inputs.single(self, outputs)
        return -label_distances(z, self.vectors.to(z.dtype))

    def log_probs(self, outputs: Tensor) -> Tensor:
        raise InputError("StaticLabels defines no probabilities; scores() ranks the classes by distance.")

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """(K, D) the vectors given."""
        return self.vectors[self.rows(classes, width=self.width)]
