"""Distances between classes in a tree, for given pairs or for all pairs, from their lowest common ancestors.

A lowest common ancestor takes constant time, from arrays of N log N integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from labelkin.structure._tree import Tree


Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
DistanceKind = Literal["semantic", "edges", "height", "depth"]
DISTANCES: tuple[DistanceKind, ...] = ("semantic", "edges", "height", "depth")


def pair_distances(tree: Tree, distance: DistanceKind, left: Ints, right: Ints) -> Floats:
    """Return the distances between pairs of leaves that broadcast."""
    met: Ints = np.asarray(tree.lca(left, right))
    if distance == "height":
        return tree.height[met].astype(np.float64)
    found = _from_depths(tree, distance, tree.depth[left], tree.depth[right], tree.depth[met].astype(np.float64))
    return np.where(left == right, 0.0, found)


def all_distances(tree: Tree, distance: DistanceKind) -> Floats:
    """Return the (K, K) distances of all classes, in time that does not depend on the depth of the tree.

    The leaves are walked from left to right. The lowest common ancestor of two leaves is the highest of those of the neighbors
    between them, so a running minimum of depths, or maximum of heights, fills a row.
    """
    walk = np.argsort(tree.preorder[tree.leaves])
    steps = tree.leaves[walk]
    met = tree.lca(steps[:-1], steps[1:])
    if distance == "height":
        return _between(tree.height[met], np.maximum, walk)
    depth = tree.depth[tree.leaves]
    distances = _from_depths(tree, distance, depth[:, None], depth, _between(tree.depth[met], np.minimum, walk))
    np.fill_diagonal(distances, 0.0)
    return distances


def _from_depths(tree: Tree, distance: DistanceKind, left: Ints, right: Ints, shared: Floats) -> Floats:
    """Return distances of different classes at depths `left` and `right` whose lowest common ancestor has depth `shared`."""
    if distance == "edges":
        return left + right - 2.0 * shared
    if distance == "depth":
        return int(tree.depth.max()) - shared
    return np.maximum(left, right) - shared


def _between(values: Ints, merge: np.ufunc, walk: Ints) -> Floats:
    """Return (K, K) `merge` over the `values` between each two leaves of the walk, in class order; the diagonal is 0."""
    table = np.zeros((len(walk), len(walk)))
    for start, leaf in enumerate(walk[:-1]):
        row = merge.accumulate(values[start:])
        table[leaf, walk[start + 1 :]] = row
        table[walk[start + 1 :], leaf] = row
    return table


class RangeMinima(NamedTuple):
    """Minima of all ranges of `2**level` neighboring values, level after level in one flat table.

    The minimum of `values[i : j]` is that of `table[first[j - i] + i]` and `table[last[j - i] + j]`.
    """

    table: npt.NDArray[np.int32]
    first: Ints  # (n + 1,): one entry per length of a range
    last: Ints


class Preorder(NamedTuple):
    """Positions of the nodes in a depth-first walk that visits children in node order."""

    enter: Ints  # (N,): preorder number of each node
    leave: Ints  # (N,): preorder number after the last node below it
    order: Ints  # (N,): the nodes in preorder


def range_minima(values: npt.ArrayLike) -> RangeMinima:
    """Build the table; an empty range has no minimum and gives the first value."""
    row = np.asarray(values, dtype=np.int32)
    size = len(row)
    rows, step = [row], 1
    while 2 * step <= size:
        row = row.copy()
        np.minimum(row[: size - step], row[step:], out=row[: size - step])
        rows.append(row)
        step *= 2
    lengths = np.arange(size + 1)
    level = np.log2(np.maximum(lengths, 1)).astype(np.int64)
    first = level * size
    last = first - (1 << level)
    first[0], last[0] = 0, -1  # valid positions in the table
    return RangeMinima(np.concatenate([*rows, row[:1]]), first, last)


def subtree_sizes(parents: Ints) -> Ints:
    """Count the nodes at and below each node."""
    above = parents.tolist()
    sizes = [1] * len(above)
    for node in range(len(above) - 1, 0, -1):
        sizes[above[node]] += sizes[node]
    return np.array(sizes, dtype=np.int64)


def preorder(parents: Ints) -> Preorder:
    """Number the nodes of a tree whose parents come before their children."""
    above, below = parents.tolist(), subtree_sizes(parents)
    sizes = below.tolist()
    enter, free = [0] * len(above), [1] * len(above)  # free: the next number for a child of the node
    for node in range(1, len(above)):
        parent = above[node]
        enter[node] = free[parent]
        free[parent] += sizes[node]
        free[node] = enter[node] + 1
    entered = np.array(enter, dtype=np.int64)
    order = np.empty_like(entered)
    order[entered] = np.arange(len(above))
    return Preorder(entered, entered + below, order)


def lowest_common(walk: Preorder, minima: RangeMinima, left: Ints, right: Ints) -> Ints:
    """Return the lowest common ancestors of two arrays of nodes that broadcast."""
    a, b = walk.enter[left], walk.enter[right]
    low, high = np.minimum(a, b), np.maximum(a, b)
    span = high - low
    met = minima.table.take(minima.first.take(span) + (low + 1))
    met = np.minimum(met, minima.table.take(minima.last.take(span) + (high + 1)))
    return walk.order.take(np.where(span, met, low))
