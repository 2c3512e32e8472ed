"""Smoothed targets from a relation, as a matrix or as rows on demand for many classes.

Every `Rows` is a module with buffers, so that it moves, saves and copies with the objective that holds it. Its rows
come in the precision of those buffers: `.float()` and `.double()` change it as they do for any module.
"""

import copy
import warnings
from abc import ABC, abstractmethod
from typing import Any, overload

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, listed
from labelkin.relations._matrices import (
    check_not_negative,
    check_row_sums,
    check_zero_diagonal,
    read_numbers,
    read_square,
)


class Rows(nn.Module, ABC):
    """K rows over K classes, made on demand.

    `keeps_diagonal` says whether row `i` may give weight to class `i` itself: targets do, relations do not.
    """

    classes: int
    keeps_diagonal: bool

    def __init__(self, classes: int, *, keeps_diagonal: bool) -> None:
        super().__init__()
        self.classes = classes
        self.keeps_diagonal = keeps_diagonal

    @abstractmethod
    def forward(self, index: Tensor) -> Tensor:
        """The rows of the classes asked for: (...) int64 to (..., K), in memory of the answer's size."""

    @abstractmethod
    def isolated(self) -> Tensor:
        """(K,) bool: the classes without kin, whose row is zero."""

    def dense(self) -> Tensor:
        """All rows: (K, K)."""
        return self.forward(torch.arange(self.classes, device=next(self.buffers()).device))

    def extra_repr(self) -> str:
        return f"classes={self.classes}"


class DenseRows(Rows):
    """The rows of a given matrix: float64 where it is a float64 array or `dtype` asks for it, else float32."""

    matrix: Tensor

    def __init__(self, matrix: Any, *, dtype: torch.dtype | None = None) -> None:
        given = read_square("matrix", matrix)
        super().__init__(len(given), keeps_diagonal=bool(given.diagonal().any()))
        self.register_buffer("matrix", given.to(dtype or _precision(matrix)))

    def forward(self, index: Tensor) -> Tensor:
        return self.matrix[index]

    def isolated(self) -> Tensor:
        return self.matrix.amax(-1) == 0


class SmoothedRows(Rows):
    """Targets `sigma * rows + (1 - sigma) * I` (000 Eq. 1), with one `sigma` or one a class.

    An isolated class stays one-hot.
    """

    relation: Rows
    moved: Tensor  # (K,): the weight taken from the class itself

    def __init__(self, relation: Rows, sigma: Any) -> None:
        super().__init__(relation.classes, keeps_diagonal=True)
        _check_rows("relation", relation, relation.classes, may_keep_diagonal=False)
        self.relation = relation
        moved = _checked_sigma(sigma, self.classes).to(next(relation.buffers()).device)
        self.register_buffer("moved", torch.where(relation.isolated(), 0.0, moved))

    def forward(self, index: Tensor) -> Tensor:
        own = index.unsqueeze(-1)
        rows = self.relation.forward(index)
        moved = self.moved[own].to(rows.dtype)
        return (moved * rows).scatter(-1, own, 1 - moved)

    def isolated(self) -> Tensor:
        return torch.zeros_like(self.moved, dtype=torch.bool)


def as_rows(relation: Any, classes: int, *, argument: str = "relation", distribution: bool = True) -> Rows:
    """A relation, given as a matrix or as `Rows`, checked for `classes` classes.

    Its rows sum to 1 or are zero and its diagonal is zero; with `distribution=False` both are free, and only what is
    not square, not finite or negative is refused. `Rows` are copied: who holds them may move them.
    """
    if isinstance(relation, Rows):
        _check_rows(argument, relation, classes, may_keep_diagonal=not distribution)
        return copy.deepcopy(relation)
    matrix = read_square(argument, relation, classes)
    check_not_negative(argument, matrix)
    if distribution:
        check_zero_diagonal(argument, matrix)
        check_row_sums(argument, matrix, zero_rows=True)
    return DenseRows(matrix, dtype=_precision(relation))


def as_targets(targets: Any, classes: int) -> Rows:
    """Targets, given as a matrix or as `Rows` (which are copied): every row sums to 1, the diagonal is free."""
    if isinstance(targets, Rows):
        _check_rows("targets", targets, classes, may_keep_diagonal=True)
        zero = targets.isolated().nonzero().flatten().tolist()
        if zero:
            raise InputError(f"targets: expected rows that sum to 1, got a zero row for class {listed(zero)}.")
        return copy.deepcopy(targets)
    matrix = read_square("targets", targets, classes)
    check_not_negative("targets", matrix)
    check_row_sums("targets", matrix, zero_rows=False)
    return DenseRows(matrix, dtype=_precision(targets))


def _check_rows(argument: str, rows: Rows, classes: int, *, may_keep_diagonal: bool) -> None:
    if rows.classes != classes:
        raise InputError(f"{argument}: expected rows for {classes} classes, got {rows!r}.")
    if rows.keeps_diagonal and not may_keep_diagonal:
        raise InputError(f"{argument}: expected a relation, whose diagonal is zero, got targets: {rows!r}.")


def _precision(given: Any) -> torch.dtype:
    is_double = str(getattr(given, "dtype", "")).endswith("float64")  # numpy's or torch's
    return torch.float64 if is_double else torch.float32


def _checked_sigma(sigma: Any, classes: int) -> Tensor:
    values = read_numbers("sigma", sigma).double()
    if values.shape not in ((), (classes,)):
        raise InputError(
            f"sigma: expected one number, or one for each of {classes} classes, got shape {tuple(values.shape)}."
        )
    outside = ((values < 0) | (values > 1)).flatten().nonzero().flatten().tolist()
    if outside:
        where = f" for class {listed(outside)}" if values.ndim else ""
        raise InputError(f"sigma: expected a number in [0, 1], got {values.flatten()[outside[0]].item()}{where}.")
    return values.expand(classes)


CHECKED_AT_ONCE = 2**22  # entries of the rows looked at together


@overload
def smooth(relation: Rows, sigma: Any) -> SmoothedRows: ...
@overload
def smooth(relation: Any, sigma: Any) -> Tensor: ...
def smooth(relation: Any, sigma: Any) -> Tensor | SmoothedRows:
    """Targets `T = sigma * relation + (1 - sigma) * I` (000 Eq. 1): the share `sigma` of a class goes to its kin.

    `sigma` is a number in [0, 1], or one a class; 0 is one-hot. An isolated class (a zero row) stays one-hot. Warns
    where the target of a class no longer puts that class first, alone: training then teaches the wrong answer.

    Returns (K, K) float64, rows that sum to 1; from `Rows`, the `SmoothedRows` that make the same rows on demand.

    Example:
        >>> from labelkin import relations
        >>> relations.smooth(relations.ordinal(3), 0.3)
        tensor([[0.7000, 0.2000, 0.1000],
                [0.1500, 0.7000, 0.1500],
                [0.1000, 0.2000, 0.7000]], dtype=torch.float64)
    """
    if isinstance(relation, Rows):
        rows = SmoothedRows(as_rows(relation, relation.classes), sigma)
        _warn_where_overtaken(rows)
        return rows
    matrix = read_square("relation", relation).double()
    rows = SmoothedRows(as_rows(matrix, len(matrix)), sigma)
    _warn_where_overtaken(rows)
    return rows.dense()


def _warn_where_overtaken(rows: SmoothedRows) -> None:
    # Kin can reach the class only where half of its weight or more was moved, which is rare.
    doubtful = (rows.moved >= 0.5).nonzero().flatten()
    overtaken: list[int] = []
    for index in torch.split(doubtful, max(1, CHECKED_AT_ONCE // rows.classes)):
        targets = rows.forward(index)
        own = targets.gather(-1, index[:, None])
        rival = targets.scatter(-1, index[:, None], 0.0).amax(-1, keepdim=True)
        slack = 4 * torch.finfo(targets.dtype).eps
        overtaken += index[(rival >= own - slack).flatten()].tolist()
    if overtaken:
        warnings.warn(
            f"sigma: the targets of class {listed(overtaken)} give another class as much weight as the class itself, "
            "or more; a smaller sigma keeps it first.",
            UserWarning,
            stacklevel=3,
        )
