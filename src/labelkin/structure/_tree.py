"""The nodes of a taxonomy as integer arrays, and lookups on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelkin._checks import (
    InputError,
    brief,
    check_names,
    is_whole,
    listed,
    near,
    plain,
    plain_names,
    with_suggestions,
)
from labelkin.structure._arrays import checked_parents, integers, positions
from labelkin.structure._build import collapsed
from labelkin.structure._distances import Ints, Preorder, RangeMinima, lowest_common, preorder, range_minima


class Tree:
    """The part of `Taxonomy` that holds the nodes; see there."""

    parents: Ints
    names: tuple[str, ...]
    leaves: Ints

    def __init__(self, parents: npt.ArrayLike, names: Sequence[str], leaves: npt.ArrayLike | None = None) -> None:
        names = plain_names(names)
        parent_array = checked_parents(parents, names)
        childless = np.setdiff1d(np.arange(len(parent_array)), parent_array)
        leaf_array = childless if leaves is None else integers("leaves", leaves)
        if len(leaf_array) != len(childless) or (np.sort(leaf_array) != childless).any():
            raise InputError(
                f"leaves: expected each of the {len(childless)} nodes without children once, in class order, "
                f"got {listed(leaf_array.tolist())}."
            )
        if len(leaf_array) < 2:
            raise InputError(f"a taxonomy needs at least two classes, got {len(leaf_array)}.")
        for array in (parent_array, leaf_array):
            array.setflags(write=False)
        vars(self).update(parents=parent_array, names=tuple(map(str, names)), leaves=leaf_array)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Taxonomy is immutable; cannot set {name!r}")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The names of the leaves, in class order."""
        return tuple(self.names[i] for i in self.leaves)

    @cached_property
    def depth(self) -> Ints:
        """(N,) number of edges from the root to each node; the root has depth 0 (002 counts from 1)."""
        depth = [0]
        for above in self.parents[1:].tolist():
            depth.append(depth[above] + 1)
        return _frozen(np.array(depth))

    @cached_property
    def height(self) -> Ints:
        """(N,) number of edges from each node to the farthest leaf below it; a leaf has height 0."""
        parents, height = self.parents.tolist(), [0] * len(self)
        for node in range(len(self) - 1, 0, -1):
            above = parents[node]
            height[above] = max(height[above], height[node] + 1)
        return _frozen(np.array(height))

    @cached_property
    def children(self) -> tuple[Ints, ...]:
        """The children of each node, in node order."""
        order = np.argsort(self.parents[1:], kind="stable") + 1
        starts = np.searchsorted(self.parents[order], np.arange(len(self) + 1))
        return tuple(_frozen(order[starts[i] : starts[i + 1]]) for i in range(len(self)))

    @cached_property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """(N,) whether each node is a leaf."""
        flags = np.zeros(len(self), dtype=np.bool_)
        flags[self.leaves] = True
        flags.setflags(write=False)
        return flags

    @cached_property
    def paths(self) -> Ints:
        """(N, deepest + 1) path from the root to each node; column `d` is its ancestor at depth `d`, padded with -1.

        The memory grows with nodes times depth; `ancestors`, `lca` and `level` do not use this table.
        """
        paths = np.full((len(self), int(self.depth.max()) + 1), -1, dtype=np.int64)
        paths[:, 0] = 0
        by_depth = np.argsort(self.depth, kind="stable")
        starts = np.searchsorted(self.depth[by_depth], np.arange(paths.shape[1] + 1))
        for depth in range(1, paths.shape[1]):
            nodes = by_depth[starts[depth] : starts[depth + 1]]
            paths[nodes, :depth] = paths[self.parents[nodes], :depth]
            paths[nodes, depth] = nodes
        return _frozen(paths)

    @cached_property
    def preorder(self) -> Ints:
        """(N,) position of each node in a depth-first walk that visits children in node order; the root is 0."""
        return _frozen(self._walk.enter)

    @cached_property
    def _walk(self) -> Preorder:
        return preorder(self.parents)

    @cached_property
    def _minima(self) -> RangeMinima:
        return range_minima(self._walk.enter[np.maximum(self.parents, 0)][self._walk.order])

    @property
    def ancestry(self) -> tuple[Preorder, RangeMinima]:
        """The preorder walk and its range minima, from which `lca` reads lowest common ancestors."""
        return self._walk, self._minima

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def node(self, name: str | int | np.integer[Any]) -> int:
        """Return the index of a node.

        Args:
            name: The name of the node, or its index, which is checked and returned.

        Returns:
            The index, from 0 to N - 1.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]}).node("pet")
            1
        """
        if not isinstance(name, str):
            index = plain(name)
            if not is_whole(index) or not 0 <= index < len(self):
                raise InputError(f"node: expected a name, or an index from 0 to {len(self) - 1}, got {brief(index)}.")
            return int(index)
        if name not in self._positions:
            raise InputError(f"the taxonomy has no node {name!r}.{near(name, self.names)}")
        return self._positions[name]

    def ancestors(self, node: str | int) -> Ints:
        """Return the nodes on the path from the root to a node.

        Args:
            node: The name or index of the node.

        Returns:
            The indices from the root to `node`, both included.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]}).ancestors("dog")
            array([0, 1, 4])
        """
        path = [self.node(node)]
        while path[-1]:
            path.append(int(self.parents[path[-1]]))
        return np.array(path[::-1])

    def subtree(self, node: str | int) -> Ints:
        """Return a node and all nodes below it.

        Args:
            node: The name or index of the node.

        Returns:
            The indices of the nodes, in node order.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]}).subtree("pet")
            array([1, 3, 4])
        """
        index = self.node(node)
        return np.sort(self._walk.order[self._walk.enter[index] : self._walk.leave[index]])

    def level(self, depth: int) -> Ints:
        """Return the ancestor of each class at a depth.

        Args:
            depth: The depth, from 0 (the root) to the depth of the deepest class.

        Returns:
            (K,) indices of nodes. A class whose leaf is not as deep as `depth` is its own ancestor.

        Example:
            >>> from labelkin import Taxonomy
            >>> tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
            >>> [tree.names[node] for node in tree.level(1)]
            ['pet', 'pet', 'vehicle']
        """
        depth = plain(depth)
        if not is_whole(depth) or not 0 <= depth <= int(self.depth.max()):
            raise InputError(f"depth: expected 0 to {int(self.depth.max())}, got {brief(depth)}.")
        nodes = self._walk.order[self.depth[self._walk.order] == depth]
        above = nodes[np.searchsorted(self.preorder[nodes], self.preorder[self.leaves], side="right") - 1]
        return np.where(self.depth[self.leaves] <= depth, self.leaves, above)

    def lca(self, a: npt.ArrayLike | str, b: npt.ArrayLike | str) -> Any:
        """Return lowest common ancestors.

        Args:
            a: The name of a node, its index, or an array of indices.
            b: The same; `a` and `b` broadcast.

        Returns:
            The index of the deepest node that is above or equal to both, or an array of such indices.

        Example:
            >>> from labelkin import Taxonomy
            >>> tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
            >>> tree.names[tree.lca("cat", "dog")]
            'pet'
            >>> tree.lca(tree.leaves, tree.node("cat"))
            array([3, 1, 0])
        """
        left = positions("a", self.node(a) if isinstance(a, str) else a, len(self))
        right = positions("b", self.node(b) if isinstance(b, str) else b, len(self))
        nodes = lowest_common(self._walk, self._minima, left, right)
        return int(nodes) if nodes.ndim == 0 else nodes

    def reorder(self, classes: Sequence[str]) -> Self:
        """Return the same tree with another order of the classes.

        Args:
            classes: The names of all classes of the tree, in the new order.

        Returns:
            A new tree.

        Example:
            >>> from labelkin import Taxonomy
            >>> tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
            >>> tree.reorder(["car", "cat", "dog"]).classes
            ('car', 'cat', 'dog')
        """
        classes = plain_names(classes)
        check_names("classes", classes, least=2)
        own, wanted = set(self.classes), set(classes)
        unknown = [name for name in classes if name not in own]
        if unknown:
            hint = near(unknown[0], self.classes)
            raise InputError(f"classes: the taxonomy has no class {listed(unknown)}.{hint}")
        missing = [name for name in self.classes if name not in wanted]
        if missing:
            raise InputError(
                f"classes: {listed(missing)} of the taxonomy missing; name all its classes, or restrict() it first."
            )
        return type(self)(self.parents, self.names, [self.node(name) for name in classes])

    def restrict(self, classes: Sequence[str]) -> Self:
        """Return the part of the tree above some of its classes.

        Args:
            classes: The names of the classes to keep, in the order of the new tree.

        Returns:
            A new tree without the other classes and without inner nodes that have no class left.

        Example:
            >>> from labelkin import Taxonomy
            >>> tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
            >>> tree.restrict(["dog", "cat"]).names
            ('root', 'pet', 'cat', 'dog')
        """
        classes = plain_names(classes)
        check_names("classes", classes, least=2)
        if unknown := [name for name in classes if name not in self._positions]:
            raise InputError(
                f"the taxonomy has no node {with_suggestions(unknown, self.names)}; every class needs one, so add it to the "
                "tree, or correct the name."
            )
        leaves = [self.node(name) for name in classes]
        inner = [self.names[i] for i in leaves if not self.is_leaf[i]]
        if inner:
            raise InputError(f"classes: {listed(inner)} is an inner node of the taxonomy, not a class.")
        wanted, parents = [False] * len(self), self.parents.tolist()
        for leaf in leaves:
            wanted[leaf] = True
        for node in range(len(self) - 1, 0, -1):
            wanted[parents[node]] |= wanted[node]
        kept = np.flatnonzero(wanted)
        place = np.full(len(self) + 1, -1, dtype=np.int64)  # the last entry is for the root's parent, -1
        place[kept] = np.arange(len(kept))
        return type(self)(place[self.parents[kept]], [self.names[i] for i in kept], place[leaves])

    def collapse(self) -> Self:
        """Return the tree without inner nodes that have a single child.

        Returns:
            A new tree in which the child replaces its parent; this applies to the root as well.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"]}}).collapse().names
            ('pet', 'cat', 'dog')
        """
        return type(self)(*collapsed(self))

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.parents)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        same_nodes = self.names == other.names and np.array_equal(self.parents, other.parents)
        return same_nodes and np.array_equal(self.leaves, other.leaves)

    def __hash__(self) -> int:
        return hash((self.names, self.parents.tobytes(), self.leaves.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parents, self.names, self.leaves)


def _frozen(array: Ints) -> Ints:
    array.setflags(write=False)
    return array
