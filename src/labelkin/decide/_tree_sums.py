"""Sums over a tree, level by level: time and memory grow with samples x nodes, and nothing is K x K.

Inside, a table has a row a node and a column a sample, so that a node's values lie side by side.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin.decide._validation import check_probs
from labelkin.structure import DistanceKind, Taxonomy

Ints = npt.NDArray[np.int64]


def node_probs(leaf_probs: Tensor, taxonomy: Taxonomy) -> Tensor:
    """(n, N) the probability of every node, the sum of the classes below it, from those of the classes (n, K).

    Columns follow the taxonomy's nodes, the root first. No node is less probable than one below it.
    """
    check_probs("leaf_probs", leaf_probs, len(taxonomy.leaves))
    return sums_below(leaf_probs.double(), taxonomy).T.to(leaf_probs.dtype)


def expected_distances(probs: Tensor, taxonomy: Taxonomy, distance: DistanceKind) -> Tensor:
    """(n, K) `sum_k probs[k] distance(k, j)` for every class j, without the K x K distances.

    With `P(v)` the probability of node v, the deepest node above both j and the true class is at or below v with
    probability `P(v)` for every v on the way from the root to j. So a value `f` of that node has the expectation
    `f(root) P(root) + sum (f(v) - f(parent of v)) P(v)` over that way: `f` is the height, or the depth, where the
    difference is 1. `"edges"` is the sum of both classes' depths minus twice that depth, `"semantic"` the larger of
    them minus it, and `"depth"` the depth of the tree minus it, but 0 where j is the true class.
    """
    below = sums_below(probs, taxonomy)
    if distance == "height":
        return _along_paths(below, taxonomy.height, taxonomy)
    shared = _along_paths(below, taxonomy.depth, taxonomy)
    depth = torch.from_numpy(taxonomy.depth[taxonomy.leaves]).to(probs.device)
    if distance == "edges":
        return probs.sum(-1, keepdim=True) * depth + (probs @ depth.to(probs.dtype)).unsqueeze(-1) - 2 * shared
    if distance == "depth":
        deepest = int(taxonomy.depth.max())
        return probs.sum(-1, keepdim=True) * deepest - shared - probs * (deepest - depth)
    return _expected_larger(probs, depth) - shared


def sums_below(leaf_values: Tensor, taxonomy: Taxonomy) -> Tensor:
    """(N, n) the sums of leaf values (n, K) at and below every node, from the deepest level up."""
    table = leaf_values.new_zeros(len(taxonomy), len(leaf_values))
    table[_tensor(taxonomy.leaves, table)] = leaf_values.T
    for nodes, above in reversed(_levels(taxonomy, table)):
        table.index_add_(0, above, table[nodes])
    return table


def _along_paths(below: Tensor, values: Ints, taxonomy: Taxonomy) -> Tensor:
    """(n, K) the sum of `(values[v] - values[parent of v]) below[v]` from the root, which has 0 above it, to every class."""
    steps = values.copy()
    steps[1:] -= values[taxonomy.parents[1:]]
    table = below * _tensor(steps, below).unsqueeze(-1)
    for nodes, above in _levels(taxonomy, table):
        table[nodes] += table[above]
    return table[_tensor(taxonomy.leaves, table)].T


def _expected_larger(probs: Tensor, depth: Tensor) -> Tensor:
    """(n, K) `sum_k probs[k] max(depth[k], depth[j])`, by running sums over the depths."""
    at = probs.new_zeros(len(probs), int(depth.max()) + 1).index_add_(1, depth, probs)
    scale = torch.arange(at.shape[1], device=probs.device, dtype=probs.dtype)
    deeper = (at * scale).sum(-1, keepdim=True) - (at * scale).cumsum(-1)
    return (at.cumsum(-1) * scale + deeper)[:, depth]


def _levels(taxonomy: Taxonomy, like: Tensor) -> list[tuple[Tensor, Tensor]]:
    """From the top: the nodes of every level below the root, and the nodes above them."""
    order = np.argsort(taxonomy.depth, kind="stable")[1:]
    cuts = np.flatnonzero(np.diff(taxonomy.depth[order])) + 1
    return [(_tensor(nodes, like), _tensor(taxonomy.parents[nodes], like)) for nodes in np.split(order, cuts)]


def _tensor(array: Ints, like: Tensor) -> Tensor:
    return torch.from_numpy(array.copy()).to(like.device)
