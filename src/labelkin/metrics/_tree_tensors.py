"""Distances and shared ancestors as tensor arithmetic on any device, without waiting for a GPU."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin.structure import DistanceKind, Taxonomy


class TreeTensors(NamedTuple):
    """The arrays of a taxonomy as tensors."""

    leaves: Tensor  # (K,) the node of each class
    depth: Tensor  # (N,)
    height: Tensor  # (N,)
    enter: Tensor  # (N,) preorder number of each node
    order: Tensor  # (N,) the node of each preorder number
    minima: Tensor  # minima of ranges of preorder numbers, as `Taxonomy.lca` uses them
    first: Tensor
    last: Tensor


def tree_tensors(taxonomy: Taxonomy, device: torch.device | None = None) -> TreeTensors:
    """Return the arrays of a taxonomy as tensors on a device."""
    walk, minima = taxonomy.ancestry
    arrays = (
        taxonomy.leaves,
        taxonomy.depth,
        taxonomy.height,
        walk.enter,
        walk.order,
        minima.table,
        minima.first,
        minima.last,
    )
    return TreeTensors(*(torch.from_numpy(np.array(array, dtype=np.int64)).to(device) for array in arrays))


def lowest_common(tree: TreeTensors, left: Tensor, right: Tensor) -> Tensor:
    """Return the lowest common ancestors of two tensors of nodes that broadcast."""
    a, b = tree.enter[left], tree.enter[right]
    low, high = torch.minimum(a, b), torch.maximum(a, b)
    span = high - low
    met = torch.minimum(tree.minima[tree.first[span] + low + 1], tree.minima[tree.last[span] + high + 1])
    return tree.order[torch.where(span > 0, met, low)]


def shared_depth(tree: TreeTensors, left: Tensor, right: Tensor) -> Tensor:
    """Return the depth of the lowest common ancestor of two tensors of nodes."""
    return tree.depth[lowest_common(tree, left, right)]


def class_distances(tree: TreeTensors, distance: DistanceKind, left: Tensor, right: Tensor) -> Tensor:
    """Return `Taxonomy.distance(distance, left, right)` for class positions, in double precision."""
    left, right = torch.broadcast_tensors(tree.leaves[left.long()], tree.leaves[right.long()])  # type: ignore[no-untyped-call]
    shared = shared_depth(tree, left, right)
    if distance == "height":
        return tree.height[lowest_common(tree, left, right)].double()
    if distance == "edges":
        return (tree.depth[left] + tree.depth[right] - 2 * shared).double()
    if distance == "semantic":
        return (torch.maximum(tree.depth[left], tree.depth[right]) - shared).double()
    if distance == "depth":
        return torch.where(left == right, 0, tree.depth.max() - shared).double()
    raise NotImplementedError(f"the distance {distance!r} has no form on tensors")
