"""The pre-trained label embedding network (003, App. C): an embedding learned in one run softens targets in the next."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import torch
from torch import Tensor

from labelkin.functional import DenseTargets, cross_entropy, is_soft
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._class_targets import class_target_losses
from labelkin.objectives._options import FlatShared
from labelkin.relations import read_square

if TYPE_CHECKING:
    from labelkin.objectives._context import Context


class PretrainedLabelEmbedding(Objective):
    """Train with `CE(z, y) + CE(z, softmax(E_y))` for a given, frozen embedding E (003 Eq. 17, App. C).

    Args:
        classes: number of classes, or their names.
        embedding: (K, K) logits, such as `LabelEmbedding.label_vectors()` of an earlier run.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms `hard` and `soft`.

    Example:
        >>> import torch
        >>> from labelkin import PretrainedLabelEmbedding
        >>> head = PretrainedLabelEmbedding(classes=2, embedding=2 * torch.eye(2))
        >>> head.loss(torch.zeros(1, 2), torch.tensor([0]))
        tensor(1.3863)
    """

    linear_in_target: ClassVar[bool] = True
    embedding: Tensor

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        embedding: Any,
        **shared: Unpack[FlatShared],
    ) -> None:
        super().__init__(classes, **shared)
        given = read_square("embedding", embedding, self.num_classes)
        self.register_buffer("embedding", given.to(torch.get_default_dtype()))

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        given = super().defaults(context, options)
        return given if "embedding" in options else {**given, "embedding": context.embedding()}

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        rows = torch.softmax(self.embedding.to(outputs.dtype), -1)
        target = batch.target
        hard = self._reduce(cross_entropy(outputs, target), batch)
        losses = class_target_losses(
            outputs, target, lambda: DenseTargets(rows), lambda: target @ rows if is_soft(target) else rows[target]
        )
        soft = self._reduce(losses, batch)
        return Loss(hard + soft, {"hard": hard, "soft": soft})

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the embedding, (K, K), or only the rows of `classes`."""
        return self.embedding[self._rows(classes)]
