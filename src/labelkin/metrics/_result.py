"""The result of a metric, and the warning for undefined metrics."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Metric:
    """The result of a metric: one number, and the values behind it.

    Attributes:
        mean: The number to report, NaN if the metric is undefined. It is the mean of `values` unless the function says
            otherwise.
        values: One entry per sample; metrics of classes, bins or epochs have one per class, bin or epoch.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> result = metrics.accuracy(torch.tensor([0, 1]), torch.tensor([0, 0]))
        >>> result.mean, result.values
        (0.5, tensor([ True, False]))
    """

    mean: float
    values: "Tensor"


class UndefinedMetric(UserWarning):
    """Warning that a metric is undefined for its arguments, and therefore NaN."""


def warn_undefined(sentence: str, *, stacklevel: int = 3) -> None:
    warnings.warn(sentence, UndefinedMetric, stacklevel=stacklevel)
