"""The baselines that know nothing of kin: one-hot, uniform label smoothing, the confidence penalty."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import check_number
from labelkin.functional import confidence_penalty, cross_entropy, smoothed_cross_entropy
from labelkin.objectives.base import Objective
from labelkin.objectives.batch import Batch, Loss


class OneHot(Objective):
    """Cross entropy to the true class: the reference of every comparison."""

    linear_in_target: ClassVar[bool] = True

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        return self.only_term("cross_entropy", cross_entropy(outputs, batch.target), batch)


class LabelSmoothing(Objective):
    """Cross entropy to `(1 - smoothing)` on the class and the rest shared by all K classes (Szegedy et al.; 004 Eq. 2)."""

    linear_in_target: ClassVar[bool] = True

    def __init__(
        self,
        *,
        classes: int | Sequence[str],
        smoothing: float = 0.1,
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        check_number("smoothing", smoothing, low=0, high=1)
        super().__init__(classes=classes, features=features, class_weight=class_weight)
        self.smoothing = smoothing

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = smoothed_cross_entropy(outputs, batch.target, self.smoothing)
        return self.only_term("cross_entropy", losses, batch)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        one_hot = F.one_hot(self.rows(classes), self.num_classes).to(torch.get_default_dtype())
        return (1 - self.smoothing) * one_hot + self.smoothing / self.num_classes


class ConfidencePenalty(Objective):
    """Cross entropy plus `strength` times the negative entropy of the output (002 Eq. 6; Pereyra et al.).

    No paper here prints the strength; .1 is ours.
    """

    linear_in_target: ClassVar[bool] = True

    def __init__(
        self,
        *,
        classes: int | Sequence[str],
        strength: float = 0.1,
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        check_number("strength", strength, low=0)
        super().__init__(classes=classes, features=features, class_weight=class_weight)
        self.strength = strength

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = confidence_penalty(outputs, batch.target, self.strength)
        return self.only_term("confidence_penalty", losses, batch)
