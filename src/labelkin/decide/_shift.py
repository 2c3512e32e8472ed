"""A check whether new data differ from the calibration samples, without labels."""

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
from scipy.special import kolmogorov
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.decide._validation import check_probs

LEAST_SAMPLES = 10  # on each side; with fewer, no difference could be shown


class Shift(NamedTuple):
    """The result of `check_shift`.

    - `shifted`: whether a difference was found, that is, whether `p_value` is at most the rate of false alarms.
    - `p_value`: the smallest p-value of the K + 1 tests, times K + 1 (Bonferroni), at most 1.
    - `distance`: the largest difference between the two distribution functions in the test with that p-value, from 0 to 1.
    - `column`: what differs most: a class position, or None for the highest probability of a sample.

    Example:
        >>> import torch
        >>> from labelkin import decide
        >>> sure = torch.tensor([[0.9, 0.1], [0.8, 0.2]]).repeat(50, 1)
        >>> decide.check_shift(sure, sure).distance
        0.0
    """

    shifted: bool
    p_value: float
    distance: float
    column: int | None


def check_shift(
    calibration_probs: Tensor, probs: Tensor, *, false_alarms: float = 0.01, classes: Sequence[str] | None = None
) -> Shift:
    """Compare new samples with the calibration samples by their probabilities, and warn if they differ.

    A threshold of `GuaranteedFallback` holds for samples from the source of the calibration samples. This check looks for a
    difference with the two-sample Kolmogorov-Smirnov test in each column of probabilities and in the highest probability, with
    Bonferroni's correction (Rabanser et al., Failing Loudly, 2019). If both sets come from the same source, it warns with
    probability `false_alarms` at most. It needs no labels, so it misses a change of the classes that does not affect
    the model's probabilities; no warning does not prove that nothing changed.

    Args:
        calibration_probs: (m, K) probabilities of the classes in calibration samples.
        probs: (n, K) probabilities in new samples.
        false_alarms: The largest probability of a warning without a difference.
        classes: The names of the classes, for the warning.

    Returns:
        What was found, as `Shift`.

    Example:
        >>> import torch, warnings
        >>> from labelkin import decide
        >>> sure, unsure = torch.tensor([[0.9, 0.1]]).repeat(50, 1), torch.tensor([[0.6, 0.4]]).repeat(50, 1)
        >>> with warnings.catch_warnings(action="ignore"):
        ...     decide.check_shift(sure, unsure).shifted
        True
    """
    check_probs("calibration_probs", calibration_probs)
    check_probs("probs", probs, calibration_probs.shape[-1])
    check_number("false_alarms", false_alarms, low=0, high=1, open_low=True)
    for argument, values in (("calibration_probs", calibration_probs), ("probs", probs)):
        if len(values) < LEAST_SAMPLES:
            raise InputError(f"{argument}: expected at least {LEAST_SAMPLES} samples, got {len(values)}.")
    before, after = (_with_highest(values) for values in (calibration_probs, probs.to(calibration_probs.device)))
    distances = largest_differences(before, after)
    effective = len(before) * len(after) / (len(before) + len(after))
    column = int(distances.argmax())
    distance = float(distances[column])
    p_value = min(1.0, len(distances) * float(kolmogorov(math.sqrt(effective) * distance)))
    found = Shift(p_value <= false_alarms, p_value, distance, None if column == probs.shape[-1] else column)
    if found.shifted:
        name = None if found.column is None else found.column if classes is None else repr(classes[found.column])
        what = "highest probability" if name is None else f"probability of class {name}"
        warnings.warn(
            f"The new samples differ from the calibration samples: the distributions of the {what} are {distance:.2f} apart "
            f"(p = {p_value:.2g}). Temperatures, thresholds and guarantees fitted on the latter may not hold; fit "
            "them again on samples like these, or, if only the shares of the classes changed, adjust to these (--shares, "
            "decide.adjust_shares).",
            stacklevel=2,
        )
    return found


def largest_differences(left: Tensor, right: Tensor) -> Tensor:
    """Return the largest difference between the distribution functions of each column (K,) of (m, K) and (n, K) values."""
    joined = torch.cat([left, right]).T.contiguous()
    values, order = joined.sort(dim=-1)
    steps = torch.where(order < len(left), 1 / len(left), -1 / len(right)).double().cumsum(-1)
    is_last = torch.ones_like(values, dtype=torch.bool)  # of equal values: the functions jump by all of them at once
    is_last[:, :-1] = values[:, 1:] != values[:, :-1]
    return steps.abs().masked_fill(~is_last, 0).amax(-1)


def _with_highest(probs: Tensor) -> Tensor:
    values = probs.detach().double()
    return torch.cat([values, values.amax(-1, keepdim=True)], -1)
