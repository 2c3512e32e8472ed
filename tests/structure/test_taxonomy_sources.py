"""Where trees come from: every constructor and file format, and what each refuses."""

import json
from collections import deque
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

import labelkin.structure._files
from labelkin import metrics
from labelkin._checks import InputError
from labelkin.structure import DISTANCES, Taxonomy
from support.clock import units_of_work
from support.requires import data_text
from support.trees import edges, random_taxonomy, taxonomies


def numbered_breadth_first(tree: Taxonomy) -> Taxonomy:
    """The same tree, siblings in their order, by a queue."""
    queue, order = deque([0]), []
    while queue:
        order.append(queue.popleft())
        queue.extend(i for i, p in enumerate(tree.parents) if p == order[-1])
    parents = [-1 if i == 0 else order.index(tree.parents[i]) for i in order]
    return Taxonomy(parents, [tree.names[i] for i in order], [order.index(i) for i in tree.leaves])


SMALL = {("root", "animal"), ("root", "machine"), ("animal", "pet"), ("pet", "cat"), ("pet", "dog"), ("machine", "car")}
BREADTH_FIRST = ("root", "animal", "machine", "pet", "car", "cat", "dog")


@pytest.mark.parametrize(
    "tree",
    [
        Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"]}, "machine": ["car"]}),
        Taxonomy.from_nested([{"animal": [{"pet": ["cat", "dog"]}]}, {"machine": "car"}]),
        Taxonomy.from_edges(
            [
                ("pet", "cat"),
                ("root", "animal"),
                ("animal", "pet"),
                ("pet", "dog"),
                ("root", "machine"),
                ("machine", "car"),
            ]
        ),
        Taxonomy.from_paths([("animal", "pet", "cat"), ["animal", "pet", "dog"], ("machine", "car")]),
        Taxonomy.from_newick("(((cat,dog)pet)animal,(car)machine)root;"),
    ],
)
def test_one_tree_from_many_sources(tree: Taxonomy) -> None:
    assert edges(tree) == SMALL
    assert tree.names == BREADTH_FIRST
    assert tree.classes == ("cat", "dog", "car")


# Nested


def test_nested_classes_come_as_read() -> None:
    tree = Taxonomy.from_nested(["a", {"g": ["b", {"h": ["c"]}]}, "d"], root="top")
    assert tree.classes == ("a", "b", "c", "d")
    assert tree.names == ("top", "a", "g", "d", "b", "h", "c")


def test_nested_lists_without_a_name_get_one() -> None:
    tree = Taxonomy.from_nested([["a", "b"], ["node1", ["c"]]])
    assert edges(tree) == {
        ("root", "node2"),
        ("root", "node3"),
        ("node2", "a"),
        ("node2", "b"),
        ("node3", "node1"),
        ("node3", "node4"),
        ("node4", "c"),
    }


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": ["x", "y"], "b": []}, "group 'b' is empty"),
        ({"a": ["x", "y"], "b": {}}, "group 'b' is empty"),
        ({"a": ["x", "y"], "b": None}, "group 'b' is empty"),
        ([["x", "y"], []], "an unnamed group is empty"),
        ({}, "group 'root' is empty"),
        ([], "group 'root' is empty"),
        ({"a": ["x", "y"], "b": ["x"]}, "duplicate name 'x'"),
        ({"a": ["x", "y"], "b": ["root"]}, "rename that node, or give another root"),
        ({"a": ["x"]}, "at least two classes, got 1"),
        ({"a": ["x", 3]}, "non-empty strings, got 3"),
        ({"a": ["x", None]}, "non-empty strings, got None"),
        ({"a": 3}, "expected dicts and lists of names, got 3 below 'a'"),
    ],
)
def test_bad_nested(tree: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_nested(tree)  # type: ignore[arg-type]


def test_nesting_may_be_deep() -> None:
    tree: object = ["x", "y"]
    for i in range(3000):
        tree = {f"n{i}": tree}
    assert Taxonomy.from_nested(tree).describe().most_depth == 3001  # type: ignore[arg-type]


# Groups


def test_groups() -> None:
    groups = {"pet": ["cat", "dog"], "vehicle": ["car"]}
    tree = Taxonomy.from_groups(groups)
    assert tree.names == ("root", "pet", "vehicle", "cat", "dog", "car")
    assert tree.classes == ("cat", "dog", "car")
    assert Taxonomy.from_groups(groups, classes=["dog", "car", "cat"]).classes == ("dog", "car", "cat")
    assert Taxonomy.from_groups({"root": ["a", "b"]}).names[0] == "root-2"


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "expected a mapping"),
        ({"a": ["x", "y"], "b": []}, "group 'b' is empty"),
        ({"a": ["x"], "b": "y"}, "list of class names for group 'b', got 'y'"),
        ({"a": ["x"], "b": ["x"]}, "duplicate name 'x'"),
        ({"a": ["a", "x"]}, "duplicate name 'a'"),
        ({"a": ["x"]}, "at least two classes"),
    ],
)
def test_bad_groups(groups: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_groups(groups)  # type: ignore[arg-type]


def test_groups_with_other_classes() -> None:
    with pytest.raises(InputError, match=r"no class 'dgo'\. Did you mean 'dog'"):
        Taxonomy.from_groups({"pet": ["cat", "dog"]}, classes=["cat", "dgo"])


# Edges

# dog has a short way up (domestic) and a long one (canine, carnivore, mammal); wolf has the long one alone
DIAMOND = [
    ("animal", "mammal"),
    ("mammal", "carnivore"),
    ("carnivore", "canine"),
    ("canine", "dog"),
    ("animal", "domestic"),
    ("domestic", "dog"),
    ("canine", "wolf"),
    ("domestic", "hen"),
]


def test_a_rule_keeps_one_parent() -> None:
    assert Taxonomy.from_edges(DIAMOND, rule="shortest").lca("dog", "hen") == 2  # domestic
    deepest = Taxonomy.from_edges(DIAMOND, rule="deepest")
    assert deepest.names[deepest.lca("dog", "wolf")] == "canine"
    assert edges(deepest) == set(DIAMOND) - {("domestic", "dog")}
    assert deepest.classes == ("dog", "wolf", "hen")


def test_equal_ways_keep_the_first_parent() -> None:
    both = [("r", "a"), ("r", "b"), ("b", "x"), ("a", "x"), ("a", "y"), ("b", "z")]
    for rule in ("shortest", "deepest"):
        assert ("b", "x") in edges(Taxonomy.from_edges(both, rule=rule))


def test_an_inner_node_without_children_left_is_no_class() -> None:
    lonely = [edge for edge in DIAMOND if edge != ("domestic", "hen")]
    tree = Taxonomy.from_edges([*lonely, ("zoo", "animal"), ("zoo", "keeper")], rule="deepest")
    assert tree.classes == ("dog", "wolf", "keeper")
    assert "domestic" not in tree.names


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [("r", "a"), ("r", "b"), ("x", "y"), ("y", "z"), ("z", "x")],
            r"a cycle: (x -> y -> z -> x|y -> z -> x -> y|z -> x)",
        ),
        ([("r", "a"), ("a", "b"), ("b", "a"), ("r", "c")], "a cycle: (a -> b -> a|b -> a -> b)"),
        ([("a", "b"), ("b", "a")], "a cycle: "),
        ([("a", "a")], "a cycle: a -> a"),
        ([("r", "a"), ("r", "b"), ("s", "c")], "2 roots: 'r', 's'"),
        ([("r", "animal"), ("animal", "b"), ("animl", "c")], r"'animl' may be misspelled\. Did you mean 'animal'"),
        ([("r", "a"), ("r", "b"), ("r", "a")], r"duplicate edge \('r', 'a'\)"),
        (DIAMOND, "more than one parent: 'dog' .*'canine', 'domestic'.*shortest.*deepest"),
        ([], "edges: expected .* got none"),
        ([("r", "a")], "at least two classes, got 1"),
        ([("r", "a", "b")], "pairs of non-empty strings"),
        (["ra"], "pairs of non-empty strings"),
        ([("r", ""), ("r", "b")], "pairs of non-empty strings"),
        ([("r", 1), ("r", "b")], "pairs of non-empty strings"),
    ],
)
def test_bad_edges(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_edges(given)  # type: ignore[arg-type]


def test_a_cycle_is_named_as_it_runs() -> None:
    with pytest.raises(InputError) as caught:
        Taxonomy.from_edges([("r", "q"), ("x", "y"), ("y", "z"), ("z", "x"), ("z", "below"), ("r", "p")])
    loop = str(caught.value).split(": ")[1].split(";")[0].split(" -> ")
    assert all(pair in {("x", "y"), ("y", "z"), ("z", "x")} for pair in pairwise(loop))
    assert loop[0] == loop[-1]


def test_unknown_rule_and_classes() -> None:
    with pytest.raises(InputError, match=r"rule: expected one of .*Did you mean 'shortest'"):
        Taxonomy.from_edges(DIAMOND, rule="shortes")  # type: ignore[arg-type]
    ordered = Taxonomy.from_edges(DIAMOND, rule="deepest", classes=["hen", "dog", "wolf"])
    assert ordered.classes == ("hen", "dog", "wolf")


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(taxonomies(), st.randoms(use_true_random=False))
def test_edges_in_any_order_give_the_tree(tree: Taxonomy, random: object) -> None:
    shuffled = sorted(edges(tree))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    built = Taxonomy.from_edges(shuffled, classes=tree.classes)
    assert edges(built) == edges(tree)
    assert built.classes == tree.classes
    assert built == numbered_breadth_first(built)
    for below in built.children:
        listed = [child for _, child in shuffled]
        places = [listed.index(built.names[child]) for child in below]
        assert places == sorted(places)


# Paths


def test_paths_with_one_name_for_two_nodes() -> None:
    tree = Taxonomy.from_paths(["bird/wild/crane", "tool/crane", "tool/wild/saw", "bird/hen"])
    assert tree.classes == ("bird/wild/crane", "tool/crane", "saw", "hen")
    assert edges(tree) == {
        ("root", "bird"),
        ("root", "tool"),
        ("bird", "bird/wild"),
        ("bird/wild", "bird/wild/crane"),
        ("tool", "tool/crane"),
        ("tool", "tool/wild"),
        ("tool/wild", "saw"),
        ("bird", "hen"),
    }


def test_paths_roots() -> None:
    assert Taxonomy.from_paths(["life.plant", "life.animal"], sep=".").names == ("root", "life", "plant", "animal")
    assert Taxonomy.from_paths(["root/cat", "root/dog"]).names == ("root-2", "root", "cat", "dog")
    assert Taxonomy.from_paths(["cat", "dog"]).names == ("root", "cat", "dog")
    assert Taxonomy.from_paths(["root/cat", "tool/root-2"]).names[0] == "root-3"
    assert Taxonomy.from_paths(["a/x/a", "a/y"]).names == ("root", "a", "x", "y", "a/x/a")


def test_a_common_first_segment_counts_as_in_hiclass() -> None:
    hiclass = pytest.importorskip("hiclass.metrics")
    paths = [["animal", "pet", "cat"], ["animal", "pet", "dog"], ["animal", "bird", "hen"]]
    tree = Taxonomy.from_paths(paths)
    true, predicted = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 2])
    theirs = [np.array([paths[k] for k in classes.tolist()]) for classes in (true, predicted)]
    for ours, other in (
        (metrics.hierarchical_precision, hiclass.precision),
        (metrics.hierarchical_recall, hiclass.recall),
        (metrics.hierarchical_f1, hiclass.f1),
    ):
        assert ours(predicted, true, tree).mean == pytest.approx(other(*theirs, "micro"))
    cat_for_hen = metrics.hierarchical_precision(torch.tensor([0]), torch.tensor([2]), tree)
    assert cat_for_hen.mean == pytest.approx(1 / 3), "they share the animal"


def test_a_saved_tree_with_a_common_first_segment_as_root_loads_as_before(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"names": ["life", "plant", "animal"], "parents": [-1, 0, 0], "leaves": [1, 2]}')
    (tmp_path / "t.csv").write_text("parent,child\nlife,plant\nlife,animal\n")
    for file in ("t.json", "t.csv"):
        assert Taxonomy.load(tmp_path / file).names == ("life", "plant", "animal")


def test_an_added_root_changes_no_distance() -> None:
    paths = ["a/b/x", "a/b/y", "a/z"]
    below = Taxonomy.from_edges([("a", "b"), ("b", "x"), ("b", "y"), ("a", "z")])
    for distance in DISTANCES:
        assert np.array_equal(Taxonomy.from_paths(paths).distance(distance), below.distance(distance))


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "expected a list with the path of each class"),
        ("animal/cat", "expected a list with the path of each class"),
        (["a/x", "a/x"], "duplicate path 'a/x'"),
        (["a/x", "a/x/y", "a/z"], "'a/x' is a class, but other paths continue below it"),
        (["a/x/y", "a/x", "a/z"], "'a/x' is a class, but other paths continue below it"),
        (["a//x", "a/y"], "contains the segment ''"),
        (["/x", "/y"], "contains the segment ''"),
        ([("a", 1), ("a", "b")], "contains the segment 1"),
        ([(), ("a",)], "an empty path"),
        (["a/x"], "at least two classes"),
    ],
)
def test_bad_paths(paths: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_paths(paths)  # type: ignore[arg-type]


# Matrices


def test_adjacency_keeps_its_order() -> None:
    #         r  a  x  b  y  z
    matrix = [[0, 1, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0], [0] * 6, [0, 0, 0, 0, 1, 1], [0] * 6, [0] * 6]
    for form in (matrix, np.array(matrix, dtype=bool), np.array(matrix, dtype=float)):
        tree = Taxonomy.from_adjacency(form, list("raxbyz"))
        assert tree == Taxonomy.from_parents([-1, 0, 1, 0, 3, 3], list("raxbyz"))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1, 1], [0, 0, 0]], "one row and one column for each node"),
        ([[0, 1, 2], [0, 0, 0], [0, 0, 0]], "expected only 0 and 1"),
        ([[0, 1, 1], [1, 0, 0], [0, 0, 0]], "the first column must be 0"),
        ([[0, 1, 1], [0, 0, 1], [0, 0, 0]], "2 rows mark 'b'"),
        ([[0, 1, 0], [0, 0, 0], [0, 0, 0]], "two roots: no row marks 'b'"),
        ([[0, 0, 0], [0, 0, 1], [0, 1, 0]], "a cycle"),
        (np.zeros((4, 4)), "expected 4 names, one for each row"),
    ],
)
def test_bad_adjacency(matrix: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_adjacency(matrix, list("rab"))  # type: ignore[arg-type]


def test_linkage() -> None:
    points = np.array([[0.0], [10.0], [0.1], [10.5], [30.0]])
    tree = Taxonomy.from_linkage(linkage(points, "average"), ["a", "b", "c", "d", "node1"])
    assert tree.classes == ("a", "b", "c", "d", "node1")
    assert edges(tree) == {
        ("node2", "a"),
        ("node2", "c"),
        ("node3", "b"),
        ("node3", "d"),
        ("node4", "node2"),
        ("node4", "node3"),
        ("root", "node4"),
        ("root", "node1"),
    }


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 30), st.integers(0, 1000))
def test_linkage_meets_where_scipy_merges(count: int, seed: int) -> None:
    merges = linkage(np.random.default_rng(seed).normal(size=(count, 3)), "average")
    tree = Taxonomy.from_linkage(merges, [f"c{i}" for i in range(count)])
    members = {i: {i} for i in range(count)}
    for row, (a, b) in enumerate(merges[:, :2].astype(int)):
        members[count + row] = members[a] | members[b]
    groups = {frozenset(np.flatnonzero(np.isin(tree.leaves, tree.subtree(i)))) for i in range(len(tree))}
    assert groups == {frozenset(group) for group in members.values()}


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([[0, 1, 1.0, 2]], r"expected shape \(2, 4\) for 3 names"),
        ([[0, 1, 1.0, 2], [0, 2, 2.0, 3]], "each cluster must be joined once"),
        ([[0, 3, 1.0, 2], [1, 2, 2.0, 3]], "two earlier clusters"),
        ([[0, 1.5, 1.0, 2], [2, 3, 2.0, 3]], "two earlier clusters"),
        ([[0, np.nan, 1.0, 2], [2, 3, 2.0, 3]], "two earlier clusters"),
        ([[0, np.inf, 1.0, 2], [2, 3, 2.0, 3]], "two earlier clusters"),
        ([[0, -1, 1.0, 2], [2, 3, 2.0, 3]], "two earlier clusters"),
    ],
)
def test_bad_linkage(merges: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_linkage(merges, ["a", "b", "c"])  # type: ignore[arg-type]


# Newick


def test_newick_as_others_write_it() -> None:
    text = "[made by hand]\n(('it''s a, (cat)':0.1[c],dog:1e-3)[&&NHX:S=x]:2,\n (car_1,'')node1:.5 , (van));"
    with pytest.raises(InputError, match="non-empty strings"):
        Taxonomy.from_newick(text)
    tree = Taxonomy.from_newick(text.replace(",'')", ",bus)"))
    assert tree.classes == ("it's a, (cat)", "dog", "car_1", "bus", "van")
    assert tree.names[:4] == ("root", "node2", "node1", "node3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the ';' that ends the tree is missing"),
        ("(a,b)", "the ';' that ends the tree is missing"),
        ("(a,b", "a closing parenthesis is missing"),
        ("((a,b);", "a closing parenthesis is missing"),
        ("(a,b));", r"'\)' at character 5 is outside of all parentheses"),
        ("a,b;", "',' at character 1 is outside of all parentheses"),
        ("(a,b);(c,d);", "more text after ';' at character 6"),
        ("(a b,c);", "'b' at character 3 after 'label'.*in quotes"),
        ("(a,,b);", "unexpected ',' at character 3"),
        ("(a,());", r"unexpected '\)' at character 4"),
        ("(a,b)c(d,e);", r"unexpected '\(' at character 6"),
        ("(a:x,b);", "expected a branch length at character 3, got 'x'"),
        ("(a:,b);", "expected a branch length at character 3"),
        ("('a,b);", '"\'" at character 1 is never closed'),
        ("(a[x,b);", r"'\[' at character 2 is never closed"),
        ("(a,a);", "duplicate name 'a'"),
        ("(a);", "at least two classes"),
        ("a;", "at least two classes"),
        ("(a[&class=0],b);", "number the 2 leaves from 0, each once"),
        ("(a[&class=0],b[&class=0]);", "number the 2 leaves from 0, each once"),
    ],
)
def test_bad_newick(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_newick(text)


def test_newick_text() -> None:
    tree = Taxonomy.from_nested({"a b": ["it's", "big_cat"], "c": ["3.5"]})
    assert tree.to_newick() == "(('it''s','big_cat')'a b',(3.5)c)root;"
    moved = tree.reorder(["3.5", "it's", "big_cat"])
    assert moved.to_newick() == "(('it''s'[&class=1],'big_cat'[&class=2])'a b',(3.5[&class=0])c)root;"
    assert Taxonomy.from_newick(moved.to_newick()) == moved


def test_newick_of_a_long_chain() -> None:
    chain = random_taxonomy(np.random.default_rng(0), 2000, "chain")
    back = Taxonomy.from_newick(chain.to_newick())
    assert (edges(back), back.classes) == (edges(chain), chain.classes)


# Files

SUFFIXES = [".json", ".csv", ".nwk", ".newick", ".yaml", ".yml"]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@pytest.mark.long
@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=25, deadline=None)
@given(tree=taxonomies(max_leaves=15), data=st.data())
def test_files_round_trip(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, tree: Taxonomy, data: st.DataObject
) -> None:
    names = data.draw(st.lists(NAMES, min_size=len(tree), max_size=len(tree), unique=True))
    if suffix == ".csv":  # which keeps no blanks around a name
        assume(len({name.strip() for name in names} - {""}) == len(names))
        names = [name.strip() for name in names]
    tree = Taxonomy(tree.parents, names, tree.leaves)
    path = tmp_path_factory.mktemp("tree") / f"tree{suffix}"
    tree.save(path)
    exact = suffix in (".json", ".yaml", ".yml")
    assert Taxonomy.load(path) == (tree if exact else numbered_breadth_first(tree))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_keep_odd_names(tmp_path: Path, suffix: str) -> None:
    names = [
        "parent",
        "a,b",
        'say "a"',
        "it's",
        "c\rd",
        "e\nf",
        " g ",
        "[h]",
        "i;(j)",
        "\x85",
        "yes",
        "1",
        "Été 猫",
        "a: b",
    ]
    if suffix == ".csv":  # which keeps no blanks around a name
        names = [name.strip() or "blank" for name in names]
    tree = Taxonomy([-1, 0, *[1] * 12], names, range(13, 1, -1))
    tree.save(tmp_path / f"t{suffix}")
    assert Taxonomy.load(tmp_path / f"t{suffix}") == tree


def test_csv_is_plain_where_it_can_be(tmp_path: Path) -> None:
    tree = Taxonomy.from_nested({"a": ["x", "y, z"], "b": ["w"]})
    tree.save(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'parent,child\nroot,a\na,x\na,"y, z"\nroot,b\nb,w\n'
    tree.reorder(["w", "x", "y, z"]).save(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'parent,child,class\nroot,a,\na,x,1\na,"y, z",2\nroot,b,\nb,w,0\n'


@pytest.mark.parametrize(
    "text",
    [
        "root,a\nroot,b\na,x\nb,y\n",
        "parent,child\nroot,a\nroot,b\na,x\nb,y",
        "\ufeffParent,Child\r\nroot,a\r\nroot,b\r\n\r\na,x\r\nb,y\r\n",
        "child,note,parent\na,,root\nb,hm,root\nx,,a\ny,,b\n",
    ],
)
def test_csv_as_others_write_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    tree = Taxonomy.load(tmp_path / "t.csv")
    assert tree.names == ("root", "a", "b", "x", "y")
    assert tree.classes == ("x", "y")


@pytest.mark.parametrize(
    "text",
    [
        "root, a\nroot,b \n a ,x\nb,\ty\n",
        'parent, child\nroot, "a"\n"root ",b\na,x\nb,y\n',
        " parent , child , class \nroot,a,\nroot,b, \na,x, 0 \nb,y,1\n",
    ],
)
def test_csv_cells_lose_stray_blanks(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    tree = Taxonomy.load(tmp_path / "t.csv")
    assert tree.names == ("root", "a", "b", "x", "y")
    assert tree.classes == ("x", "y")


def test_names_with_outer_blanks_are_not_written_to_csv(tmp_path: Path) -> None:
    tree = Taxonomy.from_nested(["a", " b"])
    with pytest.raises(InputError, match=r"t\.csv: the name ' b' .* save the tree as \.json"):
        tree.save(tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())
    tree.save(tmp_path / "t.json")
    assert Taxonomy.load(tmp_path / "t.json") == tree


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_nested_files_load(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    path.write_text('{"animal": {"pet": ["cat", "dog"]}, "machine": ["car"]}')
    assert Taxonomy.load(path).names == BREADTH_FIRST


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", "", r"ends in \.json, \.csv.*; `labelkin taxonomy build --paths FILE -o tree\.json` reads a text"),
        ("t.jsn", "", r"Did you mean '\.json'"),
        ("t", "", r"ends in \.json"),
        ("t.json", '{\n"names": [}', "line 2 is not JSON"),
        ("t.json", "", "line 1 is not JSON"),
        ("t.json", '{"a": ["x"], "a": ["y"]}', "duplicate name 'a' in one group"),
        ("t.json", '{"names": ["r", "x", "y"], "parents": [-1, 0, "0"]}', "parents: expected a list of whole numbers"),
        ("t.json", '{"names": "rxy", "parents": [-1, 0, 0]}', "names: expected a list"),
        ("t.json", "[]", "group 'root' is empty"),
        ("t.yaml", "a: [x, y\nb: [z]", "line 2 is not YAML"),
        ("t.yaml", "a: [x]\na: [y]", "duplicate name 'a' in one group"),
        ("t.yaml", "a: [yes, no]", "non-empty strings, got True"),
        ("t.yaml", "1: [x, y]", "names as strings, got 1"),
        ("t.yaml", "[x]: [x, y]", r"names as strings, got \['x'\]"),
        ("t.json", "[" * 100_000, "nested too deep"),
        ("t.yaml", "", "group 'root' is empty"),
        ("t.csv", "", "edges: expected .* got none"),
        ("t.csv", "parent,child\n", "edges: expected .* got none"),
        ("t.csv", "r,a\nr,  \n", "line 2: a name is missing"),
        ("t.csv", "r,a\n,b\n", "line 2: a name is missing"),
        ("t.csv", "r,a\nr,b,c\n", r"line 2: expected 2 columns \(parent, child\), got 3"),
        ("t.csv", 'r,a\nr,"b\n', "line 2 is not CSV"),
        ("t.csv", "parent,child,class\nr,a,0\nr,b,2\n", "class: expected the numbers 0 to 1"),
        ("t.csv", "parent,child,class\nr,a,0\nr,b,x\n", "class: expected the numbers 0 to 1"),
        ("t.csv", "parent,child,class\nr,g,2\ng,a,0\ng,b,1\n", "one for each class and none elsewhere"),
        ("t.csv", "r,a\nr,b\ns,c\n", "2 roots: 'r', 's'"),
        ("t.csv", b"r,a\nr,caf\xe9\n", "byte 9 is not UTF-8"),
        ("t.nwk", "(a,b", "a closing parenthesis is missing"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message) as caught:
        Taxonomy.load(path)
    assert str(path) in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    tree = Taxonomy.from_nested(["a", "b"])
    with pytest.raises(InputError, match=r"cannot be read \(No such file"):
        Taxonomy.load(tmp_path / "t.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        Taxonomy.load(tmp_path / "folder.csv")
    with pytest.raises(InputError, match="there is no folder"):
        tree.save(tmp_path / "nowhere" / "t.csv")
    with pytest.raises(InputError, match=r"ends in \.json"):
        tree.save(tmp_path / "t.pickle")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    old = Taxonomy.from_nested(["a", "b"])
    old.save(path)

    def full_disk(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        Taxonomy.from_nested(["c", "d"]).save(path)
    assert Taxonomy.load(path) == old
    assert list(tmp_path.iterdir()) == [path]


def test_json_can_be_read_by_others(tmp_path: Path) -> None:
    Taxonomy.from_nested({"a": ["x", "ÿ"]}).save(tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert found == {"names": ["root", "a", "x", "ÿ"], "parents": [-1, 0, 1, 1], "leaves": [2, 3]}


def load_with_everything(path: Path) -> Taxonomy:
    tree = Taxonomy.load(path)
    assert tree.depth is not None
    assert tree.height is not None
    assert tree.paths is not None
    assert tree.children is not None
    return tree


@pytest.mark.long
def test_sixteen_thousand_nodes_load_fast(tmp_path: Path) -> None:
    large = random_taxonomy(np.random.default_rng(0), 11_000, "unbalanced")
    assert len(large) > 16_000
    large.save(tmp_path / "large.csv")
    assert load_with_everything(tmp_path / "large.csv").classes == large.classes
    assert units_of_work(lambda: load_with_everything(tmp_path / "large.csv")) < 40


@pytest.mark.parametrize(("name", "classes"), [("inat21", 10_000), ("imagenet", 1000), ("cifar100", 100)])
def test_research_trees_load(name: str, classes: int, tmp_path: Path) -> None:
    text = data_text(f"trees/{name}.csv")
    (tmp_path / "tree.csv").write_text(text, encoding="utf-8")
    tree = load_with_everything(tmp_path / "tree.csv")
    assert units_of_work(lambda: load_with_everything(tmp_path / "tree.csv")) < 40
    rows = [line.split(",") for line in text.splitlines()]
    above = {child: parent for parent, child in rows}
    inner = set(above.values())
    assert len(tree) == len(rows) + 1
    assert tree.classes == tuple(child for _, child in rows if child not in inner)
    assert len(tree.classes) == classes
    for node in (1, len(tree) // 2, len(tree) - 1):
        way = [tree.names[node]]
        while way[0] in above:
            way.insert(0, above[way[0]])
        assert [tree.names[i] for i in tree.ancestors(node)] == way


@pytest.mark.parametrize("below", [{"pet": ["cat", "dog"], "car": ["bus", "van"]}, [["cat", "dog"], ["bus", "van"]]])
def test_a_root_that_is_written_out_is_the_root(tmp_path: Path, below: object):
    (tmp_path / "plain.json").write_text(json.dumps(below))
    (tmp_path / "rooted.json").write_text(json.dumps({"root": below}))
    assert Taxonomy.load(tmp_path / "rooted.json") == Taxonomy.load(tmp_path / "plain.json")


def test_swapped_columns_are_suspected():
    edges = [("cat", "pet"), ("dog", "pet"), ("pet", "animal"), ("cow", "farm"), ("farm", "animal")]
    with pytest.raises(InputError, match=r"3 roots: 'cat', 'dog', 'cow' .* are the columns parent and child swapped\?"):
        Taxonomy.from_edges(edges)
    assert Taxonomy.from_edges([(parent, child) for child, parent in edges]).classes == ("cat", "dog", "cow")


def test_yaml_is_written_as_json_lists_and_read_both_ways(tmp_path, monkeypatch):
    """The lists of a large tree are read by the reader of JSON, which is a hundred times faster; the result is the same."""
    tree = Taxonomy.from_nested({"a: b": ["é猫", "- x"], "#c": ["yes", "1", "'\"\\"]})
    tree.save(tmp_path / "t.yaml")
    fast = Taxonomy.load(tmp_path / "t.yaml")
    monkeypatch.setattr(labelkin.structure._files, "_json_lists", lambda text: None)
    assert fast == Taxonomy.load(tmp_path / "t.yaml") == tree
    (tmp_path / "hand.yaml").write_text("names: [r, a, b]\nparents: [-1, 0, 0]\nleaves: [1, 2]\n")
    assert Taxonomy.load(tmp_path / "hand.yaml").classes == ("a", "b")


def test_a_key_that_is_given_twice_is_refused_by_both_readers(tmp_path):
    for text in ('names: ["r", "a"]\nnames: ["r", "b"]\n', "a: [x]\na: [y]\n"):
        (tmp_path / "t.yaml").write_text(text)
        with pytest.raises(InputError, match="duplicate name"):
            Taxonomy.load(tmp_path / "t.yaml")


@pytest.mark.parametrize("mark", [";", "\t", "|"])
@pytest.mark.parametrize("header", ["parent,child\n", ""])
def test_edges_may_have_the_separators_of_other_tables(tmp_path, mark, header):
    edges = "root,pet\npet,cat\npet,dog\nroot,car\n"
    (tmp_path / "t.csv").write_text((header + edges).replace(",", mark))
    assert Taxonomy.load(tmp_path / "t.csv") == Taxonomy.from_paths(["pet/cat", "pet/dog", "car"])
    (tmp_path / "t.csv").write_text(header + edges.replace("pet", f"pet{mark}s"))  # the comma separates
    assert Taxonomy.load(tmp_path / "t.csv").names[1] == f"pet{mark}s"
