"""Checks and normalization that all relations share: class counts, arrays of numbers, rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelkin._arrays import sum_tolerance
from labelkin._checks import InputError, check_count, check_names, listed, plain_names

ROUNDING = 1e-12  # similarities up to this are 0 with a rounding error


def count_classes(classes: int | Sequence[str]) -> int:
    """Return the number of classes, at least two, from their number or their names."""
    classes = plain_names(classes)
    if isinstance(classes, Sequence):
        check_names("classes", classes, least=2)
        return len(classes)
    check_count("classes", classes, least=2)
    return int(classes)


def read_numbers(argument: str, values: Any) -> Tensor:
    """Return a new tensor of real, finite numbers in their own dtype; an error names the position of the first bad number."""
    tensor = values.detach().clone() if isinstance(values, Tensor) else _from_array(argument, values)
    if tensor.is_complex():
        raise InputError(f"{argument}: expected real numbers, got {tensor.dtype}.")
    wrong = ~torch.isfinite(tensor)
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        raise InputError(f"{argument}: expected finite numbers, got {tensor[place].item()} at {list(place)}.")
    return tensor


def read_square(argument: str, values: Any, classes: int | None = None) -> Tensor:
    """Return a finite (K, K) matrix; K is checked if `classes` is given."""
    matrix = read_numbers(argument, values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"{argument}: expected a square matrix, one row and one column per class, got shape {tuple(matrix.shape)}."
        )
    if classes is not None and len(matrix) != classes:
        raise InputError(
            f"{argument}: expected {classes} x {classes} for {classes} classes, got {len(matrix)} x {len(matrix)}."
        )
    if len(matrix) < 2:
        raise InputError(f"{argument}: expected at least two classes, got {len(matrix)}.")
    return matrix


def check_not_negative(argument: str, values: Tensor) -> None:
    negative = values < 0
    if negative.any():
        place = tuple(negative.nonzero()[0].tolist())
        raise InputError(
            f"{argument}: expected numbers that are not negative, got {values[place].item()} at {list(place)}."
        )


def check_row_sums(argument: str, matrix: Tensor, *, zero_rows: bool) -> None:
    """Check that every row sums to 1, or is zero if `zero_rows` allows it."""
    sums = matrix.sum(-1, dtype=torch.float64)
    fine = (sums - 1).abs() <= sum_tolerance(matrix.dtype, matrix.shape[-1])
    if zero_rows:
        fine |= sums == 0
    if not fine.all():
        rows = (~fine).nonzero().flatten().tolist()
        expected = "rows that sum to 1 or are zero" if zero_rows else "rows that sum to 1"
        raise InputError(
            f"{argument}: expected {expected}, got the sum {sums[rows[0]].item():.6g} in row {listed(rows)}; "
            "divide each row by its sum."
        )


def check_zero_diagonal(argument: str, matrix: Tensor) -> None:
    own = matrix.diagonal().nonzero().flatten().tolist()
    if own:
        raise InputError(
            f"{argument}: expected a zero diagonal (a class is not related to itself), got "
            f"{matrix[own[0], own[0]].item():.6g} in row {listed(own)}; a matrix of targets is not a relation."
        )


def kin_rows(weights: Tensor, *, floor: float = 0.0) -> Tensor:
    """Set the diagonal and entries up to `floor` to 0, and divide each row by its sum; a row of zeros stays zero."""
    kin = torch.where(weights > floor, weights, 0.0).fill_diagonal_(0.0)
    sums = kin.sum(-1, keepdim=True)
    return kin / torch.where(sums > 0, sums, 1.0)


def kin_softmax(scores: Tensor) -> Tensor:
    """Return the softmax of each row over the other classes: `exp(scores)` normalized without underflow, never a zero row."""
    return scores.clone().fill_diagonal_(-torch.inf).softmax(-1)


def cosines(vectors: Tensor, *, zero_below: float = 0.0) -> Tensor:
    """Return (K, K) cosines of vectors (K, D); a vector of norm `zero_below` or less has cosine 0 with all others."""
    norms = vectors.norm(dim=-1, keepdim=True)
    unit = torch.where(norms > zero_below, vectors / norms, 0.0)
    return (unit @ unit.T).clamp(-1.0, 1.0)


def _from_array(argument: str, values: Any) -> Tensor:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{argument}: expected an array of numbers with rows of one length, got {type(values).__name__}."
        )
    native = array.dtype.newbyteorder("=")
    return torch.tensor(np.array(array, native, order="C"))  # torch takes no reversed rows or bytes
