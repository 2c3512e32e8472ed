"""Superclasses: one level of a tree, coarse enough for colors."""

from math import log, sqrt
from typing import NamedTuple

from labelkin.structure import Taxonomy


class Groups(NamedTuple):
    """Groups of classes.

    Attributes:
        of_class: The group of each class, numbered from 0 in the order of the tree.
        names: The name of each group.
    """

    of_class: tuple[int, ...]
    names: tuple[str, ...]


def superclasses(taxonomy: Taxonomy, *, named: bool = True) -> Groups | None:
    """Return the level of the tree whose number of groups is closest to the square root of the number of classes.

    Args:
        taxonomy: The tree.
        named: Whether inner nodes have meaningful names. In a tree built from data they have none; a group is then named by
            its classes.

    Returns:
        The groups; None if no level has at least two groups and fewer groups than classes.

    >>> superclasses(Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]}))
    Groups(of_class=(0, 0, 1, 1), names=('animal', 'machine'))
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
    """Return the class positions in the order of the leaves, left to right."""
    order: list[int] = taxonomy.preorder[taxonomy.leaves].argsort().tolist()
    return order


def _by_classes(taxonomy: Taxonomy, nodes: list[int], node: int) -> str:
    return ", ".join(name for name, own in zip(taxonomy.classes, nodes, strict=True) if own == node)
