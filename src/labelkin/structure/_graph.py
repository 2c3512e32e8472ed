"""Build a tree from edges; a rule selects one parent for nodes that have several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from labelkin._checks import InputError, check_choice, listed, near
from labelkin.structure._build import Parts, breadth_first

Rule = Literal["shortest", "deepest"]
RULES: tuple[Rule, ...] = ("shortest", "deepest")
Above = dict[str, list[str]]  # the parents of each node but the root, in order of appearance


class Grown(NamedTuple):
    """A tree, and the nodes for which the rule had to choose."""

    parts: Parts
    chosen: tuple[str, ...]  # the nodes with several parents


def from_edges(edges: Iterable[Sequence[str]], *, rule: Rule | None) -> Grown:
    """Build a tree from (parent, child) pairs; classes and siblings are in the order in which they appear as a child."""
    if rule is not None:
        check_choice("rule", rule, RULES)
    above = _parents_by_child(edges)
    root = _only_root(above)
    order = _parents_first(above, root)
    chosen = tuple(node for node, parents in above.items() if len(parents) > 1)
    if chosen and rule is None:
        first = chosen[0]
        raise InputError(
            f"more than one parent: {listed(chosen)} ({first!r} has {listed(above[first])}); a class has one, so delete "
            'the other lines. In Python, Taxonomy.from_edges chooses by the way to the root (rule="shortest" or "deepest").'
        )
    return Grown(_tree(above, root, _kept(above, order, rule)), chosen)


def _parents_by_child(edges: Iterable[Sequence[str]]) -> Above:
    above: Above = {}
    for edge in edges:
        parent, child = _pair(edge)
        parents = above.setdefault(child, [])
        if parent in parents:
            raise InputError(f"edges: duplicate edge ({parent!r}, {child!r}); give each edge once.")
        parents.append(parent)
    if not above:
        raise InputError("edges: expected (parent, child) pairs, got none.")
    return above


def _pair(edge: Any) -> tuple[str, str]:
    names = () if isinstance(edge, str) else tuple(edge)
    if len(names) != 2 or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"edges: expected (parent, child) pairs of non-empty strings, got {edge!r}.")
    return names


def _only_root(above: Above) -> str:
    roots = list(dict.fromkeys(parent for parents in above.values() for parent in parents if parent not in above))
    if len(roots) > 1:
        hint = next((f" {root!r} may be misspelled.{text}" for root in roots[:5] if (text := near(root, above))), "")
        below = {child for child, parents in above.items() if len(parents) > 1}
        if not hint and below and len(below) < len(roots):
            hint = f" {listed(sorted(below))} would have several parents; are the columns parent and child swapped?"
        raise InputError(f"{len(roots)} roots: {listed(roots)} have no parent; exactly one node may have none.{hint}")
    if not roots:
        raise _cycle(above, next(iter(above)))
    return roots[0]


def _parents_first(above: Above, root: str) -> list[str]:
    """Return all nodes, each after all its parents."""
    missing = {node: len(parents) for node, parents in above.items()}
    below: dict[str, list[str]] = {}
    for node, parents in above.items():
        for parent in parents:
            below.setdefault(parent, []).append(node)
    order = [root]
    for node in order:  # the loop appends to the list
        for child in below.get(node, ()):
            missing[child] -= 1
            if not missing[child]:
                order.append(child)
    if len(order) <= len(above):
        reached = set(order)
        stuck = {
            node: [p for p in parents if p not in reached] for node, parents in above.items() if node not in reached
        }
        raise _cycle(stuck, next(iter(stuck)))
    return order


def _cycle(above: Above, start: str) -> InputError:
    """Return the error for a cycle, which is found by walking up from a node that has no root above it."""
    walked: dict[str, None] = {}
    node = start
    while node not in walked:
        walked[node] = None
        node = above[node][0]
    steps = list(walked)
    loop = [*steps[steps.index(node) :], node]
    return InputError(f"a cycle: {' -> '.join(reversed(loop))}; every node must lead up to one root.")


def _kept(above: Above, order: Sequence[str], rule: Rule | None) -> dict[str, str]:
    """Return the parent to keep for each node; ties go to the parent that came first."""
    way = {order[0]: 0}
    kept = {}
    for node in order[1:]:
        parents = above[node]
        parent = max(parents, key=way.__getitem__) if rule == "deepest" else min(parents, key=way.__getitem__)
        kept[node] = parent
        way[node] = way[parent] + 1
    return kept


def _tree(above: Above, root: str, kept: dict[str, str]) -> Parts:
    """Build the tree of the kept edges; an inner node that lost all its children is removed, since it is not a class."""
    inner = {parent for parents in above.values() for parent in parents}
    alive = {root}
    for node in above:
        if node not in inner:
            while node not in alive:
                alive.add(node)
                node = kept[node]
    names = [root, *(node for node in above if node in alive)]
    places = {name: place for place, name in enumerate(names)}
    return breadth_first(names, [-1, *(places[kept[name]] for name in names[1:])])
