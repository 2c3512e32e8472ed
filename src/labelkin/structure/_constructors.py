"""The constructors of `Taxonomy`; each source of trees is implemented in a separate file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy.typing as npt

from labelkin._checks import plain_names
from labelkin.structure import _build as build
from labelkin.structure import _files as files
from labelkin.structure import _graph as graph
from labelkin.structure import _newick as newick
from labelkin.structure import _wordnet as wordnet
from labelkin.structure._tree import Tree


class Constructors(Tree):
    """The part of `Taxonomy` that builds trees; see there."""

    @classmethod
    def from_parents(cls, parents: npt.ArrayLike, names: Sequence[str]) -> Self:
        """Build a tree from the parent of each node, with the classes in node order.

        Args:
            parents: (N,) index of the parent of each node: -1 for the root, which comes first, and parents before children.
            names: N names of nodes.

        Returns:
            The tree, with the nodes in the given order.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_parents([-1, 0, 0], ["pet", "cat", "dog"]).classes
            ('cat', 'dog')
        """
        return cls(parents, names)

    @classmethod
    def from_nested(cls, tree: Mapping[str, Any] | Sequence[Any], *, root: str = "root") -> Self:
        """Build a tree from nested dicts and lists.

        Args:
            tree: A dict maps the name of an inner node to its children; a string is a class. A list contains classes,
                dicts and lists; a list inside a list is a group without a name and is called node1, node2, ...
            root: The name of the root, which is added above the outermost names.

        Returns:
            The tree.

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
        """Build a tree from pairs of parent and child.

        Args:
            edges: (parent, child) pairs of names in any order, each once.
            rule: Which parent to keep if a child has several: `"shortest"` keeps the one with the shortest path to the
                root, `"deepest"` the one with the longest; ties go to the parent given first. An inner node that loses
                all its children is removed. None raises an error if a child has several parents.
            classes: The order of the classes. None means the order in which they appear.

        Returns:
            The tree.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_edges([("pet", "cat"), ("pet", "dog")]).names
            ('pet', 'cat', 'dog')
        """
        return cls(*graph.from_edges(edges, rule=rule).parts)._in_order(classes)

    @classmethod
    def from_paths(cls, paths: Iterable[str | Sequence[str]], *, sep: str = "/") -> Self:
        """Build a tree from the path of each class.

        Args:
            paths: One path per class, in class order: a string such as `"animal/pet/cat"`, or a list of segments.
            sep: The separator of the segments in a string.

        Returns:
            The tree. A root is added above the first segments, even if all paths share the first one. If several nodes
            have the same segment, each of them is named by its whole path.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_paths(["animal/cat", "animal/dog"]).names
            ('root', 'animal', 'cat', 'dog')
        """
        return cls(*build.from_paths(paths, sep=sep))

    @classmethod
    def from_groups(cls, groups: Mapping[str, Sequence[str]], *, classes: Sequence[str] | None = None) -> Self:
        """Build a tree with one level of groups.

        Args:
            groups: The names of the classes in each group.
            classes: The order of the classes. None means the order in which they appear.

        Returns:
            The tree, with the groups below an added root.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_groups({"pet": ["cat", "dog"], "vehicle": ["car"]}).names
            ('root', 'pet', 'vehicle', 'cat', 'dog', 'car')
        """
        return cls(*build.from_groups(groups))._in_order(classes)

    @classmethod
    def from_adjacency(cls, matrix: npt.ArrayLike, names: Sequence[str]) -> Self:
        """Build a tree from an adjacency matrix, as in Fig. 2 of 002.

        Args:
            matrix: (N, N) zeros and ones; row i marks the children of node i. The first column is 0, because node 0 is
                the root; parents come before children.
            names: N names of nodes.

        Returns:
            The tree, with the nodes in the given order.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_adjacency([[0, 1, 1], [0, 0, 0], [0, 0, 0]], ["pet", "cat", "dog"]).classes
            ('cat', 'dog')
        """
        return cls(*build.from_adjacency(matrix, names))

    @classmethod
    def from_linkage(cls, linkage: npt.ArrayLike, names: Sequence[str]) -> Self:
        """Build the binary tree of a hierarchical clustering.

        Args:
            linkage: (K - 1, 4) matrix of `scipy.cluster.hierarchy.linkage`.
            names: K names of classes.

        Returns:
            The tree. Inner nodes are called node1, node2, ... in the order of the merges, and the last one root.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_linkage([[0, 1, 0.5, 2], [2, 3, 2.0, 3]], ["cat", "dog", "car"]).names
            ('root', 'car', 'node1', 'cat', 'dog')
        """
        return cls(*build.from_linkage(linkage, names))

    @classmethod
    def from_newick(cls, text: str) -> Self:
        """Build a tree from Newick text.

        Args:
            text: One tree that ends with a semicolon. Labels with special characters are in single quotes; branch lengths
                and comments are dropped.

        Returns:
            The tree, with its classes from left to right unless comments such as `[&class=0]` number them.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_newick("((cat,dog)animal,car)root;").classes
            ('cat', 'dog', 'car')
        """
        return cls(*newick.from_newick(text))

    @classmethod
    def from_wordnet(
        cls,
        names: Sequence[str],
        *,
        senses: Mapping[str, str] | None = None,
        rule: graph.Rule | None = None,
        database: wordnet.Database | None = None,
        collapse: bool = True,
    ) -> Self:
        """Build a tree from the part of WordNet's noun hierarchy above the classes.

        Args:
            names: The names of the classes, in class order; the tree keeps them.
            senses: The synsets of names whose first sense is not meant: `{"crane": "crane.n.04"}`.
            rule: Which hypernym to keep if a synset has several, as in `from_edges`. None means `"shortest"`, with a
                warning that lists the synsets. A dog is a canine and a domestic animal: `"deepest"` puts it next to the
                cat, `"shortest"` does not.
            database: A `WordNet`, or the folder of its files.
            collapse: Whether to drop inner nodes with a single child.

        Returns:
            The tree. If several classes share a synset, or a synset is above that of another class, its classes become
            leaves below a node of that synset.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_wordnet(["cat", "bat"], rule="shortest").names
            ('animal.n.01', 'cat', 'bat')
        """
        names = plain_names(names)
        parts = wordnet.from_wordnet(names, senses=senses, rule=rule, database=database)
        tree = cls(*parts).reorder(names)
        return tree.collapse() if collapse else tree

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a tree from a file that `save` or another program wrote.

        Args:
            path: A file of parent,child edges (`.csv`), Newick text (`.nwk`, `.newick`), or a saved tree or nested groups
                (`.json`, `.yaml`, `.yml`). The suffix selects the format.

        Returns:
            The tree.

        Example:
            >>> import pathlib, tempfile
            >>> from labelkin import Taxonomy
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "tree.csv")
            ...     _ = path.write_text("pet,cat\\npet,dog\\n")
            ...     tree = Taxonomy.load(path)
            >>> tree.classes
            ('cat', 'dog')
        """
        return files.load(path, cls)

    def _in_order(self, classes: Sequence[str] | None) -> Self:
        return self if classes is None else self.reorder(classes)
