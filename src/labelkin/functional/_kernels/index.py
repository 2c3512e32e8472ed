"""Index arrays for the kernels, derived from `TreeIndex`."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from labelkin.functional._tree import TreeIndex, path_columns

Ints = npt.NDArray[np.int64]


class Ragged(NamedTuple):
    """The part of a tree above leaves of different depths.

    A node is even when all leaves below it have the same depth. Below an even node the sum of the inner nodes'
    probabilities does not depend on the logits, so this part has the G uneven nodes, in preorder and with the root first,
    and their R children, with siblings next to each other. Both are 0 if the root is even.
    """

    column: Tensor  # (R,) int32: the column of each child in the logits
    weight: Tensor  # (R,) float32: number of inner nodes on a path from the child to a leaf, or 1 if it varies
    above: Tensor  # (R,) int32: the uneven node above it
    uneven: Tensor  # (R,) int32: the child's place among the uneven nodes; G if it is even
    first: Tensor  # (G,) int32: where the children of each uneven node begin
    size: Tensor  # (G,) int32: the number of its children
    largest: Tensor  # (G,) int32: the uneven nodes by their number of children, the largest first
    own: Tensor  # (G,) int32: the column of the uneven node itself; 0 for the root
    jumps: Tensor  # (J, G) int32: the uneven node 1, 2, 4, ... steps up; the root stays itself
    end: Tensor  # (G,) int32: the last uneven node at or below it
    enter: Tensor  # (G,) int32: the preorder number in the whole tree


class PathIndex(NamedTuple):
    """The arrays with which a kernel walks from the root to a sample's node."""

    order: Tensor  # (K,) int32: the classes in depth-first order; empty if they already have that order
    first: Tensor  # (N,) int32: the position in that order of the first class below each node
    last: Tensor  # (N,) int32: the position after the last one
    child_first: Tensor  # (N,) int32: where each node's children begin in `child_column`
    child_count: Tensor  # (N,) int32
    child_column: Tensor  # (N - 1,) int32: columns, with siblings next to each other
    path: Tensor  # (K, L) int32: for the classes in depth-first order, the nodes on the path below the root, padded with 0
    length: Tensor  # (N,) int32: depth; the path of a node is the first `length` columns of row `first` of `path`
    excess: Tensor  # (N,) float32: inner nodes strictly below an even node on a path to a leaf; 0 for other nodes
    begin: Tensor  # (N,) int32: preorder number
    finish: Tensor  # (N,) int32: preorder number after the last node below
    closed: Tensor  # (M,) int32: nodes whose `excess` is above 0
    watched: Tensor  # int32: columns of their children; if all children of one are masked, its `excess` is not reached
    ragged: Ragged


DEEPEST = 64  # depth up to which the paths of all classes are kept as one table
_CACHE: Any = WeakIdKeyDictionary()
_RINGS: Any = WeakIdKeyDictionary()


def is_shallow(tree: TreeIndex) -> bool:
    """Return whether the tree is at most `DEEPEST` deep, without waiting for the device."""
    return bool(2 ** len(tree.jumps) <= DEEPEST)


def path_index(tree: TreeIndex) -> PathIndex:
    """Return the arrays for a tree, on its device; built once for each `tree.enter` tensor."""
    stored: PathIndex | None = _CACHE.get(tree.enter)
    if stored is None:
        stored = _CACHE[tree.enter] = build(tree)
    return stored


def rings(tree: TreeIndex) -> Tensor:
    """Return the depth of the lowest common ancestor of two classes (K, K) as uint8; built once for each `tree.enter`.

    Rows are classes in depth-first order, columns are in the order of the logits.
    """
    stored: Tensor | None = _RINGS.get(tree.enter)
    if stored is None:
        stored = _RINGS[tree.enter] = _build_rings(tree)
    return stored


def _build_rings(tree: TreeIndex) -> Tensor:
    at = path_index(tree)
    first, last, length, order = (_numpy(part) for part in (at.first, at.last, at.length, at.order))
    classes = int(last[0])
    depths = np.zeros((classes, classes), dtype=np.uint8)
    for node in np.argsort(length, kind="stable"):
        below = slice(first[node], last[node])
        depths[below, below] = length[node]
    if len(order):
        depths[:, order] = depths.copy()
    return torch.from_numpy(depths).to(tree.enter.device)


def build(tree: TreeIndex) -> PathIndex:
    """Build the arrays for a tree that `is_shallow`."""
    device = tree.enter.device
    enter, leave, leaves = (_numpy(part) for part in (tree.enter, tree.leave, tree.leaves))
    parent, depth = _numpy(tree.parent), _numpy(tree.lengths)
    nodes, classes = len(enter), len(leaves)
    order = np.argsort(enter[leaves])
    places = enter[leaves][order]
    count = np.bincount(parent, minlength=nodes)
    in_order = tree.leaves[torch.from_numpy(order).to(device)]
    paths = _numpy(path_columns(in_order, tree))[:, : int(depth.max())]
    on_path = np.arange(paths.shape[1]) < depth[leaves[order], None]
    height, even = _heights(parent, depth, leaves)
    excess = np.where(even, np.maximum(height - 1, 0), 0)

    def whole(values: Ints) -> Tensor:
        return torch.from_numpy(values.astype(np.int32)).to(device)

    return PathIndex(
        order=whole(order if (order != np.arange(classes)).any() else order[:0]),
        first=whole(np.searchsorted(places, enter)),
        last=whole(np.searchsorted(places, leave)),
        child_first=whole(np.cumsum(count) - count),
        child_count=whole(count),
        child_column=whole(np.argsort(parent, kind="stable")),
        path=whole(np.where(on_path, paths + 1, 0)),
        length=whole(depth),
        excess=torch.from_numpy(excess.astype(np.float32)).to(device),
        begin=whole(enter),
        finish=whole(leave),
        closed=whole(np.flatnonzero(excess)),
        watched=whole(np.flatnonzero(excess[parent])),
        ragged=Ragged(*(part.to(device) for part in _ragged(parent, enter, leave, height, even))),
    )


def _heights(parent: Ints, depth: Ints, leaves: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the largest number of edges from each node to a leaf, and whether all its leaves have that depth."""
    lowest, highest = np.full(len(depth), len(depth)), np.zeros(len(depth), dtype=np.int64)
    lowest[leaves] = highest[leaves] = depth[leaves]
    for level in range(int(depth.max()), 0, -1):
        at = np.flatnonzero(depth == level)
        np.minimum.at(lowest, parent[at - 1], lowest[at])
        np.maximum.at(highest, parent[at - 1], highest[at])
    return highest - depth, lowest == highest


def _ragged(parent: Ints, enter: Ints, leave: Ints, height: Ints, even: npt.NDArray[np.bool_]) -> list[Tensor]:
    uneven = np.flatnonzero(~even)
    uneven = uneven[np.argsort(enter[uneven])]
    size = len(uneven)
    place = np.full(len(enter), size)
    place[uneven] = np.arange(size)
    children = np.flatnonzero(~even[parent]) + 1
    children = children[np.argsort(place[parent[children - 1]], kind="stable")]
    above = place[parent[children - 1]]
    count = np.bincount(above, minlength=size)
    up = place[parent[np.maximum(uneven - 1, 0)]] if size else uneven
    up[:1] = 0
    jumps, jump = [], up
    while jump.any():
        jumps.append(jump)
        jump = jump[jump]
    whole = [
        above,
        place[children],
        np.cumsum(count) - count,
        count,
        np.argsort(-count, kind="stable"),
        np.maximum(uneven - 1, 0),
        np.array(jumps, dtype=np.int64).reshape(len(jumps), size),
        np.searchsorted(enter[uneven], leave[uneven]) - 1,
        enter[uneven],
    ]
    weight = torch.from_numpy(np.where(even[children], height[children], 1).astype(np.float32))
    return [_int32(children - 1), weight, *map(_int32, whole)]


def _int32(values: npt.NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(values.astype(np.int32))


def _numpy(values: Tensor) -> Ints:
    found: Ints = values.cpu().numpy()
    return found
