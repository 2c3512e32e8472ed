"""A tree of classes as one integer array; everything else derives from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError, check_choice, check_names, listed, near, renamed
from labelkin.structure import (
    _build as build,
)
from labelkin.structure import (
    _files as files,
)
from labelkin.structure import (
    _graph as graph,
)
from labelkin.structure import (
    _newick as newick,
)
from labelkin.structure import (
    _wordnet as wordnet_tree,
)
from labelkin.structure._ancestry import Preorder, RangeMinima, lowest_common, preorder, range_minima
from labelkin.structure._arrays import checked_parents, integers, positions
from labelkin.structure._build import from_paths
from labelkin.structure._describe import Description, describe, draw
from labelkin.structure._distances import DISTANCES, DistanceKind, Floats, Ints, all_distances, pair_distances
from labelkin.structure._wordnet import Database

__all__ = ["DISTANCES", "DistanceKind", "Floats", "Ints", "Taxonomy"]


class Taxonomy:
    """An immutable tree whose leaves are the classes.

    `parents[i]` is the node above node `i`; the root is node 0 with parent -1 and parents come before their children.
    `names[i]` is the node's own name, and `leaves` holds the nodes of the classes in class order: class `k` is node
    `leaves[k]`. The order of the classes is free and need not follow the order of the nodes.

    `from_parents` and `from_adjacency` keep the order of nodes that they are given. All other constructors number nodes
    breadth first, children in the order in which they first appear, so that siblings stand side by side; classes come
    in the order in which they appear, unless `classes` or a file says otherwise.
    """

    parents: Ints
    names: tuple[str, ...]
    leaves: Ints

    def __init__(self, parents: npt.ArrayLike, names: Sequence[str], leaves: npt.ArrayLike | None = None) -> None:
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
        vars(self).update(parents=parent_array, names=tuple(names), leaves=leaf_array)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Taxonomy is immutable; cannot set {name!r}")

    # Where trees come from; each reader lives in its own file, these are their doors.

    @classmethod
    def from_parents(cls, parents: npt.ArrayLike, names: Sequence[str]) -> Self:
        """The array itself: root first with parent -1, parents before children, leaves in node order."""
        return cls(parents, names)

    @classmethod
    def from_nested(cls, tree: Mapping[str, Any] | Sequence[Any], *, root: str = "root") -> Self:
        """Dicts and lists nested at will: `{"animal": {"pet": ["cat", "dog"]}, "machine": ["car"]}`, below `root`.

        A key is an inner node and a string a class; a list may hold classes, dicts and lists. A list inside a list is a
        group without a name and is called node1, node2, ...

        Example:
            >>> from labelkin import Taxonomy
            >>> tree = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"]}, "machine": ["car"]})
            >>> tree.classes
            ('cat', 'dog', 'car')
        """
        return cls(*build.from_nested(tree, root=root))

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Sequence[str]],
        *,
        rule: graph.Rule | None = None,
        classes: Sequence[str] | None = None,
    ) -> Self:
        """(parent, child) pairs in any order, each once; `classes` gives the order of the classes.

        A child with several parents needs a rule: `"shortest"` keeps the parent with the shortest way up to the root,
        `"deepest"` the one with the longest; the first one given where they are equal. An inner node that loses every
        child in this way goes.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_edges([("pet", "cat"), ("pet", "dog")]).names
            ('pet', 'cat', 'dog')
        """
        return cls(*graph.from_edges(edges, rule=rule).parts)._in_order(classes)

    @classmethod
    def from_paths(cls, paths: Iterable[str | Sequence[str]], *, sep: str = "/") -> Self:
        """One path a class, as `"animal/pet/cat"` or as a list of segments, in class order.

        A root is added above the first segments, also where all paths share the first one. A segment that stands for
        several nodes gives each of them its whole path as name.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_paths(["animal/cat", "animal/dog"]).names
            ('root', 'animal', 'cat', 'dog')
        """
        return cls(*from_paths(paths, sep=sep))

    @classmethod
    def from_groups(cls, groups: Mapping[str, Sequence[str]], *, classes: Sequence[str] | None = None) -> Self:
        """`{group: [classes]}` below an added root; `classes` gives the order of the classes."""
        return cls(*build.from_groups(groups))._in_order(classes)

    @classmethod
    def from_adjacency(cls, matrix: npt.ArrayLike, names: Sequence[str]) -> Self:
        """002's Fig. 2: row i marks the children of node i with 1; the first column is 0, for the root.

        Nodes keep their order, in which parents come before children; classes are the leaves in that order.
        """
        return cls(*build.from_adjacency(matrix, names))

    @classmethod
    def from_linkage(cls, linkage: npt.ArrayLike, names: Sequence[str]) -> Self:
        """The tree of `scipy.cluster.hierarchy.linkage`, classes in the order of `names`.

        Inner nodes are called node1, node2, ... in the order of the merges (the closest pair first), the last one root.
        """
        return cls(*build.from_linkage(linkage, names))

    @classmethod
    def from_newick(cls, text: str) -> Self:
        """Newick text, `((cat,dog)animal,car)root;`; what is read and how is said in `labelkin.structure._newick`."""
        return cls(*newick.from_newick(text))

    def to_newick(self) -> str:
        """Names, edges and the order of siblings and classes as one line of Newick.

        Where the classes' order is not that of the leaves from left to right, each leaf carries its place in a comment.
        """
        return newick.to_newick(self)

    @classmethod
    def from_wordnet(
        cls,
        names: Sequence[str],
        *,
        senses: Mapping[str, str] | None = None,
        rule: graph.Rule | None = None,
        database: Database | None = None,
        collapse: bool = True,
    ) -> Self:
        """The part of WordNet's noun hierarchy above the classes, which keep their names and order.

        A class is the first sense of its name, or what `senses` says: `{"crane": "crane.n.04"}`. A class whose synset
        stands above another class's, or is another's too, hangs as a leaf under that synset. Where a synset has several
        hypernyms, `rule` keeps one, as in `from_edges`; without a rule that is `"shortest"`, with a warning that names
        the nodes. (A dog is a canine and a domestic animal: `"deepest"` puts it beside the cat, `"shortest"` does not.)
        `collapse` drops inner nodes with a single child. `database` is a `WordNet` or its folder.
        """
        parts = wordnet_tree.from_wordnet(names, senses=senses, rule=rule, database=database)
        tree = cls(*parts).reorder(names)
        return tree.collapse() if collapse else tree

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A file written by `save`, or anybody's parent,child edges, Newick text or nested groups in JSON or YAML.

        The suffix says which; `labelkin.structure._files` describes the formats.
        """
        return files.load(path, cls)

    def save(self, path: str | PathLike[str]) -> None:
        """Write `.json`, `.yaml` or `.yml` (everything), `.csv`, `.nwk` or `.newick` (all but the nodes' numbers)."""
        files.save(self, path)

    # What the tree says.

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The names of the leaves, in class order."""
        return tuple(self.names[i] for i in self.leaves)

    @cached_property
    def depth(self) -> Ints:
        """Edges from the root to each node; the root has depth 0 (002 counts from 1)."""
        depth = [0]
        for above in self.parents[1:].tolist():
            depth.append(depth[above] + 1)
        return _frozen(np.array(depth))

    @cached_property
    def height(self) -> Ints:
        """Edges from each node to the farthest leaf below it; a leaf has height 0."""
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
        flags = np.zeros(len(self), dtype=np.bool_)
        flags[self.leaves] = True
        flags.setflags(write=False)
        return flags

    @cached_property
    def paths(self) -> Ints:
        """(N, deepest + 1): column `d` holds the node at depth `d` on the way down to the row's node, then -1.

        Its memory grows with nodes times depth; `ancestors`, `lca` and `level` need no such table.
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
        """Position of each node in a depth-first walk that visits children in node order; the root is 0."""
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
        """The index of a node, by name or index."""
        if not isinstance(name, str):
            if not 0 <= int(name) < len(self):
                raise InputError(f"node: expected an index from 0 to {len(self) - 1}, got {name}.")
            return int(name)
        if name not in self._positions:
            raise InputError(f"the taxonomy has no node {name!r}.{near(name, self.names)}")
        return self._positions[name]

    def ancestors(self, node: str | int) -> Ints:
        """The nodes from the root down to `node`, both included."""
        way = [self.node(node)]
        while way[-1]:
            way.append(int(self.parents[way[-1]]))
        return np.array(way[::-1])

    def subtree(self, node: str | int) -> Ints:
        """`node` and everything below it, in node order."""
        index = self.node(node)
        return np.sort(self._walk.order[self._walk.enter[index] : self._walk.leave[index]])

    def level(self, depth: int) -> Ints:
        """For each class, its ancestor at `depth` (the class itself where its leaf lies higher)."""
        if not 0 <= depth <= int(self.depth.max()):
            raise InputError(f"depth: expected 0 to {int(self.depth.max())}, got {depth}.")
        nodes = self._walk.order[self.depth[self._walk.order] == depth]
        above = nodes[np.searchsorted(self.preorder[nodes], self.preorder[self.leaves], side="right") - 1]
        return np.where(self.depth[self.leaves] <= depth, self.leaves, above)

    def lca(self, a: npt.ArrayLike | str, b: npt.ArrayLike | str) -> Any:
        """The deepest node above (or equal to) both: of two names, two indices, or arrays of indices that broadcast."""
        left = positions("a", self.node(a) if isinstance(a, str) else a, len(self))
        right = positions("b", self.node(b) if isinstance(b, str) else b, len(self))
        found = lowest_common(self._walk, self._minima, left, right)
        return int(found) if found.ndim == 0 else found

    def distance(
        self,
        distance: DistanceKind = "height",
        a: npt.ArrayLike | None = None,
        b: npt.ArrayLike | None = None,
        *,
        kind: DistanceKind | None = None,
    ) -> Floats:
        """How far apart classes are; without `a` and `b` all K x K of them, else those of the class positions given.

        - `"semantic"`: the depth of the deeper leaf minus that of the deepest common ancestor (002, Sec. 4.2).
        - `"edges"`: the number of edges on the way from one leaf to the other.
        - `"height"`: the height of the deepest common ancestor, as mistake severity counts it.

        - `"depth"`: the depth of the deepest leaf of the tree minus that of the deepest common ancestor, which the
          released code of "Making Better Mistakes" (2020) and its successors uses.

        Zero exactly where both are the same class. Positions broadcast.

        Example:
            >>> from labelkin import Taxonomy
            >>> tree = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"]}, "machine": ["car"]})
            >>> tree.distance("height")
            array([[0., 1., 3.],
                   [1., 0., 3.],
                   [3., 3., 0.]])
            >>> tree.distance("edges", 0, 2)
            array(5.)
        """
        distance = renamed("distance", distance, "kind", kind)
        check_choice("distance", distance, DISTANCES)
        if a is None and b is None:
            return all_distances(self, distance)
        if a is None or b is None:
            raise InputError("distance: give both a and b, or neither for all pairs of classes.")
        left, right = (positions(name, given, len(self.leaves)) for name, given in (("a", a), ("b", b)))
        return pair_distances(self, distance, self.leaves[left], self.leaves[right])

    def describe(self) -> Description:
        """Counts: classes, nodes, depths, single-child nodes and the widest node."""
        return describe(self)

    def show(self, *, limit: int | None = 60) -> str:
        """The tree drawn, one line a node: the `limit` nodes nearest to the root, or all of them with `None`."""
        return draw(self, limit=limit)

    __str__ = show

    # Other trees from this one.

    def reorder(self, classes: Sequence[str]) -> Self:
        """The same tree with its classes in the order given; a set of names that differs is refused."""
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
        """The tree above the classes named, in the order given: other leaves, and inner nodes left empty, go."""
        check_names("classes", classes, least=2)
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
        place = np.full(len(self) + 1, -1, dtype=np.int64)  # the last entry stands for "above the root"
        place[kept] = np.arange(len(kept))
        return type(self)(place[self.parents[kept]], [self.names[i] for i in kept], place[leaves])

    def collapse(self) -> Self:
        """The tree without single-child inner nodes, the root included; the child takes its parent's place."""
        return type(self)(*build.collapsed(self))

    def _in_order(self, classes: Sequence[str] | None) -> Self:
        return self if classes is None else self.reorder(classes)

    # Python's own manners.

    def __len__(self) -> int:
        """The number of nodes."""
        return len(self.parents)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        same_nodes = self.names == other.names and np.array_equal(self.parents, other.parents)
        return same_nodes and np.array_equal(self.leaves, other.leaves)

    def __hash__(self) -> int:
        return hash((self.names, self.parents.tobytes(), self.leaves.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parents, self.names, self.leaves)

    def __repr__(self) -> str:
        return f"Taxonomy({len(self.leaves)} classes, {len(self)} nodes, depth {int(self.depth.max())})"


def _frozen(array: Ints) -> Ints:
    array.setflags(write=False)
    return array
