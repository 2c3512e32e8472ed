"""How fast a run learned, from its accuracy after each epoch."""

from torch import Tensor

from labelkin._checks import InputError
from labelkin.metrics.inputs import Numbers, numbers


def auac(accuracies: Numbers) -> float:
    """Average area under the accuracy curve (001): the mean accuracy over epochs, 0 to 1, higher is better.

    In the units of what is given, percent as well. A curve without epochs is refused.
    """
    return float(_curve("accuracies", accuracies).mean())


def epochs_saved(curve: Numbers, reference_curve: Numbers) -> float | None:
    """The share of the reference's epochs saved until its best accuracy is reached (001): `1 - e/E`, higher is better.

    `e` is the first epoch, counted from 1, in which `curve` (001: the mean over seeds) is at least as good as the
    reference run at its best; `E` is the number of epochs that the reference ran. Below 1, and below 0 for a longer run
    that gets there late. `None` where the curve never gets there.
    """
    reference = _curve("reference_curve", reference_curve)
    reached = (_curve("curve", curve) >= reference.max()).nonzero().flatten()
    return 1 - (int(reached[0]) + 1) / len(reference) if len(reached) else None


def _curve(argument: str, given: Numbers) -> Tensor:
    found = numbers(argument, given)
    if not len(found):
        raise InputError(f"{argument}: expected an accuracy for each epoch, got none.")
    return found
