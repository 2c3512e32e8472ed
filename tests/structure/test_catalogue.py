"""What ships with the package, against the papers, the data sets' own lists, and the data where it is at hand."""

import json

import pytest

from labelkin._checks import InputError
from labelkin.structure import Taxonomy
from labelkin.structure import _catalogue as catalogue
from support.requires import data_text

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TREES = [name for name in catalogue.names() if name != "digits"]


def siblings(tree: Taxonomy, a: str, b: str) -> bool:
    return bool(tree.parents[tree.node(a)] == tree.parents[tree.node(b)])


def test_everything_is_there() -> None:
    trees = {"cifar10", "cifar10-adversarial", "cifar10-binary", "cifar10-wide", "cifar100", "fashion-mnist"}
    groupings = {"cifar10-grouping0", "cifar10-grouping1", "cifar10-grouping2", "cifar10-semantic"}
    assert set(catalogue.names()) == trees | groupings | {"20newsgroups", "digits"}


@pytest.mark.parametrize("name", TREES)
def test_every_entry_has_a_source_and_a_partition(name: str) -> None:
    tree = catalogue.taxonomy(name)
    members = [label for group in catalogue.groups(name).values() for label in group]
    assert sorted(members) == sorted(tree.classes)
    assert catalogue.source(name).startswith("Ours") == (
        name in ("cifar10", "cifar10-adversarial", "cifar10-binary", "cifar10-wide", "fashion-mnist")
    )
    if name.startswith("cifar10-") or name == "cifar10":
        assert tree.classes == CIFAR10


def test_cifar10_default_tree() -> None:
    tree = catalogue.taxonomy("cifar10")
    for pair in (("cat", "dog"), ("deer", "horse"), ("bird", "frog"), ("automobile", "truck"), ("airplane", "ship")):
        assert siblings(tree, *pair)
    assert tree.names[tree.lca("cat", "frog")] == "animal"
    assert tree.names[tree.lca("automobile", "ship")] == "machines"
    assert tree.lca("cat", "automobile") == 0


def test_cifar10_other_trees() -> None:
    animals = {"bird", "cat", "deer", "dog", "frog", "horse"}
    adversarial = catalogue.taxonomy("cifar10-adversarial")
    pairs = [
        {adversarial.names[i] for i in below} for below in adversarial.children if set(below) <= set(adversarial.leaves)
    ]
    pairs = [pair for pair in pairs if pair]
    assert [len(pair) for pair in pairs] == [2] * 5
    assert [len(pair & animals) for pair in pairs].count(1) == 4
    default = catalogue.taxonomy("cifar10")
    assert not any(siblings(default, *pair) for pair in pairs)
    binary = catalogue.taxonomy("cifar10-binary")
    assert {len(below) for below in binary.children} == {0, 2}
    wide = catalogue.taxonomy("cifar10-wide").describe()
    assert (wide.most_depth, wide.equal_depths, wide.widest_children) == (2, True, 5)


@pytest.mark.parametrize(
    ("name", "clusters"),
    [
        ("cifar10-grouping0", ["frog truck airplane", "cat dog deer", "ship bird", "horse automobile"]),
        ("cifar10-grouping1", ["bird automobile deer", "airplane frog ship", "truck horse", "dog cat"]),
        ("cifar10-grouping2", ["airplane automobile ship", "deer cat truck", "frog horse", "bird dog"]),
        ("cifar10-semantic", ["airplane ship truck", "automobile horse", "cat dog", "bird deer frog"]),
    ],
)
def test_groupings_are_table_1(name: str, clusters: list[str]) -> None:
    assert [set(group) for group in catalogue.groups(name).values()] == [set(row.split()) for row in clusters]
    assert catalogue.taxonomy(name).describe().most_depth == 2


def test_cifar100_shape() -> None:
    tree = catalogue.taxonomy("cifar100")
    groups = catalogue.groups("cifar100")
    assert len(groups) == 20
    assert {len(group) for group in groups.values()} == {5}
    assert list(groups) == sorted(groups)
    assert tree.classes == tuple(sorted(tree.classes))


def test_cifar100_agrees_with_a_research_tree() -> None:
    rows = [line.split(",") for line in data_text("trees/cifar100.csv").splitlines()]
    tree = catalogue.taxonomy("cifar100")
    found = {child: parent for parent, child in rows if child in tree.classes}
    assert found == {name: tree.names[top] for name, top in zip(tree.classes, tree.level(1).tolist(), strict=True)}


def test_fashion_mnist() -> None:
    assert catalogue.taxonomy("fashion-mnist").classes == (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    )
    assert catalogue.groups("fashion-mnist")["shoes"] == ("Sandal", "Sneaker", "Ankle boot")


def test_20newsgroups() -> None:
    tree = catalogue.taxonomy("20newsgroups")
    assert len(tree.classes) == 20
    assert tree.classes == tuple(sorted(tree.classes))
    sizes = {family: len(group) for family, group in catalogue.groups("20newsgroups").items()}
    assert sizes == {"comp": 5, "rec": 4, "sci": 4, "misc": 1, "talk.politics": 3, "religion": 3}
    for family in ("comp", "rec", "sci", "misc", "talk.politics"):
        assert all(name.startswith(family + ".") for name in catalogue.groups("20newsgroups")[family])
    assert siblings(tree, "rec.sport.baseball", "rec.sport.hockey")


def test_20newsgroups_is_the_data_sets_own() -> None:
    lines = data_text("20news/test.jsonl").splitlines()
    assert set(catalogue.taxonomy("20newsgroups").classes) == {json.loads(line)["label"] for line in lines}


def test_digits() -> None:
    assert catalogue.order("digits") == tuple("0123456789")
    with pytest.raises(InputError, match=r"'digits' is an order of classes; call catalogue\.order"):
        catalogue.taxonomy("digits")
    with pytest.raises(InputError, match=r"'cifar10' is a tree; call catalogue\.taxonomy"):
        catalogue.order("cifar10")


@pytest.mark.parametrize("ask", [catalogue.taxonomy, catalogue.groups, catalogue.order, catalogue.source])
def test_a_wrong_name_lists_near_ones(ask: object) -> None:
    with pytest.raises(InputError, match=r"tree or order 'cifar-10', only '20newsgroups', .*Did you mean 'cifar10'"):
        ask("cifar-10")  # type: ignore[operator]
