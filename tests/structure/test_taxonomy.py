"""The tree itself: what it derives from `parents`, other trees made from it, and what it refuses."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin._checks import InputError
from labelkin.structure import DISTANCES, Taxonomy
from support.clock import units_of_work
from support.trees import KINDS, random_taxonomy, taxonomies

# root ── animal ── pet ── cat, dog; root ── machine ── car, tank; root ── rock
NAMES = ["root", "animal", "machine", "rock", "pet", "car", "tank", "cat", "dog"]
PARENTS = [-1, 0, 0, 0, 1, 2, 2, 4, 4]


@pytest.fixture
def tree() -> Taxonomy:
    return Taxonomy.from_parents(PARENTS, NAMES)


def up(tree: Taxonomy, node: int) -> list[int]:
    """The nodes from the root down to `node`, by following `parents`."""
    way = [node]
    while tree.parents[way[0]] >= 0:
        way.insert(0, int(tree.parents[way[0]]))
    return way


def slow_distance(tree: Taxonomy, kind: str, a: int, b: int) -> int:
    left, right = up(tree, int(tree.leaves[a])), up(tree, int(tree.leaves[b]))
    common = [node for node in left if node in right]
    if kind == "edges":
        return len(left) + len(right) - 2 * len(common)
    if kind == "depth":
        return max(len(up(tree, int(leaf))) for leaf in tree.leaves) - len(common)
    if kind == "semantic":
        return max(len(left), len(right)) - len(common)
    below = [up(tree, int(leaf)) for leaf in tree.leaves]
    return max(len(way) - len(common) for way in below if common[-1] in way)


def test_hand_worked_tree(tree: Taxonomy) -> None:
    assert tree.classes == ("rock", "car", "tank", "cat", "dog")
    assert tree.depth.tolist() == [0, 1, 1, 1, 2, 2, 2, 3, 3]
    assert tree.height.tolist() == [3, 2, 1, 0, 1, 0, 0, 0, 0]
    assert [c.tolist() for c in tree.children] == [[1, 2, 3], [4], [5, 6], [], [7, 8], [], [], [], []]
    assert tree.paths[8].tolist() == [0, 1, 4, 8]
    assert tree.paths[5].tolist() == [0, 2, 5, -1]
    assert tree.ancestors("dog").tolist() == [0, 1, 4, 8]
    assert tree.subtree("animal").tolist() == [1, 4, 7, 8]
    assert tree.level(1).tolist() == [3, 2, 2, 1, 1]
    assert tree.level(3).tolist() == [3, 5, 6, 7, 8]
    assert tree.lca("cat", "dog") == tree.node("pet")
    assert tree.lca("cat", "car") == 0
    assert tree.lca([[7], [5]], [8, 1]).tolist() == [[4, 1], [0, 0]]


@pytest.mark.parametrize(
    ("kind", "cat_dog", "cat_car", "rock_car"),
    [("semantic", 1, 3, 2), ("edges", 2, 5, 3), ("height", 1, 3, 3), ("depth", 1, 3, 3)],
)
def test_hand_worked_distances(tree: Taxonomy, kind: str, cat_dog: int, cat_car: int, rock_car: int) -> None:
    found = tree.distance(kind)
    rock, car, _, cat, dog = range(5)
    assert (found[cat, dog], found[cat, car], found[rock, car]) == (cat_dog, cat_car, rock_car)
    assert found[dog, dog] == 0


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(taxonomies(max_leaves=12), st.sampled_from(DISTANCES))
def test_distances_equal_a_loop_over_ancestors(tree: Taxonomy, kind: str) -> None:
    classes = range(len(tree.leaves))
    slow = [[0 if a == b else slow_distance(tree, kind, a, b) for b in classes] for a in classes]
    assert tree.distance(kind).tolist() == slow
    a, b = np.array(classes)[:, None], np.array(classes)[None, :]
    assert tree.distance(kind, a, b).tolist() == slow


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(taxonomies(max_leaves=15))
def test_derived_arrays_equal_loops(tree: Taxonomy) -> None:
    ways = [up(tree, node) for node in range(len(tree))]
    assert tree.depth.tolist() == [len(way) - 1 for way in ways]
    assert tree.height.tolist() == [max(len(w) - w.index(n) - 1 for w in ways if n in w) for n in range(len(tree))]
    assert [row[row >= 0].tolist() for row in tree.paths] == ways
    for node in range(len(tree)):
        assert tree.subtree(node).tolist() == [n for n, way in enumerate(ways) if node in way]
        assert tree.children[node].tolist() == [n for n in range(len(tree)) if tree.parents[n] == node]
    for depth in range(int(tree.depth.max()) + 1):
        assert tree.level(depth).tolist() == [ways[leaf][min(depth, len(ways[leaf]) - 1)] for leaf in tree.leaves]
    assert tree.is_leaf.tolist() == [n in tree.leaves for n in range(len(tree))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leaves", [2, 3, 2000])
def test_random_trees_are_what_they_say(kind: str, leaves: int) -> None:
    tree = random_taxonomy(np.random.default_rng(0), leaves, kind)
    assert len(tree.leaves) == leaves
    assert tree == random_taxonomy(np.random.default_rng(0), leaves, kind)
    about = tree.describe()
    if leaves == 2000:
        assert (about.most_depth == 1999) == (kind == "chain")
        assert (about.single_child_nodes > 0) == (kind == "single-child")
        assert about.equal_depths == (kind == "star")
        apart = any(np.diff(children).max(initial=1) > 1 for children in tree.children)
        assert apart == (kind in ("single-child", "scattered"))


def test_restrict_keeps_paths_and_reorders(tree: Taxonomy) -> None:
    small = tree.restrict(["tank", "dog", "cat"])
    assert small.classes == ("tank", "dog", "cat")
    assert set(small.names) == {"root", "animal", "machine", "pet", "tank", "cat", "dog"}
    assert small.distance("edges").tolist() == [[0, 5, 5], [5, 0, 2], [5, 2, 0]]


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(taxonomies(min_leaves=3), st.data())
def test_restrict_and_reorder_keep_edge_distances(tree: Taxonomy, data: st.DataObject) -> None:
    kept = data.draw(st.permutations(range(len(tree.leaves))))[: data.draw(st.integers(2, len(tree.leaves)))]
    names = [tree.classes[k] for k in kept]
    restricted = tree.restrict(names)
    assert restricted.classes == tuple(names)
    assert np.array_equal(restricted.distance("edges"), tree.distance("edges")[np.ix_(kept, kept)])
    assert not set(restricted.names) - set(tree.names)
    if len(kept) == len(tree.leaves):
        assert tree.reorder(names) == restricted


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(taxonomies())
def test_collapse_drops_single_children_and_nothing_else(tree: Taxonomy) -> None:
    small = tree.collapse()
    keep = [name for name, below in zip(tree.names, tree.children, strict=True) if len(below) != 1]
    assert sorted(small.names) == sorted(keep)
    assert small.classes == tree.classes
    assert small.describe().single_child_nodes == 0
    for node, name in enumerate(small.names):
        kept_above = [tree.names[n] for n in up(tree, tree.node(name)) if tree.names[n] in set(keep)]
        assert [small.names[n] for n in up(small, node)] == kept_above


def test_collapse_keeps_the_place_among_siblings() -> None:
    tree = Taxonomy.from_nested([{"a": {"b": ["x"]}}, "y", {"c": ["z", "w"]}])
    assert [tree.collapse().names[i] for i in tree.collapse().children[0]] == ["x", "y", "c"]


def test_describe(tree: Taxonomy) -> None:
    about = tree.describe()
    assert (about.classes, about.nodes, about.single_child_nodes) == (5, 9, 1)
    assert (about.least_depth, about.most_depth, about.equal_depths) == (1, 3, False)
    assert (about.widest_node, about.widest_children) == ("root", 3)
    assert Taxonomy.from_groups({"a": ["x", "y"], "b": ["z"]}).describe().equal_depths


def test_drawing(tree: Taxonomy) -> None:
    assert str(tree).splitlines() == [
        "root",
        "├── animal",
        "│   └── pet",
        "│       ├── cat",
        "│       └── dog",
        "├── machine",
        "│   ├── car",
        "│   └── tank",
        "└── rock",
    ]
    assert tree.show(limit=6).splitlines() == [
        "root",
        "├── animal",
        "│   └── pet … 2 more",
        "├── machine",
        "│   ├── car",
        "│   └── … 1 more",
        "└── rock",
    ]
    assert tree.show(limit=2).splitlines() == ["root", "├── animal … 3 more", "└── … 4 more"]
    by_branch = Taxonomy.from_parents([-1, 0, 1, 1, 0, 4, 4], ["r", "a", "x", "y", "b", "z", "w"])
    assert by_branch.show(limit=3).splitlines() == ["r", "├── a … 2 more", "└── b … 2 more"]
    with pytest.raises(InputError, match="limit"):
        tree.show(limit=0)


def test_drawing_a_large_tree_is_short_and_complete_on_request() -> None:
    tree = random_taxonomy(np.random.default_rng(1), 500, "unbalanced")
    assert len(str(tree).splitlines()) < 130
    lines = tree.show(limit=None).splitlines()
    assert sorted(line.lstrip("│├└─ ") for line in lines) == sorted(tree.names)


def test_is_immutable_and_a_value(tree: Taxonomy) -> None:
    with pytest.raises(AttributeError, match="immutable"):
        tree.names = ()  # type: ignore[misc]
    for array in (tree.parents, tree.leaves, tree.depth, tree.height, tree.paths, tree.is_leaf, tree.children[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    given = np.array(PARENTS)
    built = Taxonomy(given, NAMES)
    given[5] = 1
    assert built == tree
    for same in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert same == tree
        assert hash(same) == hash(tree)
    other = tree.reorder(["dog", "cat", "car", "tank", "rock"])
    assert other != tree
    assert tree != "tree"
    assert len({tree, other, copy.copy(tree)}) == 2
    assert repr(tree) == "Taxonomy(5 classes, 9 nodes, depth 3)"


@pytest.mark.parametrize(
    ("parents", "names", "message"),
    [
        ([-1, 2, 1, 0], "rabc", "a cycle: (a -> b -> a|b -> a -> b)"),
        ([1, 0], "ab", "a cycle: "),
        ([-1, 4, 4, 2, 3], "rtabc", "a cycle: c -> a -> b -> c;"),
        ([-1, -1, 0, 1], "rabc", "2 roots: 'r', 'a'"),
        ([-1, 0, 7], "rab", "'b' names parent 7, which is not among the 3 nodes"),
        ([-1, 0, -2], "rab", "'b' names parent -2"),
        ([-1, 0, 0], ["r", "a", "a"], "duplicate name 'a'"),
        ([-1, 0], "ra", "at least two classes, got 1"),
        ([-1], "r", "at least two classes, got 1"),
        ([], "", "expected a list of whole numbers"),
        ([-1, 0, 0], "ra", "expected 3 names, one for each entry of parents, got 2"),
        ([-1, 0, 0], ["r", "a", ""], "expected non-empty strings, got ''"),
        ([-1.0, 0.5, 0], "rab", "expected a list of whole numbers"),
        ([[-1], [0, 0]], "rab", "expected a list of whole numbers"),
        ([-1, 2, 0, 0], "rabc", "'a' comes before its parent 'b'"),
    ],
)
def test_bad_parents(parents: object, names: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_parents(parents, list(names))  # type: ignore[arg-type]


@pytest.mark.long
def test_a_long_cycle_is_found_at_once() -> None:
    size = 20_000

    def build() -> None:
        with pytest.raises(InputError, match="a cycle"):
            Taxonomy.from_parents([-1, size - 1, *range(1, size - 1)], [f"n{i}" for i in range(size)])

    assert units_of_work(build) < 20


@pytest.mark.parametrize(
    "leaves", [[3, 5, 6, 7], [3, 5, 6, 7, 7], [3, 5, 6, 7, 4], [3, 5, 6, 7, 8, 8], [3, 5, 6, 7, 99]]
)
def test_leaves_must_be_the_childless_nodes(leaves: list[int]) -> None:
    with pytest.raises(InputError, match="each of the 5 nodes without children once"):
        Taxonomy(PARENTS, NAMES, leaves)


def test_bad_questions(tree: Taxonomy) -> None:
    with pytest.raises(InputError, match=r"no node 'caat'\. Did you mean 'cat'"):
        tree.node("caat")
    with pytest.raises(InputError, match="from 0 to 8, got 9"):
        tree.node(9)
    with pytest.raises(InputError, match="depth: expected 0 to 3, got 4"):
        tree.level(4)
    with pytest.raises(InputError, match=r"distance: expected one of .*'edges'"):
        tree.distance("edge")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="both a and b"):
        tree.distance("edges", [0])
    for bad in ([-1], [5], [0.5]):
        with pytest.raises(InputError, match="b: expected whole numbers from 0 to 4"):
            tree.distance("edges", [0], bad)
    with pytest.raises(InputError, match="a: expected whole numbers from 0 to 8"):
        tree.lca(-1, 0)


def test_bad_class_lists(tree: Taxonomy) -> None:
    with pytest.raises(InputError, match=r"no class 'catt'\. Did you mean 'cat'"):
        tree.reorder(["catt", "dog", "car", "tank", "rock"])
    with pytest.raises(InputError, match="'tank' of the taxonomy missing"):
        tree.reorder(["cat", "dog", "car", "rock"])
    with pytest.raises(InputError, match="duplicate name 'cat'"):
        tree.reorder(["cat", "cat", "dog", "car", "tank", "rock"])
    with pytest.raises(InputError, match="'pet' is an inner node"):
        tree.restrict(["pet", "car"])
    with pytest.raises(InputError, match="no node 'dgo'"):
        tree.restrict(["cat", "dgo"])
    with pytest.raises(InputError, match="at least 2"):
        tree.restrict(["cat"])


@pytest.mark.long
def test_deep_and_large_trees_are_fast() -> None:
    chain = random_taxonomy(np.random.default_rng(0), 2000, "chain")
    assert chain.distance("edges").max() == 2000
    assert chain.reorder(chain.classes) == chain
    assert units_of_work(lambda: (chain.distance("edges"), chain.reorder(chain.classes))) < 40


# What other libraries call a list of names, and what is no index.


@pytest.mark.parametrize("kind", [str, object])
def test_names_may_be_arrays_as_the_classes_of_scikit_learn_are(kind: type):
    def array(*names: str) -> Any:
        return np.array(names, dtype=kind)

    tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
    built = [
        tree.reorder(array("car", "cat", "dog")),
        tree.restrict(array("car", "dog")),
        Taxonomy([-1, 0, 0], array("root", "cat", "dog")),
        Taxonomy.from_adjacency([[0, 1, 1], [0, 0, 0], [0, 0, 0]], array("root", "cat", "dog")),
        Taxonomy.from_linkage([[0, 1, 0.5, 2]], array("cat", "dog")),
        Taxonomy.from_paths([array("pet", "cat"), array("pet", "dog")]),
    ]
    assert [found.classes for found in built] == [("car", "cat", "dog"), ("car", "dog"), *[("cat", "dog")] * 4]
    assert {type(name) for found in built for name in found.names} == {str}


@pytest.mark.parametrize("index", [True, np.True_, 1.0, np.float64(1.5), None, -1, 6])
def test_only_names_and_indices_are_nodes(index: Any):
    tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
    assert tree.node(np.int64(1)) == tree.node(torch.tensor(1)) == tree.node("pet") == 1
    with pytest.raises(InputError, match="node: expected a name, or an index from 0 to 5, got"):
        tree.node(index)
    with pytest.raises(InputError, match="depth: expected 0 to 2, got"):
        tree.level(index)
