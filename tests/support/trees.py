"""Random trees of every awkward shape, for tests of anything that takes a Taxonomy."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from labelkin.structure import Taxonomy

KINDS = ("star", "chain", "single-child", "unbalanced", "balanced", "scattered")


def named(parents: Sequence[int], leaves: Sequence[int] | None = None) -> Taxonomy:
    """A tree from the parents of its nodes, which are called n0, n1, ..."""
    return Taxonomy(parents, [f"n{i}" for i in range(len(parents))], leaves)


def edges(tree: Taxonomy) -> set[tuple[str, str]]:
    """The names of every node and its parent, parent first."""
    return {(tree.names[p], tree.names[i]) for i, p in enumerate(tree.parents) if p >= 0}


def random_taxonomy(rng: np.random.Generator, leaves: int, kind: str) -> Taxonomy:
    """A tree with `leaves` classes (2 or more) in random class order.

    - star: all classes right below the root; chain: a path of inner nodes, each hung with a leaf;
    - unbalanced: random leaves split into two to four; balanced: the shallowest leaf splits in two;
    - single-child: unbalanced, with single-child nodes strung in, above the top too;
    - scattered: unbalanced, with nodes numbered at random (parents first), so that siblings lie apart.
    """
    parents = _GROW[kind](rng, leaves)
    childless = np.setdiff1d(np.arange(len(parents)), parents)
    return named(parents, rng.permutation(childless))


@st.composite
def taxonomies(draw: st.DrawFn, min_leaves: int = 2, max_leaves: int = 40, kinds: tuple[str, ...] = KINDS) -> Taxonomy:
    kind = draw(st.sampled_from(kinds))
    leaves = draw(st.integers(min_leaves, max_leaves))
    seed = draw(st.integers(0, 2**16))
    return random_taxonomy(np.random.default_rng(seed), leaves, kind)


def _star(rng: np.random.Generator, leaves: int) -> list[int]:
    return [-1] + [0] * leaves


def _chain(rng: np.random.Generator, leaves: int) -> list[int]:
    parents, inner = [-1], 0
    for _ in range(leaves - 2):
        parents += [inner, inner]  # a leaf, then the next inner node
        inner = len(parents) - 1
    return [*parents, inner, inner]


def _balanced(rng: np.random.Generator, leaves: int) -> list[int]:
    return [-1] + [i // 2 for i in range(2 * leaves - 2)]


def _unbalanced(rng: np.random.Generator, leaves: int) -> list[int]:
    parents, ends = [-1], [0]
    while len(ends) < leaves:
        place = int(rng.integers(len(ends)))
        node = ends.pop(place)
        width = min(int(rng.integers(2, 5)), leaves - len(ends))
        ends += range(len(parents), len(parents) + width)
        parents += [node] * width
    return parents


def _single_child(rng: np.random.Generator, leaves: int) -> list[int]:
    parents: list[int] = []
    place = {-1: -1}
    for node, above in enumerate(_unbalanced(rng, leaves)):
        over = place[above]
        for _ in range(int(rng.integers(0, 3))):
            parents.append(over)
            over = len(parents) - 1
        parents.append(over)
        place[node] = len(parents) - 1
    return parents


def _scattered(rng: np.random.Generator, leaves: int) -> list[int]:
    parents = _unbalanced(rng, leaves)
    children: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents[1:], start=1):
        children[above].append(node)
    numbered: list[int] = []
    ready, place = [0], {-1: -1}
    while ready:
        node = ready.pop(int(rng.integers(len(ready))))
        place[node] = len(numbered)
        numbered.append(place[parents[node]])
        ready += children[node]
    return numbered


_GROW = {
    "star": _star,
    "chain": _chain,
    "single-child": _single_child,
    "unbalanced": _unbalanced,
    "balanced": _balanced,
    "scattered": _scattered,
}
