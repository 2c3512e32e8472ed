"""Static labels (Chen et al.), the StaticLabel baseline of 001: the network regresses a given vector per class."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.functional import huber_to_vectors, label_distances
from labelkin.objectives import _validation as inputs
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import FlatShared
from labelkin.relations import count_classes, read_vectors

if TYPE_CHECKING:
    from labelkin.objectives._context import Context


class StaticLabels(Objective):
    """Regress the vector of the class with the Huber loss (delta 1); the nearest vector is the prediction (Chen et al.).

    Args:
        classes: number of classes, or their names.
        vectors: (K, D) one distinct vector per class. 001 uses a text encoder's vectors of the class names
            (`labelkin.data.class_vectors`).
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; outputs are D wide.

    Example:
        >>> import torch
        >>> from labelkin import StaticLabels
        >>> head = StaticLabels(classes=2, vectors=torch.eye(2))
        >>> head.loss(torch.tensor([[1.0, 1.0]]), torch.tensor([0]))
        tensor(0.2500)
        >>> head.scores(torch.tensor([[0.9, 0.2]])).argmax(-1)
        tensor([0])
    """

    softmax_logits: ClassVar[bool] = False

    has_probabilities: ClassVar[bool] = False

    vectors: Tensor

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        vectors: Any,
        **shared: Unpack[FlatShared],
    ) -> None:
        given = read_vectors(vectors).to(torch.get_default_dtype())
        count = count_classes(classes)
        if given.dim() != 2 or len(given) != count or not given.shape[1]:
            raise InputError(f"vectors: expected shape ({count}, D), one row per class, got {tuple(given.shape)}.")
        if len(torch.unique(given, dim=0)) < count:
            raise InputError("vectors: expected a different vector for every class, got the same one for two classes.")
        super().__init__(classes, _width=given.shape[1], **shared)
        self.register_buffer("vectors", given)

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        given = super().defaults(context, options)
        return given if "vectors" in options else {**given, "vectors": context.class_vectors()}

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = huber_to_vectors(outputs, self.vectors[batch.target].to(outputs.dtype))
        return self._only_term("huber", losses, batch)

    def scores(self, outputs: Tensor) -> Tensor:
        """Return (..., K): minus the distance to the vector of each class."""
        z = inputs.single(self, outputs)
        return -label_distances(z, self.vectors.to(z.dtype))

    def log_probs(self, outputs: Tensor) -> Tensor:
        raise InputError("StaticLabels defines no probabilities; scores() ranks the classes by distance.")

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the given vectors, (K, D), or only the rows of `classes`."""
        return self.vectors[self._rows(classes, width=self.width)]
