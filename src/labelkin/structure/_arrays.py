"""Checks of the arrays of a tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError, check_names, counted, listed
from labelkin.structure._distances import Ints


def checked_parents(parents: npt.ArrayLike, names: Sequence[str]) -> Ints:
    """Return the parents of a tree as an array; check that there is one root, in first place, and no cycle."""
    array = integers("parents", parents)
    check_names("names", names)
    if len(names) != len(array):
        raise InputError(
            f"names: expected {counted(len(array), 'name')}, one for each entry of parents, got {len(names)}."
        )
    roots = np.flatnonzero(array == -1)
    outside = np.flatnonzero((array < -1) | (array >= len(array)))
    if len(outside):
        node = int(outside[0])
        raise InputError(
            f"parents: node {names[node]!r} names parent {array[node]}, which is not among the {len(array)} nodes."
        )
    if len(roots) > 1:
        raise InputError(
            f"{len(roots)} roots: {listed([names[i] for i in roots.tolist()])}; exactly one node may have parent -1."
        )
    late = np.flatnonzero(array >= np.arange(len(array)))
    if len(late):
        if loop := _cycle(array):
            raise InputError(f"a cycle: {' -> '.join(names[i] for i in loop)}; every node must lead up to one root.")
        child = int(late[0])
        raise InputError(
            f"parents: {names[child]!r} comes before its parent {names[array[child]]!r}; put the root first and "
            "parents before children, or use Taxonomy.from_edges, which takes any order."
        )
    return array


def _cycle(parents: Ints) -> list[int]:
    """Return the nodes of a cycle from parent to child, or an empty list."""
    done = np.zeros(len(parents), dtype=np.bool_)
    for start in range(len(parents)):
        walked: dict[int, None] = {}
        node = start
        while node >= 0 and not done[node] and node not in walked:
            walked[node] = None
            node = int(parents[node])
        steps = list(walked)
        if node in walked:
            return [node, *reversed(steps[steps.index(node) :])]
        done[steps] = True
    return []


def integers(argument: str, values: npt.ArrayLike) -> Ints:
    """Return a non-empty list of whole numbers as an array."""
    try:
        array = np.array(values)
    except ValueError as error:  # rows of unequal length
        raise InputError(f"{argument}: expected a list of whole numbers ({error}).") from error
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array):
        raise InputError(f"{argument}: expected a list of whole numbers, got shape {array.shape} of {array.dtype}.")
    return array.astype(np.int64)


def positions(argument: str, values: npt.ArrayLike, count: int) -> Ints:
    """Return whole numbers from 0 to `count - 1` as an array."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or (array.size and not 0 <= array.min() <= array.max() < count):
        raise InputError(f"{argument}: expected whole numbers from 0 to {count - 1}, got {array}.")
    return array.astype(np.int64)
