"""The dataset of WordNet's definitions: on a small database written here, and on the real one where it is installed."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from labelkin import InputError
from labelkin.data import DATASETS, fingerprint, load
from labelkin.data._readers.texts import TextRow
from labelkin.data._sets import definitions
from labelkin.structure import WordNet
from support.requires import skip_unless
from support.wordnet import write_database

KINDS = {"river": "water", "lake": "water", "city": "place", "village": "place"}


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    definitions.rows_of.cache_clear()
    yield
    definitions.rows_of.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Thirty-five things of each kind, of which five of the rivers have the definition of a lake, and too few villages."""
    synsets: dict[str, tuple[list[str], list[str]]] = {
        "entity": ([], []),
        "water": (["entity"], []),
        "place": (["entity"], []),
    }
    glosses = {}
    for kind, above in KINDS.items():
        synsets[kind] = ([above], [])
        for i in range(29 if kind == "village" else 35):
            name = f"{kind}{i}"
            synsets[name] = ([kind, "place"], []) if i % 2 else ([], [kind])
            glosses[name] = f'the {kind if i else "lake"} number {i}; with a name; "an example of {kind}"'
            if kind == "river" and i < 5:
                glosses[name] = f"the lake number {i}; with a name"
    write_database(tmp_path / "wordnet", synsets, glosses)
    monkeypatch.setenv("LABELKIN_DATA", str(tmp_path))
    return tmp_path


def test_definitions_are_split_by_kind(folder: Path) -> None:
    data = load("wordnet", encoder="hashed-tfidf:64")
    assert data.classes == ("city.n.01", "lake.n.01", "river.n.01")  # a village has fewer than 30 definitions
    tree = data.taxonomy
    assert tree is not None
    assert tree.classes == data.classes
    assert tree.names[tree.lca(tree.node("lake.n.01"), tree.node("river.n.01"))] == "water.n.01"
    rows = definitions.rows_of(folder / "wordnet")
    assert Counter(row.label for row in rows) == dict.fromkeys(data.classes, 35)
    assert all(row.text.endswith("; with a name") for row in rows)  # without the examples of use
    for name in data.classes:
        tested = sum(row.part == "test" for row in rows if row.label == name)
        assert tested in range(6, 9)


def test_equal_definitions_are_on_one_side(folder: Path) -> None:
    sides: dict[str, set[str]] = {}
    labels: dict[str, set[str]] = {}
    for row in definitions.rows_of(folder / "wordnet"):
        sides.setdefault(row.text, set()).add(str(row.part))
        labels.setdefault(row.text, set()).add(row.label)
    assert sum(len(found) > 1 for found in labels.values()) == 5
    assert all(len(found) == 1 for found in sides.values())


def test_the_set_is_known_by_its_content(folder: Path) -> None:
    before = fingerprint("wordnet")
    assert before.startswith("wordnet:")
    data = folder / "wordnet" / "data.noun"
    data.write_text(data.read_text().replace("the city number 3;", "the city number x;"))
    definitions.rows_of.cache_clear()
    assert fingerprint("wordnet") != before


def test_missing_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABELKIN_DATA", str(tmp_path))
    place = definitions.DEFINITIONS._replace(fixed=())
    monkeypatch.setattr(definitions, "DEFINITIONS", place)
    monkeypatch.setitem(DATASETS, "wordnet", DATASETS["wordnet"]._replace(place=place))
    assert fingerprint("wordnet") == "wordnet"
    with pytest.raises(InputError, match=r"index\.noun and data\.noun of WordNet 3\.0 into wordnet"):
        load("wordnet")


def test_the_real_database() -> None:
    folder = Path("/usr/share/wordnet")
    skip_unless((folder / "data.noun").is_file(), "WordNet", "data")
    rows = definitions.rows_of(folder)
    assert len(rows) == 18_524
    assert len({row.label for row in rows}) == 304
    offsets = list(WordNet(folder).offsets())
    assert len(offsets) == 82_115
    assert TextRow("containerful.n.01", "the quantity that a barrel (of any size) will hold", "test") in rows
