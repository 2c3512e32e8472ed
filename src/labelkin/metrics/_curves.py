"""How fast a run learned, from its accuracy after each epoch. Importing this file does not import torch."""

from collections.abc import Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

from labelkin._checks import InputError
from labelkin.metrics._result import Metric, warn_undefined

if TYPE_CHECKING:
    from torch import Tensor

    from labelkin.metrics._validation import Numbers


def auac(accuracies: "Numbers") -> Metric:
    """Return the average area under the accuracy curve (001): the mean accuracy over epochs, 0 to 1, higher is better.

    `values` are the accuracies, in the units of what is given, which may be percent. A curve without epochs is refused.
    """
    curve = _curve("accuracies", accuracies)
    return Metric(float(curve.mean()), curve)


def epochs_saved(curve: "Numbers", reference_curve: "Numbers") -> Metric:
    """Return the share of the reference's epochs saved until its best accuracy is reached (001); higher is better.

    The definition is that of `share_of_epochs_saved`. `values` says for each epoch of `curve` whether it is at least as
    good as the reference at its best. Where no epoch is, the metric is undefined: NaN, with a warning.
    """
    ours, reference = _curve("curve", curve), _curve("reference_curve", reference_curve)
    share = share_of_epochs_saved(ours.tolist(), reference.tolist())
    if share is None:
        warn_undefined("epochs_saved: the curve never reaches the reference's best, so it is undefined (NaN).")
    return Metric(nan if share is None else share, ours >= reference.max())


def share_of_epochs_saved(curve: Sequence[float], reference_curve: Sequence[float]) -> float | None:
    """Return `1 - e / E`, or None where the reference's best is never reached.

    `e` is the first epoch, counted from 1, in which `curve` (001: the mean over seeds) is at least as good as the
    reference at its best; `E` is the number of epochs that the reference ran. The result lies below 1, and below 0 for a
    longer run that gets there late.
    """
    epoch = first_epoch_reaching(curve, reference_curve)
    return None if epoch is None else 1 - epoch / len(reference_curve)


def first_epoch_reaching(curve: Sequence[float], reference_curve: Sequence[float]) -> int | None:
    """Return the first epoch, counted from 1, in which `curve` reaches the reference's best; None where it never does.

    Epochs that were not measured are NaN: they reach nothing, and count for nothing in the reference.
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
        raise InputError(f"{argument}: expected an accuracy for each epoch, got none.")
    return found
