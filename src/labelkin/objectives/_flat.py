"""Objectives that use no relation between classes: cross entropy, label smoothing and the confidence penalty."""

from collections.abc import Sequence
from typing import ClassVar, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import check_number
from labelkin.functional import confidence_penalty, cross_entropy, smoothed_cross_entropy
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import FlatShared


class OneHot(Objective):
    """Cross entropy to the true class: the reference of every comparison.

    As a criterion it is `torch.nn.CrossEntropyLoss`, with the classes on the last axis.

    Args:
        classes, **shared: See `Objective`.

    >>> import torch
    >>> from labelkin import OneHot
    >>> outputs, target = torch.randn(8, 3), torch.tensor([0, 1, 2, 0, 1, 2, 0, -100])
    >>> weight = torch.tensor([1.0, 2.0, 3.0])
    >>> theirs = torch.nn.CrossEntropyLoss(weight=weight)(outputs, target)
    >>> torch.allclose(OneHot(3, class_weight=weight)(outputs, target), theirs)
    True
    """

    linear_in_target: ClassVar[bool] = True

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        return self._only_term("cross_entropy", cross_entropy(outputs, batch.target), batch)


class LabelSmoothing(Objective):
    """Cross entropy to `1 - smoothing` on the true class and `smoothing / K` on every class (Szegedy et al.; 004 Eq. 2).

    Class weights act as in `torch.nn.CrossEntropyLoss(weight=..., label_smoothing=...)`: each class's share of the target is
    multiplied by the weight of that class, and a mean is divided by the weights of the true classes.

    Args:
        classes, **shared: See `Objective`.
        smoothing: The share of the target that all K classes divide equally, from 0 to 1.

    >>> import torch
    >>> from labelkin import LabelSmoothing
    >>> LabelSmoothing(4, smoothing=0.2)(torch.tensor([[2.0, 0.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.6408)
    """

    linear_in_target: ClassVar[bool] = True

    def __init__(self, classes: int | Sequence[str], *, smoothing: float = 0.1, **shared: Unpack[FlatShared]) -> None:
        check_number("smoothing", smoothing, low=0, high=1)
        super().__init__(classes, **shared)
        self.smoothing = smoothing

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        if self.class_weight is None:
            return self._only_term(
                "cross_entropy", smoothed_cross_entropy(outputs, batch.target, self.smoothing), batch
            )
        log_probs = F.log_softmax(outputs, -1)
        true = cross_entropy(outputs, batch.target) * self._class_factor(batch, outputs.dtype)
        every = -(log_probs * self.class_weight.to(outputs.dtype)).mean(-1)
        losses = (1 - self.smoothing) * true + self.smoothing * every
        total = self._reduce(losses, batch, class_weighted=True)
        return Loss(total, {"cross_entropy": total})

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the smoothed targets (K, K), or only the rows of `classes`.

        >>> from labelkin import LabelSmoothing
        >>> LabelSmoothing(4, smoothing=0.2).label_vectors([0])
        tensor([[0.8500, 0.0500, 0.0500, 0.0500]])
        """
        one_hot = F.one_hot(self._rows(classes), self.num_classes).to(torch.get_default_dtype())
        return (1 - self.smoothing) * one_hot + self.smoothing / self.num_classes


class ConfidencePenalty(Objective):
    """Cross entropy plus `strength` times the negative entropy of the predicted probabilities (002 Eq. 6; Pereyra et al.).

    The papers give no value of the strength; the default of 0.1 is ours.

    Args:
        classes, **shared: See `Objective`.
        strength: The weight of the negative entropy, at least 0.

    >>> import torch
    >>> from labelkin import ConfidencePenalty
    >>> ConfidencePenalty(2, strength=0.5)(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.3466)
    """

    linear_in_target: ClassVar[bool] = True

    def __init__(self, classes: int | Sequence[str], *, strength: float = 0.1, **shared: Unpack[FlatShared]) -> None:
        check_number("strength", strength, low=0)
        super().__init__(classes, **shared)
        self.strength = strength

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = confidence_penalty(outputs, batch.target, self.strength)
        return self._only_term("confidence_penalty", losses, batch)
