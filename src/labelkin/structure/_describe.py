"""Counts of a tree, and a drawing of it with box characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from labelkin._checks import check_count

if TYPE_CHECKING:
    from labelkin.structure._tree import Tree


class Description(NamedTuple):
    """Counts of a tree, as returned by `Taxonomy.describe`; depths are edges from the root to a class.

    Example:
        >>> from labelkin import Taxonomy
        >>> Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]}).describe().widest_node
        'root'
    """

    classes: int
    nodes: int
    least_depth: int
    most_depth: int
    equal_depths: bool
    single_child_nodes: int
    widest_node: str
    widest_children: int


def describe(tree: Tree) -> Description:
    """Count the nodes of a tree."""
    depths = tree.depth[tree.leaves]
    widths = np.bincount(tree.parents[1:], minlength=len(tree))
    widest = int(widths.argmax())
    least, most = int(depths.min()), int(depths.max())
    return Description(
        classes=len(tree.leaves),
        nodes=len(tree),
        least_depth=least,
        most_depth=most,
        equal_depths=least == most,
        single_child_nodes=int(np.count_nonzero(widths == 1)),
        widest_node=tree.names[widest],
        widest_children=int(widths[widest]),
    )


def draw(tree: Tree, *, limit: int | None) -> str:
    """Draw the `limit` nodes nearest to the root; a line counts the nodes that are left out below a node."""
    if limit is not None:
        check_count("limit", limit)
    shown = np.zeros(len(tree), dtype=np.bool_)
    shown[np.argsort(tree.depth, kind="stable")[:limit]] = True
    sizes = _sizes(tree)
    lines: list[str] = []
    waiting = [(0, "", "")]  # node, prefix of its line, prefix of the lines below it
    while waiting:
        node, own, below = waiting.pop()
        if node < 0:
            lines.append(own)
            continue
        children = [child for child in tree.children[node].tolist() if shown[child]]
        hidden = sum(sizes[child] for child in tree.children[node].tolist() if not shown[child])
        count = f" … {hidden} more" if hidden and not children else ""
        lines.append(own + tree.names[node] + count)
        entries = [(child, f"{below}├── ", f"{below}│   ") for child in children]
        if hidden and children:
            entries.append((-1, f"{below}└── … {hidden} more", ""))
        elif entries:
            entries[-1] = (children[-1], f"{below}└── ", f"{below}    ")
        waiting.extend(reversed(entries))
    return "\n".join(lines)


def _sizes(tree: Tree) -> list[int]:
    """Return the number of nodes at and below each node."""
    parents, sizes = tree.parents.tolist(), [1] * len(tree)
    for node in range(len(tree) - 1, 0, -1):
        sizes[parents[node]] += sizes[node]
    return sizes
