"""Distances and shared ancestors as arithmetic on tensors, on whatever device they are: nothing here waits for a GPU."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin.structure import DistanceKind, Taxonomy


class TreeTensors(NamedTuple):
    """The arrays of a taxonomy as tensors."""

    leaves: Tensor  # (K,) the node of each class
    paths: Tensor  # (N, L) the nodes from the root down to each node, -1 behind it
    depth: Tensor  # (N,)
    height: Tensor  # (N,)


def tree_tensors(taxonomy: Taxonomy, device: torch.device | None = None) -> TreeTensors:
    arrays = (taxonomy.leaves, taxonomy.paths, taxonomy.depth, taxonomy.height)
    return TreeTensors(*(torch.from_numpy(np.array(array)).to(device) for array in arrays))


def shared_depth(tree: TreeTensors, left: Tensor, right: Tensor) -> Tensor:
    """The depth of the deepest node above both nodes, column by column so that nothing is larger than the answer."""
    left, right = torch.broadcast_tensors(left, right)  # type: ignore[no-untyped-call]
    shared = torch.full_like(left, -1)
    for column in tree.paths.unbind(1):
        above = column[left]
        shared += (above == column[right]) & (above >= 0)
    return shared


def class_distances(tree: TreeTensors, distance: DistanceKind, left: Tensor, right: Tensor) -> Tensor:
    """Return what `Taxonomy.distance(distance, left, right)` gives for class positions, in double precision."""
    left, right = torch.broadcast_tensors(tree.leaves[left.long()], tree.leaves[right.long()])  # type: ignore[no-untyped-call]
    shared = shared_depth(tree, left, right)
    if distance == "height":
        return tree.height[tree.paths[left, shared]].double()
    if distance == "edges":
        return (tree.depth[left] + tree.depth[right] - 2 * shared).double()
    if distance == "semantic":
        return (torch.maximum(tree.depth[left], tree.depth[right]) - shared).double()
    if distance == "depth":
        return torch.where(left == right, 0, tree.depth.max() - shared).double()
    raise NotImplementedError(f"the distance {distance!r} has no form on tensors")
