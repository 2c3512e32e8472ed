"""WordNet: the reader on a database written here, and on the real one where it is installed."""

import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from labelkin._checks import InputError
from labelkin.structure import Taxonomy, WordNet
from support.clock import units_of_work
from support.requires import skip_unless
from support.trees import edges
from support.wordnet import write_database

CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


@pytest.fixture
def small(tmp_path: Path) -> WordNet:
    return WordNet(write_database(tmp_path / "wn"))


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("WNSEARCHDIR", "WNHOME", "NLTK_DATA"):
        monkeypatch.delenv(variable, raising=False)


def test_senses(small: WordNet) -> None:
    assert small.sense("dog") == "dog.n.01"
    assert small.sense("Domestic Dog") == "dog.n.01"
    assert small.sense("domestic_dog.n.01") == "dog.n.01"
    assert small.sense("bat") == "bat.n.01"
    assert small.sense("bat.n.02") == "club.n.01"
    assert small.sense("rex") == "rex.n.01"


def test_hypernyms_of_both_kinds(small: WordNet) -> None:
    assert small.hypernyms("dog") == ("carnivore.n.01", "pet.n.01")
    assert small.hypernyms("rex") == ("dog.n.01",)
    assert small.hypernyms("entity") == ()


def test_paths_take_the_shorter_way(small: WordNet) -> None:
    assert small.shortest_path("dog", "cat") == 2
    assert small.shortest_path("dog", "pet") == 1
    assert small.shortest_path("rex", "club") == 6
    assert small.distances(["cat", "dog", "bat.n.02"]).tolist() == [[0, 2, 5], [2, 0, 5], [5, 5, 0]]


@pytest.mark.parametrize(
    ("sense", "message"),
    [
        ("carnivor", r"no noun 'carnivor'\. Did you mean 'carnivore'"),
        ("xat", r"no noun 'xat'\."),
        ("bat.n.03", "the senses of 'bat' are numbered from 1 to 2"),
        ("bat.n.00", "the senses of 'bat' are numbered from 1 to 2"),
        ("", "non-empty strings"),
    ],
)
def test_unknown_senses(small: WordNet, sense: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        small.sense(sense)


def test_tree_of_names_and_senses(small: WordNet) -> None:
    tree = Taxonomy.from_wordnet(["club", "cat", "dog"], senses={"club": "bat.n.02"}, rule="deepest", database=small)
    assert tree.classes == ("club", "cat", "dog")
    assert edges(tree) == {("entity.n.01", "club"), ("entity.n.01", "carnivore.n.01")} | {
        ("carnivore.n.01", "cat"),
        ("carnivore.n.01", "dog"),
    }
    whole = Taxonomy.from_wordnet(["club", "cat", "dog"], rule="deepest", database=small, collapse=False)
    assert {("entity.n.01", "tool.n.01"), ("tool.n.01", "club"), ("animal.n.01", "carnivore.n.01")} < edges(whole)


def test_a_class_above_another_hangs_under_its_synset(small: WordNet) -> None:
    tree = Taxonomy.from_wordnet(
        ["animal", "cat", "entity.n.01", "beast"], rule="shortest", database=small, collapse=False
    )
    assert tree.classes == ("animal", "cat", "entity.n.01", "beast")
    assert edges(tree) == {
        ("entity.n.01-2", "animal.n.01"),
        ("entity.n.01-2", "entity.n.01"),
        ("animal.n.01", "carnivore.n.01"),
        ("carnivore.n.01", "cat"),
        ("animal.n.01", "beast"),
        ("animal.n.01", "animal"),
    }


def test_classes_of_one_synset_hang_under_it(small: WordNet) -> None:
    tree = Taxonomy.from_wordnet(["cat", "bat", "true cat"], rule="shortest", database=small)
    assert tree.classes == ("cat", "bat", "true cat")
    assert edges(tree) == {
        ("animal.n.01", "cat.n.01"),
        ("animal.n.01", "bat"),
        ("cat.n.01", "cat"),
        ("cat.n.01", "true cat"),
    }


def test_choosing_a_parent_is_never_silent(small: WordNet) -> None:
    with pytest.warns(UserWarning, match="several parents for 'dog'; the one with the shortest path") as caught:
        chosen = Taxonomy.from_wordnet(["cat", "dog"], database=small)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Taxonomy.from_wordnet(["cat", "dog"], rule="shortest", database=small) == chosen
        Taxonomy.from_wordnet(["cat", "bat"], database=small)


@pytest.mark.parametrize(
    ("names", "senses", "message"),
    [
        (["cat", "dgo"], None, r"no noun 'dgo'\."),
        (["cat", "dog"], {"dgo": "dog"}, r"senses: 'dgo' is not among the names\. Did you mean 'dog'"),
        (["cat", "cat"], None, "duplicate name 'cat'"),
        (["cat"], None, "at least 2 names"),
        ([], None, "at least 2 names"),
    ],
)
def test_bad_names(small: WordNet, names: list[str], senses: dict[str, str] | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy.from_wordnet(names, senses=senses, rule="shortest", database=small)


@pytest.mark.parametrize(
    ("variable", "value", "place", "zipped"),
    [
        ("WNSEARCHDIR", "{0}/any", "any", False),
        ("WNHOME", "{0}/home", "home/dict", False),
        ("NLTK_DATA", "{0}/none:{0}/nltk", "nltk/corpora/wordnet", False),
        ("NLTK_DATA", "{0}/none:{0}/nltk", "nltk/corpora/wordnet", True),
        ("HOME", "{0}/me", "me/nltk_data/corpora/wordnet", False),
    ],
)
def test_where_the_database_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, place: str, zipped: bool
) -> None:
    monkeypatch.setattr("labelkin.structure._wordnet._SYSTEM", tmp_path / "no-system-database")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = write_database(tmp_path / place)
    if zipped:
        with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
            for name in ("index.noun", "data.noun"):
                archive.write(folder / name, f"wordnet/{name}")
                (folder / name).unlink()
    with pytest.raises(InputError, match=r"wordnet-base.*WNSEARCHDIR.*WNHOME.*NLTK_DATA"):
        WordNet()
    monkeypatch.setenv(variable, value.format(tmp_path))
    assert WordNet().shortest_path("cat", "dog") == 2


def test_a_wrong_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a WordNet folder with index\.noun and data\.noun"):
        WordNet(tmp_path)
    with pytest.raises(InputError, match="expected a WordNet folder"):
        Taxonomy.from_wordnet(["cat", "dog"], database=tmp_path)


def test_files_of_two_databases(tmp_path: Path) -> None:
    folder = write_database(tmp_path / "wn")
    (folder / "data.noun").write_text("x" + (folder / "data.noun").read_text())
    with pytest.raises(InputError, match="belong to different databases"):
        WordNet(folder).sense("cat")


# The real database


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    try:
        return WordNet()
    except InputError:
        skip_unless(False, "WordNet", "data")
        raise


def test_published_distance(wordnet: WordNet) -> None:
    assert wordnet.shortest_path("cat.n.01", "dog.n.01") == 4


@pytest.mark.parametrize(
    ("sense", "synset"),
    [
        ("automobile", "car.n.01"),
        ("automobile.n.01", "car.n.01"),
        ("truck", "truck.n.01"),
        ("Great Dane", "great_dane.n.01"),
        ("domestic_dog", "dog.n.01"),
        ("cat.n.02", "guy.n.01"),
        ("trouser", "trouser.n.01"),
    ],
)
def test_real_senses(wordnet: WordNet, sense: str, synset: str) -> None:
    assert wordnet.sense(sense) == synset


def test_real_hypernyms(wordnet: WordNet) -> None:
    assert wordnet.hypernyms("dog.n.01") == ("canine.n.02", "domestic_animal.n.01")
    assert wordnet.hypernyms("einstein.n.01") == ("physicist.n.01",)
    with pytest.raises(InputError, match="Did you mean 'automobile'"):
        wordnet.sense("automobil")


@pytest.mark.long
def test_distances_equal_a_search_over_the_file(wordnet: WordNet) -> None:
    above: dict[str, list[str]] = {}
    for line in wordnet._data.decode().splitlines():
        words = line.split(" | ")[0].split()
        if not line.startswith(" "):
            marks = [i for i, word in enumerate(words) if word in ("@", "@i") and words[i + 2] == "n"]
            above[words[0]] = [words[i + 1] for i in marks]

    def ways(node: str) -> dict[str, int]:
        best = {node: 0}
        for parent in above[node]:
            for top, steps in ways(parent).items():
                best[top] = min(best.get(top, 99), steps + 1)
        return best

    up = [ways(f"{wordnet.offset(name):08d}") for name in CIFAR10]
    slow = [[min(a[n] + b[n] for n in a.keys() & b.keys()) for b in up] for a in up]
    assert wordnet.distances(CIFAR10).tolist() == slow


@pytest.mark.long
@pytest.mark.usefixtures("wordnet")
def test_cifar10_is_built_fast() -> None:
    tree = Taxonomy.from_wordnet(CIFAR10, rule="deepest")
    assert units_of_work(lambda: Taxonomy.from_wordnet(CIFAR10, rule="deepest"), times=1) < 20
    assert tree.classes == tuple(CIFAR10)
    assert tree.names[tree.lca("cat", "dog")] == "carnivore.n.01"
    assert tree.names[tree.lca("automobile", "truck")] == "motor_vehicle.n.01"
    assert tree.names[tree.lca("airplane", "ship")] == "craft.n.02"
    assert tree.names[tree.lca("frog", "horse")] == "vertebrate.n.01"


@pytest.mark.usefixtures("wordnet")
def test_cifar10_names_its_choices() -> None:
    with pytest.warns(UserWarning, match=r"'wheeled_vehicle\.n\.01', 'dog'; the one with the shortest path"):
        tree = Taxonomy.from_wordnet(CIFAR10)
    assert tree.names[tree.lca("cat", "dog")] == "animal.n.01"  # by way of domestic_animal.n.01


def test_tree_and_graph_agree_where_nothing_was_chosen(wordnet: WordNet) -> None:
    names = ["bird", "cat", "frog", "horse"]
    tree = Taxonomy.from_wordnet(names, database=wordnet, collapse=False)
    assert np.array_equal(tree.distance("edges"), wordnet.distances(names))


def test_what_is_required_may_not_be_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABELKIN_REQUIRE", "gpu,data")
    with pytest.raises(pytest.fail.Exception, match="LABELKIN_REQUIRE asks for 'data'"):
        skip_unless(False, "a thing", "data")
    monkeypatch.setenv("LABELKIN_REQUIRE", "gpu,database")
    with pytest.raises(pytest.skip.Exception):
        skip_unless(False, "a thing", "data")
    skip_unless(True, "a thing", "gpu")
