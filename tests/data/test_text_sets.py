"""IMDB, Yelp polarity and 20 Newsgroups in the layouts that their archives have."""

import json
from pathlib import Path

import pytest

from labelkin._checks import InputError
from labelkin.data import DATASETS, load
from labelkin.data._sets.texts import group_tree, without_footers, without_headers, without_quotes
from support.requires import data_text
from support.texts import texts

GROUPS = ["alt.atheism", "comp.graphics", "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware", "sci.space"]
POST = "\n".join(
    [
        "From: me@here.edu",
        "Subject: Re: orbit",
        "",
        "In article <1@x> you wrote:",
        "> the orbit is low",
        "The orbit of the probe is too low for that, caf\xe9 or not.",
        "",
        "--",
        "Me, at work",
        "",
    ]
)


def write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_lines(path: Path, rows) -> None:
    write(path, "".join(json.dumps({"label": label, "file": "x", "text": text}) + "\n" for label, text in rows))


def imdb_folders(root: Path) -> None:
    for part, found in (("train", texts()), ("test", texts()[::-1])):
        for i, text in enumerate(found[:12]):
            write(root / "aclImdb" / part / ("neg", "pos")[i % 2] / f"{i:02d}_7.txt", f"{text}<br /><br />The end.")
    write(root / "aclImdb" / "train" / "unsup" / "0_0.txt", "left alone")


def imdb_lines(root: Path) -> None:
    for part, found in (("train", texts()), ("test", texts()[::-1])):
        rows = [(i % 2, f"{text}<br /><br />The end.") for i, text in enumerate(found[:12])]
        write_lines(root / "imdb" / f"{part}.jsonl", rows)


@pytest.mark.parametrize("layout", [imdb_folders, imdb_lines])
def test_imdb(tmp_path, layout):
    layout(tmp_path)
    data = load("imdb", data_dir=tmp_path, download=False)
    assert data.classes == ("negative", "positive")
    expected = {f"{text}\n\nThe end.": i % 2 for i, text in enumerate(texts()[:12])}
    assert dict(zip(data.train.texts, data.train.targets.tolist(), strict=True)) == expected
    assert len(data.test) == 12


def test_yelp_polarity(tmp_path):
    rows = [
        (str(1 + i % 2), text.replace('"', "'").replace("\n", "\\n") + " The end.")
        for i, text in enumerate(texts()[:12])
    ]
    for part in ("train", "test"):
        write(tmp_path / "yelp_review_polarity_csv" / f"{part}.csv", "".join(f'"{k}","{text}"\n' for k, text in rows))
    data = load("yelp-polarity", data_dir=tmp_path)
    assert data.classes == ("negative", "positive")
    assert data.train.texts == tuple(text.replace('"', "'") + " The end." for text in texts()[:12])
    assert data.train.targets.tolist() == [0, 1] * 6


def news_folders(root: Path) -> None:
    for part in ("train", "test"):
        for i, text in enumerate(texts()[: 2 * len(GROUPS)]):
            body = POST.replace("The orbit", f"Hello, {text.replace(chr(10), ' ')} The orbit")
            write(root / f"20news-bydate-{part}" / GROUPS[i // 2] / f"{60000 + i}", body.encode("latin-1", "replace"))


@pytest.mark.long
def test_20_newsgroups(tmp_path):
    news_folders(tmp_path)
    data = load("20-newsgroups", data_dir=tmp_path)
    assert data.classes == tuple(GROUPS)
    assert data.train.targets.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert all(text.strip().endswith("too low for that, caf\xe9 or not.") for text in data.train.texts)
    assert not any("wrote" in text or "me@here" in text or "at work" in text for text in data.train.texts)
    whole = load("20-newsgroups", data_dir=tmp_path, remove=["none"])
    assert all(text.startswith("From: me@here.edu") and "at work" in text for text in whole.train.texts)
    quoted = load("20-newsgroups", data_dir=tmp_path, remove=["headers", "footers"])
    assert all(text.startswith("In article") and "at work" not in text for text in quoted.train.texts)
    with pytest.raises(InputError, match=r"remove: expected one of .*, got 'header'\. Did you mean 'headers'"):
        load("20-newsgroups", data_dir=tmp_path, remove=["header"])


def test_the_groups_are_a_tree_by_their_names():
    tree = group_tree(GROUPS)
    assert tree.classes == tuple(GROUPS)
    above = {name: tree.names[tree.parents[tree.node(name)]] for name in tree.names[1:]}
    assert above == {
        "alt.atheism": "newsgroups",
        "comp": "newsgroups",
        "sci.space": "newsgroups",
        "comp.graphics": "comp",
        "comp.sys": "comp",
        "comp.sys.ibm.pc.hardware": "comp.sys",
        "comp.sys.mac.hardware": "comp.sys",
    }


@pytest.mark.parametrize("name", ["imdb", "20-newsgroups", "yelp-polarity"])
def test_a_folder_of_something_else_is_not_taken_for_the_set(tmp_path, name):
    write_lines(tmp_path / "train.jsonl", [("spam", "buy"), ("ham", "hello")])
    write_lines(tmp_path / "test.jsonl", [("spam", "buy"), ("ham", "hello")])
    assert not DATASETS[name].place.holds(tmp_path)
    assert not DATASETS[name].place.holds(tmp_path / "absent")


BY_HAND = [POST, "", "one line", "\n\n", "-----\nnothing above", "a\n\nb", "| told\n> so\nsaid: no\nkept"]
RULES = [
    (without_headers, "strip_newsgroup_header"),
    (without_footers, "strip_newsgroup_footer"),
    (without_quotes, "strip_newsgroup_quoting"),
]


def real_posts() -> list[str]:
    return [json.loads(line)["text"] for line in data_text("20news/test.jsonl").splitlines()[::10]]


@pytest.mark.long
@pytest.mark.parametrize(("ours", "theirs"), RULES)
@pytest.mark.parametrize("posts", [lambda: BY_HAND, real_posts], ids=["by hand", "real"])
def test_what_is_removed_is_what_scikit_learn_removes(ours, theirs, posts):
    from sklearn.datasets import _twenty_newsgroups as reference

    for post in posts():
        assert ours(post) == getattr(reference, theirs)(post)
