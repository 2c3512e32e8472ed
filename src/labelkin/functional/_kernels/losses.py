"""The tree losses of `labelkin.functional` through fused kernels: same names, arguments and results.

Every loss here weighs the edges of the target's path: `-sum_d w_d log p(node_d | node_(d-1))`, d counted from 1, with
`w_d = scale exp(-alpha d) + base + slope (length - d) + inverse / d`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from labelkin.functional._kernels.fused import fused, supports, uses_triton
from labelkin.functional._kernels.index import PathIndex, path_index
from labelkin.functional._tree import TreeIndex

SMALL = 512  # on the CPU the composed forms of narrower rows take as long
LARGEST_RAGGED = 4096  # columns above leaves of different depths that the CUDA kernel can hold


class _Weights(NamedTuple):
    scale: float = 0.0
    alpha: float = 0.0
    base: float = 0.0
    slope: float = 0.0
    inverse: float = 0.0


def fits(logits: Tensor, target: Tensor, tree: TreeIndex) -> bool:
    """Whether the kernels take these arguments; class probabilities as targets need the composed forms."""
    if target.is_floating_point() or not supports(logits) or logits.shape[:-1] != target.shape:
        return False
    if torch.compiler.is_compiling() and getattr(tree, "fast", None) is None:
        return False
    return uses_triton(logits) or logits.shape[-1] > SMALL


def fits_hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex) -> bool:
    """Whether `hierarchical` takes these arguments: unequal depths need CUDA and a tree that is not too large."""
    if not fits(logits, target, tree):
        return False
    ragged = _index(tree).ragged[0].shape[0]
    return not ragged or (uses_triton(logits) and ragged < LARGEST_RAGGED)


def hierarchical_cross_entropy(
    leaf_logits: Tensor, target: Tensor, tree: TreeIndex, *, alpha: float, normalize: bool = False
) -> Tensor:
    """HXE (Bertinetto et al.) on a flat softmax; see `labelkin.functional.hierarchical_cross_entropy`."""
    losses = _on_leaves(leaf_logits, target, tree, _Weights(scale=1.0, alpha=alpha))
    return losses / torch.exp(-alpha * tree.lengths.to(losses.dtype)).sum() if normalize else losses


def ancestors(
    leaf_logits: Tensor, target: Tensor, tree: TreeIndex, *, weight: float = 1.0, base: float = 0.0
) -> Tensor:
    """`weight` times the sum of `-log P(a)` over the nodes a strictly between the root and the target.

    P(a) is the summed softmax of the leaves below a. `base` adds that many times the target's own `-log P`, so that
    `base=1` gives cross entropy plus the ancestors' term in the same pass.
    """
    return _on_leaves(leaf_logits, target, tree, _Weights(base=base, slope=weight))


def conditional_softmax(logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """The negative log-likelihood of the target's node; see `labelkin.functional.conditional_softmax`."""
    return _on_nodes(logits, target, tree, _Weights(base=1.0))


def convex_hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """002 Eq. 4 without the term off the path; see `labelkin.functional.convex_hierarchical`."""
    return _on_nodes(logits, target, tree, _Weights(inverse=1.0))


def hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex, *, targets: str = "path") -> Tensor:
    """002 Eq. 2-3; see `labelkin.functional._hierarchical`."""
    slope = 1.0 if targets == "path" else 0.0
    return _on_nodes(logits, target, tree, _Weights(base=1.0, slope=slope), mass=True)


def _index(tree: TreeIndex) -> PathIndex:
    found = getattr(tree, "fast", None)
    return path_index(tree) if found is None else PathIndex(*found)


def _on_leaves(logits: Tensor, target: Tensor, tree: TreeIndex, weights: _Weights) -> Tensor:
    at = _index(tree)
    return fused("leaves", logits, target, [at.order, at.first, at.last, at.path, at.length], weights)


def _on_nodes(logits: Tensor, target: Tensor, tree: TreeIndex, weights: _Weights, mass: bool = False) -> Tensor:
    at = _index(tree)
    operands = [at.first, at.child_first, at.child_count, at.child_column, at.path, at.length, at.excess]
    ragged = mass and at.ragged[0].shape[0] > 0
    if ragged:
        operands += [at.begin, at.finish, *at.ragged]
    constant = float(at.path.shape[1] - 1) if mass and not ragged else 0.0
    return fused("nodes", logits, target, operands, (*weights, constant, float(mass)))
