"""Class similarity from measurements: confusion matrices and activations; class weights from class counts."""

from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number, listed
from labelkin.relations._matrices import ROUNDING, check_not_negative, kin_rows, read_numbers, read_square


def confusion(matrix: Any, *, smoothing: float = 1.0) -> Tensor:
    """Compute a relation from a confusion matrix.

    The diagonal is dropped, `smoothing` is added to all other cells, and each row is divided by its sum.

    Args:
        matrix: (K, K) counts or rates, with true classes as rows.
        smoothing: A number in the units of the matrix. 1 adds one confusion to each cell, which suits counts; use a small
            number for rates.

    Returns:
        (K, K) float64 relation. With `smoothing=0`, a class that was never confused with another is isolated.

    Example:
        >>> from labelkin import relations
        >>> relations.confusion([[5, 2, 0], [1, 6, 0], [0, 0, 7]], smoothing=0)
        tensor([[0., 1., 0.],
                [1., 0., 0.],
                [0., 0., 0.]], dtype=torch.float64)
    """
    check_number("smoothing", smoothing, low=0)
    counts = read_square("matrix", matrix).double()
    check_not_negative("matrix", counts)
    return kin_rows(counts + smoothing)


def activations(distances: Any) -> Tensor:
    """Compute a relation from activation distances: `1 - d` (000 Eq. 7), with rows divided by their sums.

    Args:
        distances: (K, K) NAA distances in [0, 1], as computed by `labelkin.functional.naa_distance`.

    Returns:
        (K, K) float64 relation. A class at distance 1 from all others is isolated.

    Example:
        >>> from labelkin import relations
        >>> relations.activations([[0, 0.5, 1], [0.5, 0, 1], [1, 1, 0]])
        tensor([[0., 1., 0.],
                [1., 0., 0.],
                [0., 0., 0.]], dtype=torch.float64)
    """
    given = read_square("distances", distances).double()
    outside = (given < -ROUNDING) | (given > 1 + ROUNDING)
    if outside.any():
        place = tuple(outside.nonzero()[0].tolist())
        raise InputError(f"distances: expected numbers in [0, 1], got {given[place].item()} at {list(place)}.")
    return kin_rows(1 - given, floor=ROUNDING)


def infogain_weights(counts: Any) -> Tensor:
    """Compute class weights `min N / N_i` from the number of samples of each class (004, the diagonal of H in Eq. 1).

    Args:
        counts: (K,) numbers of samples, all above 0.

    Returns:
        (K,) float64 weights in (0, 1] for the `class_weight` option of objectives; the rarest class has weight 1.

    Example:
        >>> from labelkin import relations
        >>> relations.infogain_weights([100, 50, 25])
        tensor([0.2500, 0.5000, 1.0000], dtype=torch.float64)
    """
    given = read_numbers("counts", counts).double()
    if given.ndim != 1 or not len(given):
        raise InputError(f"counts: expected one number per class, got shape {tuple(given.shape)}.")
    without = (given <= 0).nonzero().flatten().tolist()
    if without:
        raise InputError(f"counts: expected at least one sample per class, got none of class {listed(without)}.")
    return torch.as_tensor(given.min() / given)
