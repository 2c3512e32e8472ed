"""From a relation to the targets that a loss compares with."""

import warnings
from typing import Any, overload

import torch
from torch import Tensor

from labelkin._checks import listed
from labelkin.relations.matrices import read_square
from labelkin.relations.rows import Rows, SmoothedRows, as_rows

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
