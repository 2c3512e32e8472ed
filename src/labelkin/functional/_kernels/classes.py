"""Cross entropy to row y of a K x K class matrix, without a target of the batch's size.

The loss of a row t is `sum_k t_k (S - x_k)` with S the log-sum-exp of the logits; rows need not sum to 1. The kernel
computes t according to the kind of matrix.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from labelkin.functional._kernels.fused import fused, supports


class DenseTargets(NamedTuple):
    """Any matrix."""

    matrix: Tensor  # (K, K)


class GroupedTargets(NamedTuple):
    """`own[y]` for the class itself, `kin[y]` for the others of its group, `rest[y]` outside it."""

    group: Tensor  # (K,) int32
    own: Tensor  # (K,)
    kin: Tensor  # (K,)
    rest: Tensor  # (K,)


class OrdinalTargets(NamedTuple):
    """`own[y]` for the class itself, `scale[y] * by_gap[|y - k|]` for the others."""

    by_gap: Tensor  # (K,): by the difference of positions; entry 0 is not used
    scale: Tensor  # (K,)
    own: Tensor  # (K,)


class SparseTargets(NamedTuple):
    """CSR: row y has `values[start[y]:start[y + 1]]` at `columns[start[y]:start[y + 1]]`, without duplicate columns."""

    start: Tensor  # (K + 1,) int32
    columns: Tensor  # (entries,) int32
    values: Tensor  # (entries,)


class LowRankTargets(NamedTuple):
    """`own[y]` on the diagonal plus `left @ right.T`."""

    left: Tensor  # (K, R)
    right: Tensor  # (K, R)
    own: Tensor  # (K,)


ClassTargets = DenseTargets | GroupedTargets | OrdinalTargets | SparseTargets | LowRankTargets
CODES: dict[type[ClassTargets], int] = {
    DenseTargets: 0,
    GroupedTargets: 1,
    OrdinalTargets: 2,
    SparseTargets: 3,
    LowRankTargets: 4,
}
LARGEST_RANK = 128


def fits_classes(logits: Tensor, target: Tensor, targets: ClassTargets) -> bool:
    """Return whether the kernels accept these arguments; class probabilities as targets need the composed forms."""
    if target.is_floating_point() or not supports(logits) or logits.shape[:-1] != target.shape:
        return False
    return not isinstance(targets, LowRankTargets) or targets.left.shape[1] <= LARGEST_RANK


def class_target_cross_entropy(logits: Tensor, target: Tensor, targets: ClassTargets) -> Tensor:
    """Compute `-sum_k T[y, k] log p_k`, one loss per sample; `target` holds class positions (...,).

    >>> matrix = torch.eye(3)
    >>> class_target_cross_entropy(torch.zeros(2, 3), torch.tensor([0, 2]), DenseTargets(matrix))
    tensor([1.0986, 1.0986])
    """
    return fused("classes", logits, target, [part.contiguous() for part in targets], [float(CODES[type(targets)])])


def sparse_targets(matrix: Tensor) -> SparseTargets:
    """Return the compressed rows of a dense or sparse (K, K) matrix."""
    entries = (matrix if matrix.is_sparse else matrix.to_sparse()).coalesce()
    rows, columns = entries.indices()
    start = torch.searchsorted(rows, torch.arange(len(matrix) + 1, device=matrix.device))
    return SparseTargets(start.int(), columns.int(), entries.values())
