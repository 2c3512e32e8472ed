"""CLINC150, NAICS 2012 and TREC in the layouts of their public files."""

import json
import lzma
import os
from pathlib import Path

import pytest
import torch

from labelkin import InputError
from labelkin.data import DATASETS, load, out_of_scope
from labelkin.data._sets.text_trees import TREC_CLASSES
from support.requires import SHARED
from support.texts import texts

pytestmark = pytest.mark.filterwarnings("ignore:.*have no word that")  # few texts, or a narrow encoder

INTENTS = {"banking": ["transfer", "balance"], "travel": ["book_flight"], "work": ["pto_request"]}
PARTS = {"train": 0, "val": 8, "test": 16}
TITLES = {
    "111120": "Oilseed Farming",
    "111219": "Melon Farming",
    "112111": "Cattle Ranching",
    "311111": "Dog Food",
    "311119": "Fodder",
}


def sentences(start: int, count: int) -> list[str]:
    return [" ".join(text.split()) for text in texts()[start : start + count]]


def clinc150(root: Path) -> None:
    folder = root / "clinc150"
    folder.mkdir(parents=True)
    names = [name for intents in INTENTS.values() for name in intents]
    rows = {part: [[text, names[i % 4]] for i, text in enumerate(sentences(start, 8))] for part, start in PARTS.items()}
    rows |= {f"oos_{part}": [[text, "oos"] for text in sentences(30 + start, 3)] for part, start in PARTS.items()}
    (folder / "data_full.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "domains.json").write_text(json.dumps(INTENTS), encoding="utf-8")


def naics2012(root: Path) -> None:
    folder = root / "naics2012"
    folder.mkdir(parents=True)
    prefixes = {code[:digits] for code in TITLES for digits in (3, 4, 5)}
    items = [{"code": 31, "part_of_range": "31-33"}, {"code": 11, "title": "Agriculture"}]
    items += [{"code": int(code), "title": f"Group {code}"} for code in sorted(prefixes)]
    for place, (code, title) in enumerate(TITLES.items()):
        items.append({"code": int(code), "title": title, "index": sentences(6 * place, 6 - (code == "111219") * 2)})
    (folder / "naics-2012.json").write_text(json.dumps({"year": 2012, "items": items[::-1]}), encoding="utf-8")


def trec(root: Path, *, encoding: str = "latin-1", wrong: int = 1) -> None:
    folder = root / "trec"
    folder.mkdir(parents=True)
    types = ["NUM:date", "DESC:def", "NUM:dist"]
    for name, start in (("train_5500.label", 0), ("TREC_10.label", 9)):
        lines = [f"{types[i % 3]} Where is caf\xe9 {text} ?\n" for i, text in enumerate(sentences(start, 9))]
        lines[1:1] = ["NUM:How count many innings ?\n"] * wrong
        (folder / name).write_bytes("".join(lines).encode(encoding, "replace"))


def test_clinc150(tmp_path):
    clinc150(tmp_path)
    data = load("clinc150", data_dir=tmp_path, download=False)
    assert data.classes == ("balance", "book_flight", "pto_request", "transfer")
    assert {part: split.texts for part, split in data.splits.items()} == {
        part: tuple(sentences(start, 8)) for part, start in PARTS.items()
    }
    assert data.train.targets.tolist() == [3, 0, 1, 2, 3, 0, 1, 2]
    tree = data.taxonomy
    above = {name: tree.names[tree.parents[tree.node(name)]] for name in tree.names[1:]}
    assert above == {name: domain for domain, names in INTENTS.items() for name in names} | dict.fromkeys(
        INTENTS, "intents"
    )


def test_the_queries_out_of_scope(tmp_path, monkeypatch):
    clinc150(tmp_path)
    assert out_of_scope(data_dir=tmp_path) == tuple(sentences(46, 3))
    monkeypatch.setenv("LABELKIN_DATA", str(tmp_path))
    assert out_of_scope("val") == tuple(sentences(38, 3))
    with pytest.raises(InputError, match=r"part: expected one of .*, got 'all'"):
        out_of_scope("all")


def test_naics2012(tmp_path):
    naics2012(tmp_path)
    data = load("naics2012", data_dir=tmp_path, download=False)
    kept = [code for code in sorted(TITLES) if code != "111219"]  # which has four texts
    assert data.classes == tuple(f"{code} {TITLES[code]}" for code in kept)
    assert torch.bincount(torch.cat([data.train.targets, data.test.targets])).tolist() == [6] * 4
    tree = data.taxonomy
    paths = [[tree.names[node] for node in tree.ancestors(tree.node(name)).tolist()] for name in data.classes]
    expected = [
        "industries",
        "11 Agriculture",
        "111 Group 111",
        "1111 Group 1111",
        "11112 Group 11112",
        data.classes[0],
    ]
    assert paths[0] == expected
    assert paths[2][:2] == ["industries", "31"]  # the file gives this code no title
    assert {len(path) for path in paths} == {6}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_trec(tmp_path, encoding):
    trec(tmp_path, encoding=encoding)
    data = load("trec", data_dir=tmp_path, download=False)
    assert data.classes == ("DESC:def", "NUM:date", "NUM:dist")
    assert data.train.targets.tolist() == [1, 0, 2] * 3
    assert data.test.texts == tuple(f"Where is caf\xe9 {text} ?" for text in sentences(9, 9))
    tree = data.taxonomy
    above = {name: tree.names[tree.parents[tree.node(name)]] for name in tree.names[1:]}
    assert above == {
        "DESC": "questions",
        "NUM": "questions",
        "DESC:def": "DESC",
        "NUM:date": "NUM",
        "NUM:dist": "NUM",
    }


def test_trec_has_fifty_types():
    assert len(set(TREC_CLASSES)) == 50


def damage(file: str, content: str):
    return lambda root: (root / file).write_text(content, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "write", "wrong", "says"),
    [
        (
            "clinc150",
            clinc150,
            damage("clinc150/domains.json", '{"a": ["balance"]}'),
            "intent 'book_flight' is in none",
        ),
        ("clinc150", clinc150, damage("clinc150/domains.json", "[]"), "expected an object with the intents"),
        ("clinc150", clinc150, damage("clinc150/data_full.json", '{"train": [["a"]]}'), "expected a list of pairs"),
        ("clinc150", clinc150, damage("clinc150/data_full.json", "{"), "not a JSON file"),
        ("naics2012", naics2012, damage("naics2012/naics-2012.json", '{"item": []}'), "expected an object with a list"),
        ("naics2012", naics2012, damage("naics2012/naics-2012.json", '{"items": []}'), "got none"),
        ("trec", lambda root: trec(root, wrong=4), lambda root: None, "got 'NUM:How'"),
        ("trec", trec, damage("trec/TREC_10.label", "\n"), "got 'no lines'"),
    ],
)
def test_damaged_files_are_refused(tmp_path, name, write, wrong, says):
    write(tmp_path)
    wrong(tmp_path)
    with pytest.raises(InputError, match=says):
        load(name, data_dir=tmp_path, download=False)


@pytest.mark.parametrize("name", ["clinc150", "naics2012", "trec"])
def test_a_missing_set_says_what_to_put_where(tmp_path, monkeypatch, name):
    monkeypatch.setenv("LABELKIN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not DATASETS[name].place.holds(tmp_path)
    with pytest.raises(InputError, match=rf"{name}: not found in .*; place .* into {name} below one of these folders"):
        load(name)


def real(name: str, into: Path) -> Path:
    """A data folder with the set: the one at hand, or the shared files unpacked."""
    own = Path(os.environ.get("LABELKIN_DATA", "data"))
    if (own / name).is_dir():
        return own
    if not (SHARED / name).is_dir():
        pytest.skip(f"{name} is not here")
    for file in (SHARED / name).iterdir():
        packed = file.suffix == ".xz"
        target = into / name / (file.stem if packed else file.name)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(lzma.decompress(file.read_bytes()) if packed else file.read_bytes())
    return into


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "classes", "levels", "sizes"),
    [
        ("clinc150", 150, [10, 150], {"train": 15000, "val": 3000, "test": 4500}),
        ("naics2012", 894, [24, 96, 295, 629, 894], {"train": 15027, "test": 3757}),
        ("trec", 50, [6, 50], {"train": 5443, "test": 499}),
    ],
)
def test_the_real_files(tmp_path, name, classes, levels, sizes):
    folder = real(name, tmp_path)
    data = load(name, data_dir=folder, encoder="hashed-tfidf:64")
    tree = data.taxonomy
    assert len(data.classes) == classes
    depths = [len(tree.ancestors(node)) - 1 for node in range(len(tree.names))]
    assert [depths.count(depth + 1) for depth in range(max(depths))] == levels
    assert {part: len(split) for part, split in data.splits.items()} == sizes
    if name == "clinc150":
        assert [len(out_of_scope(part, data_dir=folder)) for part in PARTS] == [100, 100, 1000]
