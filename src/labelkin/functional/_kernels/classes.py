"""Cross entropy to row y of a K x K class matrix, without a target of the batch's size.

The loss of a row t is `sum_k t_k (S - x_k)` with S the log-sum-exp of the logits; rows need not sum to 1. The kernel
computes t according to the kind of matrix. Shares of masked classes are left out, except for that of the class y itself.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin.functional._kernels import cpu_classes
from labelkin.functional._kernels.cpu_classes import HARD, SCALED
from labelkin.functional._kernels.fused import fused, module, supports, uses_triton


class DenseTargets(NamedTuple):
    """A class matrix of any kind; row y is the target of class y."""

    matrix: Tensor  # (K, K)


class ScaledTargets(NamedTuple):
    """A class matrix with `own[y]` for the class itself and `scale[y] * matrix[y, k]` for the others."""

    matrix: Tensor  # (K, K); its diagonal is not used
    scale: Tensor  # (K,)
    own: Tensor  # (K,)


class GroupedTargets(NamedTuple):
    """A class matrix with `own[y]` for the class itself, `kin[y]` for the others of its group, `rest[y]` outside it."""

    group: Tensor  # (K,) int32
    own: Tensor  # (K,)
    kin: Tensor  # (K,)
    rest: Tensor  # (K,)


class OrdinalTargets(NamedTuple):
    """A class matrix with `own[y]` for the class itself and `scale[y] * by_gap[|y - k|]` for the others."""

    by_gap: Tensor  # (K,): by the difference of positions; entry 0 is not used
    scale: Tensor  # (K,)
    own: Tensor  # (K,)


class SparseTargets(NamedTuple):
    """A class matrix in CSR form; see `sparse_targets`.

    Row y has `values[start[y]:start[y + 1]]` at `columns[start[y]:start[y + 1]]`, without duplicate columns.
    """

    start: Tensor  # (K + 1,) int32
    columns: Tensor  # (entries,) int32
    values: Tensor  # (entries,)


class LowRankTargets(NamedTuple):
    """A class matrix `left @ right.T` with `own[y]` added on the diagonal."""

    left: Tensor  # (K, R)
    right: Tensor  # (K, R)
    own: Tensor  # (K,)


ClassTargets = DenseTargets | ScaledTargets | GroupedTargets | OrdinalTargets | SparseTargets | LowRankTargets
CODES: dict[type[ClassTargets], int] = {
    DenseTargets: 0,
    GroupedTargets: 1,
    OrdinalTargets: 2,
    SparseTargets: 3,
    LowRankTargets: 4,
    ScaledTargets: SCALED,
}
LARGEST_RANK = 128


def fits_classes(logits: Tensor, target: Tensor, targets: ClassTargets) -> bool:
    """Return whether the kernels accept these arguments; class probabilities as targets need the composed forms."""
    if target.is_floating_point() or not supports(logits) or logits.shape[:-1] != target.shape:
        return False
    return not isinstance(targets, LowRankTargets) or targets.left.shape[1] <= LARGEST_RANK


def classes_pay(logits: Tensor, target: Tensor) -> bool:
    """Return whether the kernels accept logits and targets and are faster than rows of the batch's size.

    Class probabilities as targets, compiled code and `torch.func` need these rows. On the CPU they are faster: torch's
    log-softmax there reads and writes each logit once.
    """
    if torch.compiler.is_compiling() or target.is_floating_point() or not supports(logits):
        return False
    return uses_triton(logits)


def class_target_cross_entropy(logits: Tensor, target: Tensor, targets: ClassTargets) -> Tensor:
    """Compute `-sum_k T[y, k] log p_k`; see `labelkin.functional.class_target_cross_entropy`."""
    return fused("classes", logits, target, *arguments(targets))


def arguments(targets: ClassTargets | None) -> tuple[list[Tensor], list[float]]:
    """Return the operands and options of the kernels; None means the identity matrix."""
    if targets is None:
        return [], [float(HARD)]
    return [part.contiguous() for part in targets], [float(CODES[type(targets)])]


def kernel(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> ModuleType:
    """Return the module with the kernels for a class matrix: Triton where it can, else torch operations."""
    if int(options[0]) == CODES[LowRankTargets] and operands[0].shape[1] > LARGEST_RANK:
        return cpu_classes
    found: ModuleType = module("classes", logits)
    return found


def sparse_targets(matrix: Tensor) -> SparseTargets:
    """Return the compressed rows of a class matrix.

    Args:
        matrix: (K, K) a dense or sparse matrix.

    Returns:
        The entries other than 0.

    Example:
        >>> import torch
        >>> from labelkin.functional import sparse_targets
        >>> sparse_targets(torch.tensor([[0.9, 0.1], [0.0, 1.0]])).columns
        tensor([0, 1, 1], dtype=torch.int32)
    """
    entries = (matrix if matrix.is_sparse else matrix.to_sparse()).coalesce()
    rows, columns = entries.indices()
    start = torch.searchsorted(rows, torch.arange(len(matrix) + 1, device=matrix.device))
    return SparseTargets(start.int(), columns.int(), entries.values())
