"""The superclasses of a tree: one level of it, coarse enough to colour by."""

from math import log, sqrt
from typing import NamedTuple

from labelkin.structure import Taxonomy


class Groups(NamedTuple):
    of_class: tuple[int, ...]  # the group of each class, numbered from 0 in the order of the tree
    names: tuple[str, ...]


def superclasses(taxonomy: Taxonomy, *, named: bool = True) -> Groups | None:
    """The level of the tree whose number of groups is nearest to the root of the number of classes (our choice).

    None where no level has two groups of which one has two classes. A tree that was built from data has nodes without
    names of their own (`named=False`): a group is then called by its classes.
    """
    classes = len(taxonomy.leaves)
    levels = [taxonomy.level(depth).tolist() for depth in range(1, int(taxonomy.depth.max()))]
    useful = [level for level in levels if 1 < len(set(level)) < classes]
    if not useful:
        return None
    nodes = min(useful, key=lambda level: abs(log(len(set(level)) / sqrt(classes))))
    order = list(dict.fromkeys(nodes[k] for k in tree_order(taxonomy)))
    names = [taxonomy.names[node] if named else _by_classes(taxonomy, nodes, node) for node in order]
    return Groups(tuple(order.index(node) for node in nodes), tuple(names))


def tree_order(taxonomy: Taxonomy) -> list[int]:
    """Class positions in the order in which the leaves lie, left to right."""
    order: list[int] = taxonomy.preorder[taxonomy.leaves].argsort().tolist()
    return order


def _by_classes(taxonomy: Taxonomy, nodes: list[int], node: int) -> str:
    return ", ".join(name for name, own in zip(taxonomy.classes, nodes, strict=True) if own == node)
