"""What every metric returns, and the warning where a metric has no value."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Metric:
    """The result of a metric: one number, and the values that it sums up.

    `mean` is the number to report, NaN where the metric is undefined. It is the mean of `values` unless the function says
    otherwise. `values` has one entry per sample; metrics of classes, bins or epochs have one per class, bin or epoch.
    """

    mean: float
    values: "Tensor"


class UndefinedMetric(UserWarning):
    """A metric has no value for what it was given, and is NaN."""


def warn_undefined(sentence: str, *, stacklevel: int = 3) -> None:
    warnings.warn(sentence, UndefinedMetric, stacklevel=stacklevel)
