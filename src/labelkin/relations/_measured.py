"""Kin as a model or a data set shows it: confusions, activations, class counts."""

from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number, listed
from labelkin.relations._matrices import ROUNDING, check_not_negative, kin_rows, read_numbers, read_square


def confusion(matrix: Any, *, smoothing: float = 1.0) -> Tensor:
    """Kin by a confusion matrix, rows = true class: the diagonal dropped, `smoothing` added to every other cell, each
    row divided by its sum.

    `smoothing` is in the units of the matrix: 1 counts every confusion once more, which suits counts; give a small one
    where the matrix holds rates.

    Returns (K, K) float64, entries in [0, 1], zero diagonal. With smoothing no class is isolated; at 0 a class that was
    never mistaken for another has a zero row.

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
    """Kin by how a network holds the classes: `1 - d` with the NAA distance (000 Eq. 7), each row divided by its sum.

    `distances` come from `labelkin.functional._naa.naa_distance` and lie in [0, 1].

    Returns (K, K) float64, entries in [0, 1], zero diagonal. A class at distance 1 from every other is isolated: its
    row is zero.

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
    """Class weights from the number of samples a class: `min N / N_i` (004, the diagonal of H in Eq. 1).

    Returns (K,) float64 in (0, 1]: 1 for the rarest class. For the `class_weight` option of the objectives.

    Example:
        >>> from labelkin import relations
        >>> relations.infogain_weights([100, 50, 25])
        tensor([0.2500, 0.5000, 1.0000], dtype=torch.float64)
    """
    given = read_numbers("counts", counts).double()
    if given.ndim != 1 or not len(given):
        raise InputError(f"counts: expected one number a class, got shape {tuple(given.shape)}.")
    without = (given <= 0).nonzero().flatten().tolist()
    if without:
        raise InputError(f"counts: expected at least one sample a class, got none of class {listed(without)}.")
    return torch.as_tensor(given.min() / given)
