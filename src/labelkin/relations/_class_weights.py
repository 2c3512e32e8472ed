"""Class weights and priors from the number of samples of each class."""

from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.relations._matrices import check_not_negative, read_numbers

BETA = 0.999


def balanced_weights(counts: Any) -> Tensor:
    """Compute class weights `n / (K N_i)`, with which every class has the same share of the loss, as in scikit-learn.

    Args:
        counts: (K,) numbers of samples. Classes without samples have weight 1 and do not count.

    Returns:
        (K,) float64 weights; their mean over the samples is 1.

    Example:
        >>> from labelkin import relations
        >>> relations.balanced_weights([90, 10])
        tensor([0.5556, 5.0000], dtype=torch.float64)
    """
    given, present = _counts(counts)
    weights = given.sum() / (present.sum() * given.clamp_min(1))
    return torch.where(present, weights, 1.0)


def effective_weights(counts: Any, *, beta: float = BETA) -> Tensor:
    """Compute class weights `(1 - beta) / (1 - beta^N_i)` from effective numbers of samples (Cui et al. 2019, Eq. 4).

    They grow less for rare classes than balanced weights, because further samples of a class repeat earlier ones.

    Args:
        counts: (K,) numbers of samples. Classes without samples have weight 1 and do not count.
        beta: 0 gives equal weights; towards 1, the weights become balanced.

    Returns:
        (K,) float64 weights; their mean over the classes with samples is 1, as in the paper.

    Example:
        >>> from labelkin import relations
        >>> relations.effective_weights([1000, 10])
        tensor([0.0310, 1.9690], dtype=torch.float64)
    """
    check_number("beta", beta, low=0)
    if beta >= 1:
        raise InputError(f"beta: expected a number below 1, got {beta}.")
    given, present = _counts(counts)
    weights = (1 - beta) / (1 - beta ** given.clamp_min(1))
    return torch.where(present, weights * present.sum() / weights[present].sum(), 1.0)


def log_priors(counts: Any) -> Tensor:
    """Compute the logarithms of the shares of the classes, for `labelkin.functional.adjusted_logits`.

    Args:
        counts: (K,) numbers of samples. A class without samples counts as one with one.

    Returns:
        (K,) float64 logarithms.

    Example:
        >>> from labelkin import relations
        >>> relations.log_priors([3, 1]).exp()
        tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    given = _counts(counts)[0].clamp_min(1)
    return (given / given.sum()).log()


def _counts(counts: Any) -> tuple[Tensor, Tensor]:
    """Return the counts in float64, and whether each class has samples."""
    given = read_numbers("counts", counts).double()
    if given.ndim != 1 or not len(given):
        raise InputError(f"counts: expected one number per class, got shape {tuple(given.shape)}.")
    check_not_negative("counts", given)
    if not given.sum():
        raise InputError("counts: expected samples of at least one class, got only zeros.")
    return given, given > 0
