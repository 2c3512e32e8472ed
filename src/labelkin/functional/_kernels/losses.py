"""The tree losses of `labelkin.functional` through fused kernels: same names, arguments and results.

Every loss here is a weighted sum over the edges of the target's path, `-sum_d w_d log p(node_d | node_(d-1))`. d starts
at 1, and `w_d = scale exp(-alpha d) + base + slope (length - d) + inverse / d`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from labelkin.functional._kernels.cpu_leaves import lowest
from labelkin.functional._kernels.fused import fused, supports, uses_triton
from labelkin.functional._kernels.index import is_shallow, path_index, rings
from labelkin.functional._tree import TreeIndex

SMALL = 512  # up to this width, the composed forms are as fast on the CPU
LITTLE = 2**15  # the same for fewer logits than this
WHOLE_ROWS = 2048  # classes up to which the CUDA kernel has a table of common ancestors (4 MiB) and holds whole rows
LARGEST_RAGGED = 4096  # largest G of `Ragged` that the CUDA kernel can hold


class _Weights(NamedTuple):
    scale: float = 0.0
    alpha: float = 0.0
    base: float = 0.0
    slope: float = 0.0
    inverse: float = 0.0


def fits(logits: Tensor, target: Tensor, tree: TreeIndex) -> bool:
    """Return whether the kernels accept these arguments and are faster than the composed forms.

    Class probabilities as targets, deep trees, compiled code and `torch.func` need the composed forms.
    """
    if torch.compiler.is_compiling() or not is_shallow(tree):  # a compiler cannot trace how the index is built
        return False
    if target.is_floating_point() or not supports(logits) or logits.shape[:-1] != target.shape:
        return False
    return uses_triton(logits) or (logits.shape[-1] > SMALL and logits.numel() >= LITTLE)


def fits_hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex) -> bool:
    """Return whether `hierarchical` accepts these arguments.

    Leaves at different depths need CUDA and a tree that is not too large. On the CPU no inner node may be masked.
    """
    if not fits(logits, target, tree):
        return False
    at = path_index(tree)
    if uses_triton(logits):
        return at.ragged.first.shape[0] <= LARGEST_RAGGED
    if at.ragged.first.shape[0]:
        return False
    low = lowest(logits.dtype)
    return bool(logits.amin() >= low) or not bool((logits.index_select(-1, at.watched) < low).any())


def hierarchical_cross_entropy(
    leaf_logits: Tensor, target: Tensor, tree: TreeIndex, *, alpha: float, normalize: bool = False
) -> Tensor:
    """Compute HXE (Bertinetto et al.) on a flat softmax; see `labelkin.functional.hierarchical_cross_entropy`."""
    losses = _on_leaves(leaf_logits, target, tree, _Weights(scale=1.0, alpha=alpha))
    return losses / torch.exp(-alpha * tree.lengths.to(losses.dtype)).sum() if normalize else losses


def ancestors(
    leaf_logits: Tensor, target: Tensor, tree: TreeIndex, *, weight: float = 1.0, base: float = 0.0
) -> Tensor:
    """Compute `weight` times the sum of `-log P(a)` over the nodes a strictly between the root and the target.

    P(a) is the summed softmax of the leaves below a. `base` times the target's own `-log P` is added, so that
    `base=1` gives cross entropy plus the ancestors' term in the same pass.
    """
    return _on_leaves(leaf_logits, target, tree, _Weights(base=base, slope=weight))


def conditional_softmax(logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the negative log-likelihood of the target's node; see `labelkin.functional.conditional_softmax`."""
    return _on_nodes(logits, target, tree, _Weights(base=1.0))


def convex_hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Compute 002 Eq. 4 without the term off the path; see `labelkin.functional.convex_hierarchical`."""
    return _on_nodes(logits, target, tree, _Weights(inverse=1.0))


def hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex, *, targets: str = "path") -> Tensor:
    """Compute 002 Eq. 2-3; see `labelkin.functional.hierarchical`.

    The inner nodes' probabilities are summed in closed form below nodes whose leaves all have the same depth.
    """
    slope = 1.0 if targets == "path" else 0.0
    return _on_nodes(logits, target, tree, _Weights(base=1.0, slope=slope), mass=True)


def _on_leaves(logits: Tensor, target: Tensor, tree: TreeIndex, weights: _Weights) -> Tensor:
    at = path_index(tree)
    operands = [at.order, at.first, at.last, at.path, at.length]
    if uses_triton(logits) and logits.shape[-1] <= WHOLE_ROWS:
        operands.append(rings(tree))
    return fused("leaves", logits, target, operands, weights)


def _on_nodes(logits: Tensor, target: Tensor, tree: TreeIndex, weights: _Weights, mass: bool = False) -> Tensor:
    at = path_index(tree)
    operands = [at.first, at.child_first, at.child_count, at.child_column, at.path, at.length, at.excess]
    if not mass:
        return fused("nodes", logits, target, operands, (*weights, 0.0, 0.0))
    operands += [at.begin, at.finish, at.closed, at.watched]
    ragged = at.ragged.first.shape[0] > 0
    constant = 0.0 if ragged else float(at.path.shape[1] - 1)
    return fused("nodes", logits, target, [*operands, *at.ragged] if ragged else operands, (*weights, constant, 1.0))
