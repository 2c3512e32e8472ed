"""Smoothed targets from a relation, as a matrix or as single rows for many classes.

`Rows` are modules with buffers, so that they move, save and copy with the objective that holds them. Rows have the dtype of
the buffers, which `.float()` and `.double()` change as in any module.
"""

import copy
import warnings
from abc import ABC, abstractmethod
from typing import Any, overload

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, listed
from labelkin.functional import ClassTargets, DenseTargets, GroupedTargets, ScaledTargets
from labelkin.relations._matrices import (
    check_not_negative,
    check_row_sums,
    check_zero_diagonal,
    read_numbers,
    read_square,
)


class Rows(nn.Module, ABC):
    """Base class of K rows over K classes that are computed on request.

    Args:
        classes: The number of classes K.
        keeps_diagonal: Whether row `i` may give weight to class `i` itself: targets do, relations do not.

    Example:
        >>> import torch
        >>> from labelkin import relations
        >>> rows = relations.groups([0, 0, 1], structured=True)
        >>> isinstance(rows, relations.Rows), rows(torch.tensor([0, 2])).shape
        (True, torch.Size([2, 3]))
    """

    classes: int
    keeps_diagonal: bool

    def __init__(self, classes: int, *, keeps_diagonal: bool) -> None:
        super().__init__()
        self.classes = classes
        self.keeps_diagonal = keeps_diagonal

    @abstractmethod
    def forward(self, index: Tensor) -> Tensor:
        """Return the rows of classes: (...) int64 positions to (..., K) numbers, in memory of that size."""

    @abstractmethod
    def isolated(self) -> Tensor:
        """Return (K,) bool: the classes without related classes, whose rows are zero."""

    def class_targets(self) -> ClassTargets | None:
        """Return the rows in a form that `class_target_cross_entropy` takes, without a copy of K x K; None if there is none."""
        return None

    def dense(self) -> Tensor:
        """Return all rows as a (K, K) matrix."""
        return self.forward(torch.arange(self.classes, device=next(self.buffers()).device))

    def extra_repr(self) -> str:
        return f"classes={self.classes}"


class DenseRows(Rows):
    """Rows of a given matrix.

    Args:
        matrix: (K, K) numbers.
        dtype: The dtype of the rows. None means float64 for a float64 array, and float32 otherwise.

    Example:
        >>> import torch
        >>> from labelkin.relations import DenseRows
        >>> DenseRows([[0.0, 1.0], [1.0, 0.0]])(torch.tensor([0]))
        tensor([[0., 1.]])
    """

    matrix: Tensor

    def __init__(self, matrix: Any, *, dtype: torch.dtype | None = None) -> None:
        given = read_square("matrix", matrix)
        super().__init__(len(given), keeps_diagonal=bool(given.diagonal().any()))
        self.register_buffer("matrix", given.to(dtype or _precision(matrix)))

    def forward(self, index: Tensor) -> Tensor:
        return self.matrix[index]

    def isolated(self) -> Tensor:
        return self.matrix.amax(-1) == 0

    def class_targets(self) -> ClassTargets:
        return DenseTargets(self.matrix)


class SmoothedRows(Rows):
    """Rows of targets `sigma * relation + (1 - sigma) * I` (000 Eq. 1); an isolated class stays one-hot.

    Args:
        relation: The rows of a relation.
        sigma: A number in [0, 1], or one per class.

    Example:
        >>> import torch
        >>> from labelkin import relations
        >>> rows = relations.SmoothedRows(relations.groups([0, 0, 1], structured=True), 0.25)
        >>> rows(torch.tensor([0, 2]))
        tensor([[0.7500, 0.2500, 0.0000],
                [0.0000, 0.0000, 1.0000]], dtype=torch.float64)
    """

    relation: Rows
    moved: Tensor  # (K,): the weight that each class gives away

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

    def class_targets(self) -> ClassTargets | None:
        return mixed_targets(self.relation, self.moved)


def mixed_targets(relation: Rows, moved: Tensor) -> ClassTargets | None:
    """Return `(1 - moved) I + moved * relation` in a form that `class_target_cross_entropy` takes, or None.

    `moved` (K,) is the share that each class gives away, 0 for isolated classes; the diagonal of the relation is 0.
    """
    rows = relation.class_targets()
    if isinstance(rows, DenseTargets):
        return ScaledTargets(rows.matrix, moved, 1 - moved)
    if isinstance(rows, GroupedTargets):
        return GroupedTargets(rows.group, 1 - moved, moved * rows.kin, moved * rows.rest)
    return None


def as_rows(relation: Any, classes: int, *, argument: str = "relation", distribution: bool = True) -> Rows:
    """Check a relation and return it as `Rows`.

    Args:
        relation: A (K, K) matrix, or `Rows`, which are copied, so that moving the result does not move the original.
        classes: The expected number of classes.
        argument: The name of the argument in error messages.
        distribution: Check that the diagonal is zero and that rows sum to 1 or are zero. False checks only that the matrix is
            square, finite and not negative.

    Returns:
        The rows.

    Example:
        >>> from labelkin import relations
        >>> relations.as_rows([[0.0, 1.0], [1.0, 0.0]], 2)
        DenseRows(classes=2)
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
    """Check targets and return them as `Rows`.

    Args:
        targets: A (K, K) matrix whose rows sum to 1, or `Rows`, which are copied. The diagonal is free.
        classes: The expected number of classes.

    Returns:
        The rows.

    Example:
        >>> from labelkin import relations
        >>> relations.as_targets([[0.9, 0.1], [0.2, 0.8]], 2)
        DenseRows(classes=2)
    """
    if isinstance(targets, Rows):
        _check_rows("targets", targets, classes, may_keep_diagonal=True)
        zero = targets.isolated().nonzero().flatten().tolist()
        if zero:
            raise InputError(f"targets: expected rows that sum to 1, got a row of zeros for class {listed(zero)}.")
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


CHECKED_AT_ONCE = 2**22  # entries of the rows that are checked together


@overload
def smooth(relation: Rows, sigma: Any) -> SmoothedRows: ...
@overload
def smooth(relation: Any, sigma: Any) -> Tensor: ...
def smooth(relation: Any, sigma: Any) -> Tensor | SmoothedRows:
    """Compute targets `T = sigma * relation + (1 - sigma) * I` (000 Eq. 1).

    Each class gives the share `sigma` of its target to related classes. A warning lists the classes whose target gives another
    class as much weight as the class itself: training would then teach the wrong answer.

    Args:
        relation: A (K, K) relation, or `Rows`.
        sigma: A number in [0, 1], or one per class; 0 is one-hot. An isolated class stays one-hot.

    Returns:
        (K, K) float64 targets whose rows sum to 1; or `SmoothedRows`, if `relation` is `Rows`.

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
    # Another class can overtake only if the class gives away at least half of its weight, which is rare.
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
            "or more; use a smaller sigma.",
            UserWarning,
            stacklevel=3,
        )
