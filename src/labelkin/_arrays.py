"""Checks of tensors of probabilities and of class positions, and the ranking of scores."""

from collections.abc import Callable, Sequence
from math import isfinite, log2
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError

LEAST_TOLERANCE = 1e-3  # accepts probabilities that were saved with four decimals
PERCENT_ROUNDING = 5.0  # how far the sum of rounded percentages may be from 100


def sum_tolerance(dtype: torch.dtype, classes: int) -> float:
    """Return how far the sum of `classes` probabilities of this dtype may be from 1.

    The rule is `max(1e-3, eps / 2 * (2 + log2(classes))) + classes * smallest / 2`. Rounding a probability
    and the sum that it is divided by has an error of eps / 2 each, and a pairwise sum has one of eps / 2 in each of its
    log2(classes) levels. Numbers below the smallest subnormal become 0, which only matters in float16.
    """
    limits = torch.finfo(dtype if dtype.is_floating_point else torch.float64)
    rounding = limits.eps / 2 * (2 + log2(classes))
    smallest = limits.smallest_normal * limits.eps
    return max(LEAST_TOLERANCE, rounding) + classes * smallest / 2


def check_probs(
    argument: str,
    probs: Tensor,
    *,
    tolerance: float | None = None,
    hint: str = "pass logits.softmax(-1)",
    row_name: Callable[[int], str] = "row {}".format,
) -> None:
    """Refuse rows (..., K) that are not probabilities: non-negative, with a sum of 1 per row.

    Args:
        argument: the name that the error message starts with.
        probs: floating-point numbers; each row is one distribution over K classes.
        tolerance: how far a sum may be from 1; `sum_tolerance` of the dtype by default.
        hint: what to do with scores that are not probabilities.
        row_name: what to call a row in the error message.
    """
    if not probs.numel():
        return
    probs = probs.detach()  # torch warns of numbers that are read from tensors with gradients
    room = sum_tolerance(probs.dtype, probs.shape[-1]) if tolerance is None else tolerance
    low, high = (float(end) for end in probs.aminmax())
    if not isfinite(low) or not isfinite(high):
        raise InputError(f"{argument}: expected finite probabilities, got NaN or infinity.")
    sums = probs.sum(-1, dtype=torch.float64 if probs.device.type == "cpu" else torch.float32).flatten()
    if low < 0 or high > 1 + room:
        percent = low >= 0 and abs(float(sums.median()) - 100) < PERCENT_ROUNDING
        what = "percentages; divide them by 100" if percent else f"logits or log-probabilities; {hint}"
        raise InputError(
            f"{argument}: expected probabilities from 0 to 1, got values from {low:.4g} to {high:.4g}, which look like {what}."
        )
    off = ((sums - 1).abs() > room).nonzero().flatten()
    if len(off):
        first = int(off[0])
        raise InputError(
            f"{argument}: expected rows that sum to 1 (within {room:.2g}), got {len(off)} of {len(sums)} that do not "
            f"({row_name(first)} sums to {float(sums[first]):.4g}); divide each row by its sum, or, if these are scores, "
            f"{hint}."
        )


def check_class_positions(
    argument: str,
    given: Any,
    classes: int | None = None,
    *,
    shape: Sequence[int] | None = None,
    read_values: bool = True,
    what: str = "class positions",
) -> None:
    """Refuse a value that is not a tensor of integers from 0 to `classes - 1`.

    Args:
        argument: the name that the error message starts with.
        given: the tensor to check.
        classes: number of classes; None allows any number from 0.
        shape: the shape that `given` must have; any by default.
        read_values: whether to check the numbers, which synchronizes with a GPU.
        what: name of the integers in the error message.
    """
    if not isinstance(given, Tensor):
        raise InputError(f"{argument}: expected a tensor of {what}, got {type(given).__name__}.")
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise InputError(f"{argument}: expected {what} as integers, got {given.dtype}.")
    if shape is not None and given.shape != tuple(shape):
        raise InputError(
            f"{argument}: expected {what} of shape {tuple(shape)}, one per sample, got shape {tuple(given.shape)}."
        )
    if not read_values or not given.numel():
        return
    low, high = (int(end) for end in given.aminmax())
    if low < 0 or (classes is not None and high >= classes):
        most = "up" if classes is None else f"to {classes - 1}"
        raise InputError(f"{argument}: expected {what} from 0 {most}, got {low if low < 0 else high}.")


def class_positions(argument: str, values: Any, classes: int, *, ndim: int | None = None) -> Tensor:
    """Return int64 class positions from a tensor, an array or a list; refuse anything else.

    Args:
        argument: the name that the error message starts with.
        values: positions from 0 to `classes - 1`; a tensor stays on its device.
        classes: number of classes.
        ndim: number of axes that `values` must have; any by default.
    """
    try:
        found = values.detach() if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{argument}: expected class positions from 0 to {classes - 1}, got {values!r:.60}.") from None
    if found.numel() or isinstance(values, Tensor):  # an empty list has no dtype to check
        check_class_positions(argument, found, classes)
    if ndim is not None and found.ndim != ndim:
        raise InputError(
            f"{argument}: expected class positions of shape (n,), one per sample, got shape {tuple(found.shape)}."
        )
    return found.long()


def reads_values(given: Tensor) -> bool:
    """Return whether the values of a tensor can be read at no cost: on the CPU, but not in compiled code or `vmap`."""
    if given.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return not torch._C._are_functorch_transforms_active()


def ranked(scores: Tensor, k: int) -> Tensor:
    """Return the positions (n, k) of the `k` largest scores of each row (n, K), the largest first.

    The lowest position wins a tie, as in `argmax`; `torch.topk` makes no such promise.
    """
    if k == 1:
        return scores.argmax(-1, keepdim=True)
    if scores.device.type != "cpu":
        return scores.argsort(dim=-1, descending=True, stable=True)[:, :k]
    best = scores.topk(min(k + 1, scores.shape[-1]), dim=-1)  # several times faster than sorting
    places = best.indices[:, :k]
    tied = (best.values[:, 1:] == best.values[:, :-1]).any(-1).nonzero().flatten()
    if len(tied):
        places[tied] = scores[tied].argsort(dim=-1, descending=True, stable=True)[:, :k]
    return places
