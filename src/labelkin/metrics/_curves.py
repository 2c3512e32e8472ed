"""Metrics of learning speed, from the accuracy after each epoch. Importing this file does not import torch."""

from collections.abc import Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

from labelkin._checks import InputError
from labelkin.metrics._result import Metric, warn_undefined

if TYPE_CHECKING:
    from torch import Tensor

    from labelkin.metrics._validation import Numbers


def auac(accuracies: "Numbers") -> Metric:
    """Return the average area under the accuracy curve (001), which is the mean accuracy over epochs; higher is better.

    Args:
        accuracies: (epochs,) accuracies, as shares or in percent; at least one.

    Returns:
        A `Metric` with one value per epoch, in the units of the accuracies.

    Example:
        >>> from labelkin import metrics
        >>> metrics.auac([0.25, 0.75]).mean
        0.5
    """
    curve = _curve("accuracies", accuracies)
    return Metric(float(curve.mean()), curve)


def epochs_saved(curve: "Numbers", reference_curve: "Numbers") -> Metric:
    """Return the share of the reference's epochs that are saved until its best accuracy is reached (001); higher is better.

    Args:
        curve: (epochs,) accuracies of the run.
        reference_curve: (epochs,) accuracies of the reference.

    Returns:
        A `Metric` whose mean is that of `share_of_epochs_saved` and whose values are, for each epoch of `curve`, whether it
        reaches the best accuracy of the reference. If no epoch does, the mean is NaN, with a warning.

    Example:
        >>> from labelkin import metrics
        >>> metrics.epochs_saved([0.5, 0.9, 0.9, 0.9], [0.3, 0.6, 0.8, 0.9]).mean
        0.5
    """
    ours, reference = _curve("curve", curve), _curve("reference_curve", reference_curve)
    share = share_of_epochs_saved(ours.tolist(), reference.tolist())
    if share is None:
        warn_undefined("epochs_saved: the curve never reaches the reference's best, so it is undefined (NaN).")
    return Metric(nan if share is None else share, ours >= reference.max())


def share_of_epochs_saved(curve: Sequence[float], reference_curve: Sequence[float]) -> float | None:
    """Return `1 - e / E` for the first epoch `e` that reaches the reference's best, and the `E` epochs of the reference.

    Args:
        curve: Accuracies of the run after each epoch (001: means over seeds).
        reference_curve: Accuracies of the reference.

    Returns:
        A number below 1, negative for a longer run that reaches the best late; None if it is never reached.

    Example:
        >>> from labelkin import metrics
        >>> metrics.share_of_epochs_saved([0.5, 0.9], [0.3, 0.6, 0.8, 0.9])
        0.5
    """
    epoch = first_epoch_reaching(curve, reference_curve)
    return None if epoch is None else 1 - epoch / len(reference_curve)


def first_epoch_reaching(curve: Sequence[float], reference_curve: Sequence[float]) -> int | None:
    """Return the first epoch, counted from 1, in which a curve reaches the reference's best.

    Args:
        curve: Accuracies of the run after each epoch; NaN for epochs that were not measured.
        reference_curve: Accuracies of the reference; NaN for epochs that were not measured.

    Returns:
        The epoch, or None if the best is never reached or nothing was measured.

    Example:
        >>> from labelkin import metrics
        >>> metrics.first_epoch_reaching([0.5, 0.9], [0.3, 0.6, 0.8, 0.9])
        2
    """
    measured = [value for value in reference_curve if not isnan(value)]
    if not measured:
        return None
    best = max(measured)
    return next((epoch for epoch, value in enumerate(curve, 1) if value >= best), None)


def _curve(argument: str, given: "Numbers") -> "Tensor":
    from labelkin.metrics._validation import numbers  # with torch

    found = numbers(argument, given)
    if not len(found):
        raise InputError(f"{argument}: expected one accuracy per epoch, got none.")
    return found
