"""Metrics that count every class the same, however rare it is."""

import torch
from torch import Tensor

from labelkin._arrays import check_class_positions
from labelkin.metrics._basic import check_alike, mean_of
from labelkin.metrics._result import Metric


def balanced_accuracy(predicted: Tensor, target: Tensor) -> Metric:
    """Return the mean over the classes of the share of their samples that are right: 0 to 1, higher is better.

    Args:
        predicted: (...,) predicted class positions.
        target: (...,) true class positions.

    Returns:
        A `Metric` with one value per class that occurs in `target`, in their order. Without samples the mean is NaN, with a
        warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.balanced_accuracy(torch.tensor([0, 0, 0, 0]), torch.tensor([0, 0, 0, 1])).mean
        0.5
    """
    true, _, right = _counts(predicted, target)
    return mean_of("balanced_accuracy", (right / true)[true > 0])


def macro_f1(predicted: Tensor, target: Tensor) -> Metric:
    """Return the mean F1 score of the classes, `2 right / (true + predicted)`: 0 to 1, higher is better.

    The mean is over the classes that occur as true or predicted ones, as in scikit-learn.

    Args:
        predicted: (...,) predicted class positions.
        target: (...,) true class positions.

    Returns:
        A `Metric` with one value per class that occurs, in their order. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.macro_f1(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])).values
        tensor([0.6667, 0.6667], dtype=torch.float64)
    """
    true, answered, right = _counts(predicted, target)
    both = true + answered
    return mean_of("macro_f1", (2 * right / both)[both > 0])


def _counts(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return how often each class is the true one, the prediction, and both."""
    check_alike(predicted, target)
    check_class_positions("predicted", predicted)
    predicted, target = predicted.reshape(-1).cpu().long(), target.reshape(-1).cpu().long()
    classes = int(torch.cat([predicted, target]).max()) + 1 if target.numel() else 0

    def count(positions: Tensor) -> Tensor:
        return torch.bincount(positions, minlength=classes).double()

    return count(target), count(predicted), count(target[predicted == target])
