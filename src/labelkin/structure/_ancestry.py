"""Lowest common ancestors in constant time for each pair, from arrays of N log N integers.

Nodes are numbered in preorder. For two nodes with preorder numbers `a < b`, the lowest common ancestor is the smallest
preorder number among the parents of the nodes `a + 1, ..., b`; a sparse table answers such a range minimum with two
lookups (Bender and Farach-Colton, 2000).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin.structure._distances import Ints


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
