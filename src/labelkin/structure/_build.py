"""Build trees from nested lists, groups, matrices, linkages and class paths.

Nodes are numbered breadth first, with children in the order in which they first appear, so that siblings have consecutive
numbers. Classes are in the order in which they appear. Only an adjacency matrix keeps its own order of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError, check_names, counted, plain_names

if TYPE_CHECKING:
    from labelkin.structure._tree import Tree


class Parts(NamedTuple):
    """The arguments of `Taxonomy`."""

    parents: list[int]
    names: list[str]
    leaves: list[int] | None  # None: in node order


def breadth_first(names: Sequence[str], parents: Sequence[int], classes: Sequence[int] | None = None) -> Parts:
    """Number the nodes of a tree that are given in order of appearance; parents may come later, and the root has parent -1."""
    children: list[list[int]] = [[] for _ in names]
    for node, above in enumerate(parents):
        if above >= 0:
            children[above].append(node)
    if classes is None:
        classes = [node for node, below in enumerate(children) if not below]
    return _numbered(parents.index(-1), children, names, classes)


def depth_first(tree: Tree) -> list[int]:
    """Return the nodes in depth-first order, from the root down and from the first child to the last."""
    walk: list[int] = []
    waiting = [0]
    while waiting:
        walk.append(waiting.pop())
        waiting.extend(tree.children[walk[-1]][::-1].tolist())
    return walk


def collapsed(tree: Tree) -> Parts:
    """Remove inner nodes that have a single child; the child replaces its parent."""
    standing = list(range(len(tree)))
    for node in reversed(standing):
        if len(tree.children[node]) == 1:
            standing[node] = standing[tree.children[node][0]]
    children = [[standing[child] for child in below] for below in tree.children]
    return _numbered(standing[0], children, tree.names, tree.leaves.tolist())


def _numbered(root: int, children: Sequence[Sequence[int]], names: Sequence[str], classes: Iterable[int]) -> Parts:
    order, parents = [root], [-1]
    for place, node in enumerate(order):  # the loop appends to both lists
        order.extend(children[node])
        parents.extend([place] * len(children[node]))
    places = {node: place for place, node in enumerate(order)}
    return Parts(parents, [names[node] for node in order], [places[node] for node in classes])


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return `wanted`, with a number appended if the name is taken."""
    names = set(taken)
    if wanted not in names:
        return wanted
    return next(name for i in count(2) if (name := f"{wanted}-{i}") not in names)


def free_names(taken: Iterable[str]) -> Iterator[str]:
    """Return node1, node2, ... for nodes without a name, skipping names that are taken."""
    names = set(taken)
    return (name for i in count(1) if (name := f"node{i}") not in names)


def from_nested(tree: Mapping[str, Any] | Sequence[Any], *, root: str) -> Parts:
    """Build a tree from nested dicts and lists; see `Taxonomy.from_nested`."""
    names: list[Any] = []
    parents: list[int] = []
    waiting: list[tuple[Any, Any, int]] = [(root, tree, -1)]
    while waiting:
        name, below, above = waiting.pop()
        node = len(names)
        names.append(name)
        parents.append(above)
        if below is not _CLASS:
            waiting.extend((child, rest, node) for child, rest in reversed(_children_of(name, below)))
    unnamed = free_names(name for name in names if isinstance(name, str))
    filled = [next(unnamed) if name is _UNNAMED else name for name in names]
    if root in filled[1:]:
        raise InputError(
            f"root: {root!r} is also the name of a node of the tree; rename that node, or give another root (root= in "
            "Python)."
        )
    check_names("tree", filled)
    return breadth_first(filled, parents)


_CLASS = object()  # marks a class, which has no children
_UNNAMED = object()  # the name of a list inside a list


def _children_of(name: Any, below: Any) -> list[tuple[Any, Any]]:
    """Return the children in a dict (named), or the classes, groups and unnamed groups in a list."""
    if isinstance(below, str):
        return [(below, _CLASS)]
    if isinstance(below, Mapping):
        children = list(below.items())
    elif isinstance(below, Sequence):
        children = []
        for item in below:
            if isinstance(item, Mapping) and item:
                children.extend(item.items())
            elif isinstance(item, (Mapping, Sequence)) and not isinstance(item, str):
                children.append((_UNNAMED, item))
            else:
                children.append((item, _CLASS))
    elif below is None:
        children = []
    else:
        raise InputError(f"expected dicts and lists of names, got {below!r} below {name!r}.")
    if not children:
        group = "an unnamed group" if name is _UNNAMED else f"group {name!r}"
        raise InputError(f"{group} is empty; list the classes of each group, as in {{'pet': ['cat', 'dog']}}.")
    return children


def from_groups(groups: Mapping[str, Sequence[str]]) -> Parts:
    """Build a tree with one level of groups; see `Taxonomy.from_groups`."""
    if not isinstance(groups, Mapping) or not groups:
        raise InputError(f"groups: expected a mapping from group to its classes, got {groups!r}.")
    for group, members in groups.items():
        if isinstance(members, (str, Mapping)) or not isinstance(members, Iterable):
            raise InputError(f"groups: expected a list of class names for group {group!r}, got {members!r}.")
    lists = {group: list(members) for group, members in groups.items()}
    taken = [*lists, *(name for members in lists.values() for name in members)]
    check_names("groups", taken)
    return from_nested(lists, root=free_name("root", taken))


def from_adjacency(matrix: npt.ArrayLike, names: Sequence[str]) -> Parts:
    """Build a tree from an adjacency matrix; see `Taxonomy.from_adjacency`."""
    table = np.asarray(matrix)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise InputError(f"matrix: expected one row and one column for each node, got shape {table.shape}.")
    if table.dtype.kind not in "biuf" or not np.isin(table, (0, 1)).all():
        raise InputError("matrix: expected only 0 and 1; row i marks the children of node i with 1.")
    names = plain_names(names)
    check_names("names", names)
    if len(names) != len(table):
        raise InputError(
            f"names: expected {counted(len(table), 'name')}, one for each row of the matrix, got {len(names)}."
        )
    marks = np.count_nonzero(table, axis=0)
    if marks[0]:
        raise InputError(f"matrix: the first column must be 0 for the root, but {names[0]!r} is marked as a child.")
    for node in (np.flatnonzero(marks[1:] != 1) + 1).tolist():
        what = "two roots: no row marks" if not marks[node] else f"matrix: {counted(marks[node], 'row')} mark"
        raise InputError(f"{what} {names[node]!r} as a child; every node but the first has exactly one parent.")
    return Parts([-1, *table[:, 1:].argmax(axis=0).tolist()], list(names), None)


def from_linkage(linkage: npt.ArrayLike, names: Sequence[str]) -> Parts:
    """Build a tree from a linkage matrix of scipy; see `Taxonomy.from_linkage`."""
    names = plain_names(names)
    check_names("names", names, least=2)
    table = np.asarray(linkage)
    size = len(names)
    if table.shape != (size - 1, 4) or table.dtype.kind not in "iuf":
        raise InputError(
            f"linkage: expected shape ({size - 1}, 4) for {counted(size, 'name')}, got {table.shape} of {table.dtype}."
        )
    pairs, made = table[:, :2], np.arange(size, 2 * size - 1)[:, None]
    known = (pairs >= 0) & (pairs < made) & (pairs == np.floor(pairs))
    if not known.all() or len(np.unique(pairs)) < pairs.size:
        raise InputError("linkage: each row must join two earlier clusters, and each cluster must be joined once.")
    parents = np.full(2 * size - 1, -1, dtype=np.int64)
    parents[pairs.astype(np.int64)] = made
    unnamed = free_names(names)
    inner = [next(unnamed) for _ in range(size - 2)]
    return breadth_first([*names, *inner, free_name("root", names)], parents.tolist(), range(size))


def from_paths(paths: Iterable[str | Sequence[str]], *, sep: str) -> Parts:
    """Build a tree from the path of each class; see `Taxonomy.from_paths`."""
    if not isinstance(sep, str) or not sep:
        raise InputError(f"sep: expected the string that separates the segments, got {sep!r}.")
    split = [] if isinstance(paths, str) else [_segments(path, sep) for path in paths]
    if not split:
        raise InputError(f"paths: expected a list with the path of each class, got {paths!r}.")
    nodes: dict[tuple[str, ...], None] = {}
    inner: set[tuple[str, ...]] = set()
    for path in split:
        if path in nodes and path not in inner:
            raise InputError(f"paths: duplicate path {sep.join(path)!r}; give the path of each class once.")
        above = [path[:length] for length in range(1, len(path))]
        inner.update(above)
        nodes.update(dict.fromkeys([*above, path]))
    for path in split:
        if path in inner:
            raise InputError(
                f"paths: {sep.join(path)!r} is a class, but other paths continue below it; a class must be a leaf."
            )
    uses = Counter(node[-1] for node in nodes)
    names = [node[-1] if uses[node[-1]] == 1 else sep.join(node) for node in nodes]
    places = {node: place for place, node in enumerate(nodes)}
    parents = [-1, *(places[node[:-1]] + 1 if len(node) > 1 else 0 for node in nodes)]
    return breadth_first([free_name("root", names), *names], parents)


def _segments(path: str | Sequence[str], sep: str) -> tuple[str, ...]:
    segments = tuple(path.split(sep)) if isinstance(path, str) else tuple(path)
    for segment in segments:
        if not isinstance(segment, str) or not segment:
            raise InputError(
                f"paths: {path!r} contains the segment {segment!r}; every segment must be a non-empty string."
            )
    if not segments:
        raise InputError("paths: got an empty path; every path needs at least the name of its class.")
    return segments
