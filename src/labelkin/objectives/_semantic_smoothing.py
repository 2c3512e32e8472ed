"""Semantic target smoothing (000 Eq. 1-4): part of a class's target goes to related classes."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number, counted
from labelkin.functional import is_soft
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._class_targets import class_target_losses
from labelkin.objectives._options import FlatShared
from labelkin.objectives._validation import LARGEST_TABLE
from labelkin.relations import Rows, as_rows, as_targets, smooth

if TYPE_CHECKING:
    from labelkin.objectives._context import Context


class SemanticSmoothing(Objective):
    """Train with cross entropy to row y of `T = sigma * relation + (1 - sigma) * I` (000 Eq. 1).

    A class without related classes keeps its one-hot target.

    Args:
        classes: number of classes, or their names.
        relation: K x K numbers or `Rows` (see `labelkin.relations`): how sigma is divided among related classes.
        sigma: share of the target that goes to related classes. 000 tries up to 0.8 on MNIST and 0.5 on CIFAR-10; the
            default is our choice.
        targets: T itself instead of a relation, such as the soft labels of Bertinetto et al. (`relations.tree_targets`).
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss.

    Example:
        >>> import torch
        >>> from labelkin import SemanticSmoothing
        >>> head = SemanticSmoothing(classes=3, relation=[[0, 1, 0], [1, 0, 0], [0, 0, 0]], sigma=0.2)
        >>> head.label_vectors()
        tensor([[0.8000, 0.2000, 0.0000],
                [0.2000, 0.8000, 0.0000],
                [0.0000, 0.0000, 1.0000]])
        >>> loss = head.loss(torch.randn(8, 3), torch.randint(3, (8,)))
    """

    linear_in_target: ClassVar[bool] = True

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        relation: Any = None,
        sigma: float = 0.1,
        targets: Any = None,
        **shared: Unpack[FlatShared],
    ) -> None:
        if (relation is None) == (targets is None):
            raise InputError(
                "SemanticSmoothing: expected either relation= (with sigma=) or targets=, got both or neither."
            )
        check_number("sigma", sigma, low=0, high=1)
        super().__init__(classes, **shared)
        self.sigma = sigma
        rows = as_targets(targets, self.num_classes) if relation is None else self._smoothed(relation)
        self.targets = rows.to(torch.get_default_dtype())

    def _smoothed(self, relation: Any) -> Rows:
        return smooth(as_rows(relation, self.num_classes), self.sigma)

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        given = super().defaults(context, options)
        return given if "relation" in options or "targets" in options else {**given, "relation": context.kin()}

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        return self._only_term("cross_entropy", row_losses(outputs, batch.target, self.targets), batch)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the targets, (K, K), or only the rows of `classes`."""
        return self.targets.forward(self._rows(classes))


def row_losses(outputs: Tensor, target: Tensor, targets: Rows) -> Tensor:
    """Return the cross entropy (n,) to rows of T for class positions, or to their mixture for class probabilities."""
    rows = partial(target_rows, targets, target, outputs.dtype)
    return class_target_losses(outputs, target, targets.class_targets, rows)


def target_rows(targets: Rows, target: Tensor, dtype: torch.dtype) -> Tensor:
    """Return (n, K) rows of T for class positions, or their mixture for class probabilities."""
    if not is_soft(target):
        return targets.forward(target).to(dtype)
    if targets.classes**2 > LARGEST_TABLE:
        raise InputError(
            f"target: class probabilities need all {counted(targets.classes, 'row')} of the targets at once; "
            f"give class positions."
        )
    return target @ targets.dense().to(target.dtype)
