"""Distances between classes in a tree, for given pairs or for all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

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
