"""`Taxonomy`: a tree of classes with distances, drawings and files."""

from __future__ import annotations

from os import PathLike

import numpy.typing as npt

from labelkin._checks import InputError, check_choice, renamed
from labelkin.structure import _files as files
from labelkin.structure import _newick as newick
from labelkin.structure._arrays import positions
from labelkin.structure._constructors import Constructors
from labelkin.structure._describe import Description, describe, draw
from labelkin.structure._distances import DISTANCES, DistanceKind, Floats, all_distances, pair_distances


class Taxonomy(Constructors):
    """An immutable tree whose leaves are the classes.

    `from_parents` and `from_adjacency` keep the given order of the nodes. All other constructors number nodes breadth
    first, with children in the order in which they first appear, so that siblings have consecutive numbers. Classes come
    in the order in which they appear, unless `classes` or the file gives another order.

    Args:
        parents: (N,) index of the parent of each node. Node 0 is the root and has parent -1; parents come before their
            children.
        names: N names of nodes, all different.
        leaves: (K,) nodes of the classes in class order: class `k` is node `leaves[k]`. The order of the classes is free.
            None means the order of the nodes.

    Example:
        >>> from labelkin import Taxonomy
        >>> tree = Taxonomy([-1, 0, 1, 1, 0], ["root", "pet", "cat", "dog", "car"])
        >>> tree
        Taxonomy(3 classes, 5 nodes, depth 2)
        >>> print(tree)
        root
        ├── pet
        │   ├── cat
        │   └── dog
        └── car
    """

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree to a file.

        Args:
            path: `.json`, `.yaml` and `.yml` keep everything; `.csv`, `.nwk` and `.newick` keep everything but the numbers
                of the nodes.

        Example:
            >>> import pathlib, tempfile
            >>> from labelkin import Taxonomy
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder, "tree.nwk")
            ...     Taxonomy.from_nested(["cat", "dog"]).save(path)
            ...     path.read_text()
            '(cat,dog)root;\\n'
        """
        files.save(self, path)

    def to_newick(self) -> str:
        """Return the tree as Newick text.

        Returns:
            One line with names, edges, and the order of siblings and classes. If the classes are not in the order of the
            leaves from left to right, a comment after each leaf gives its class position.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]}).to_newick()
            '((cat,dog)pet,(car)vehicle)root;'
        """
        return newick.to_newick(self)

    def distance(
        self,
        distance: DistanceKind = "height",
        a: npt.ArrayLike | None = None,
        b: npt.ArrayLike | None = None,
        *,
        kind: DistanceKind | None = None,
    ) -> Floats:
        """Return distances between classes.

        Args:
            distance: The kind of distance. With the lowest common ancestor of the two leaves,
                `"height"` is its height, as in mistake severity;
                `"semantic"` is the depth of the deeper leaf minus its depth (002, Sec. 4.2);
                `"edges"` is the number of edges between the leaves;
                `"depth"` is the depth of the deepest leaf of the tree minus its depth, as in the released code of "Making
                Better Mistakes" (2020) and its successors.
            a: Class positions. None, together with `b=None`, means all pairs.
            b: Class positions that broadcast with `a`.
            kind: The former name of `distance`, deprecated.

        Returns:
            (K, K) distances of all pairs, or the distances of the given pairs. A class has distance 0 only to itself.

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
        """Return counts: classes, nodes, depths, single-child nodes and the widest node.

        Returns:
            A NamedTuple of the counts.

        Example:
            >>> from labelkin import Taxonomy
            >>> Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]}).describe().single_child_nodes
            1
        """
        return describe(self)

    def show(self, *, limit: int | None = 60) -> str:
        """Return a drawing of the tree with one line per node.

        Args:
            limit: The number of nodes to draw, those nearest to the root first; None draws all.

        Returns:
            The drawing, also available as `str(tree)`. Nodes that are left out are counted.

        Example:
            >>> from labelkin import Taxonomy
            >>> print(Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]}).show(limit=3))
            root
            ├── pet … 2 more
            └── vehicle … 1 more
        """
        return draw(self, limit=limit)

    __str__ = show

    def __repr__(self) -> str:
        return f"Taxonomy({len(self.leaves)} classes, {len(self)} nodes, depth {int(self.depth.max())})"
