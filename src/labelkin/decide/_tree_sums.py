"""Sums over a tree, level by level, in time and memory of samples x nodes, without K x K tables.

Internal tables have one row per node and one column per sample, so that the values of a node are contiguous.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin.decide._validation import check_probs
from labelkin.structure import DistanceKind, Taxonomy

Ints = npt.NDArray[np.int64]


def node_probs(leaf_probs: Tensor, taxonomy: Taxonomy) -> Tensor:
    """Return the probability of each node, which is the sum over the classes below it.

    Args:
        leaf_probs: (n, K) probabilities of the classes.
        taxonomy: The tree.

    Returns:
        (n, N) probabilities in the order of the nodes, with the root first. No node is less probable than its children.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> decide.node_probs(torch.tensor([[0.25, 0.25, 0.5]]), tree)
        tensor([[1.0000, 0.5000, 0.5000, 0.2500, 0.2500, 0.5000]])
    """
    check_probs("leaf_probs", leaf_probs, len(taxonomy.leaves))
    return sums_below(leaf_probs.double(), taxonomy).T.to(leaf_probs.dtype)


def expected_distances(probs: Tensor, taxonomy: Taxonomy, distance: DistanceKind) -> Tensor:
    """Return (n, K) `sum_k probs[k] distance(k, j)` for each class j, without the K x K distances.

    Let `P(v)` be the probability of node v. For each v on the path from the root to j, the lowest common ancestor of j and the
    true class is at or below v with probability `P(v)`. So a value `f` of that ancestor has the expectation
    `f(root) P(root) + sum (f(v) - f(parent of v)) P(v)` over the path, where `f` is the height or the depth. `"edges"` is the
    sum of the depths of both classes minus twice the depth of the ancestor, `"semantic"` is the larger depth minus it, and
    `"depth"` is the depth of the tree minus it, but 0 if j is the true class.
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
    """Return (N, n) sums of leaf values (n, K) at and below each node, from the deepest level up."""
    table = leaf_values.new_zeros(len(taxonomy), leaf_values.shape[0])  # not len(), which tracing would make a constant
    table[_tensor(taxonomy.leaves, table)] = leaf_values.T
    for nodes, above in reversed(_levels(taxonomy, table)):
        table.index_add_(0, above, table[nodes])
    return table


def sums_along_paths(below: Tensor, values: Ints, taxonomy: Taxonomy) -> Tensor:
    """Return (N, n) sums of `(values[v] - values[parent of v]) below[v]` over the path from the root to each node.

    The root has no parent and counts `values[root] below[root]`.
    """
    steps = values.copy()
    steps[1:] -= values[taxonomy.parents[1:]]
    table = below * _tensor(steps, below).unsqueeze(-1)
    for nodes, above in _levels(taxonomy, table):
        table[nodes] += table[above]
    return table


def _along_paths(below: Tensor, values: Ints, taxonomy: Taxonomy) -> Tensor:
    """Return the sums of `sums_along_paths` for the classes (n, K)."""
    return sums_along_paths(below, values, taxonomy)[_tensor(taxonomy.leaves, below)].T


def _expected_larger(probs: Tensor, depth: Tensor) -> Tensor:
    """Return (n, K) `sum_k probs[k] max(depth[k], depth[j])`, by running sums over depths."""
    at = probs.new_zeros(len(probs), int(depth.max()) + 1).index_add_(1, depth, probs)
    scale = torch.arange(at.shape[1], device=probs.device, dtype=probs.dtype)
    deeper = (at * scale).sum(-1, keepdim=True) - (at * scale).cumsum(-1)
    return (at.cumsum(-1) * scale + deeper)[:, depth]


def _levels(taxonomy: Taxonomy, like: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return the nodes of each level below the root, from the top, and their parents."""
    order = np.argsort(taxonomy.depth, kind="stable")[1:]
    cuts = np.flatnonzero(np.diff(taxonomy.depth[order])) + 1
    return [(_tensor(nodes, like), _tensor(taxonomy.parents[nodes], like)) for nodes in np.split(order, cuts)]


def _tensor(array: Ints, like: Tensor) -> Tensor:
    return torch.from_numpy(array.copy()).to(like.device)
