"""Readers of IMDB, Yelp polarity and 20 Newsgroups, unpacked or as JSON lines.

JSON lines are files train.jsonl and test.jsonl of objects with a `text` and a `label`.
"""

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path

from labelkin._checks import InputError, check_choice, counted
from labelkin.data._dataset import RawDataset
from labelkin.data._readers.texts import TextRow, check_utf8, decoded, read_texts, text_set
from labelkin.structure import Taxonomy

QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^[|>]")


def without_headers(post: str) -> str:
    """Return the part of a post after the first empty line."""
    return post.partition("\n\n")[2]


def without_footers(post: str) -> str:
    """Remove the last block after an empty line or a line of hyphens, which is usually a signature."""
    lines = post.strip().split("\n")
    gaps = [place for place, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: gaps[-1]]) if gaps and gaps[-1] else post


def without_quotes(post: str) -> str:
    """Remove lines that quote another post or introduce a quotation."""
    return "\n".join(line for line in post.split("\n") if not QUOTE.search(line))


# In order of application: footers first, because removing quotes leaves empty lines.
REMOVABLE: dict[str, Callable[[str], str]] = {
    "headers": without_headers,
    "footers": without_footers,
    "quotes": without_quotes,
}


def stripper(remove: Sequence[str] | None) -> Callable[[str], str]:
    """Return a function that removes the given parts of a post: all by default, none for `("none",)` or an empty list."""
    named = list(REMOVABLE) if remove is None else [remove] if isinstance(remove, str) else list(remove)
    for name in named:
        check_choice("remove", name, (*REMOVABLE, "none"))
    chosen = [step for name, step in REMOVABLE.items() if name in named]

    def strip(post: str) -> str:
        for step in chosen:
            post = step(post)
        return post

    return strip


def group_tree(groups: Sequence[str]) -> Taxonomy:
    """Build a taxonomy from shared prefixes: `comp`, with the children `comp.sys` and `comp.graphics`."""
    edges: dict[tuple[str, str], None] = {}
    for group in groups:
        parts = group.split(".")
        chain = ["newsgroups", *(".".join(parts[:depth]) for depth in range(1, len(parts) + 1))]
        edges.update(dict.fromkeys(pairwise(chain)))
    return Taxonomy.from_edges(edges, classes=groups).collapse()


PARTS = ("train", "test")
POLARITY = ("negative", "positive")
SENTIMENTS = {"0": "negative", "neg": "negative", "1": "positive", "pos": "positive"}
SENTIMENTS |= {name: name for name in POLARITY}
YELP = {"1": "negative", "2": "positive"}
NEWS_FOLDERS = {part: f"20news-bydate-{part}" for part in PARTS}


def is_imdb(folder: Path) -> bool:
    """Return whether a folder contains IMDB."""
    unpacked = all((folder / part / name).is_dir() for part in PARTS for name in ("neg", "pos"))
    return unpacked or _lines_labeled(folder, lambda label: label in SENTIMENTS)


def read_imdb(folder: Path) -> RawDataset:
    """Read `train/pos/0_9.txt` or JSON lines with labels 0 and 1; `<br />` becomes a line break."""
    if (folder / "train" / "pos").is_dir():
        tables = {part: _from_folders(folder / part, ("neg", "pos"), decoded) for part in PARTS}
    else:
        tables = {part: read_texts(folder / f"{part}.jsonl") for part in PARTS}
    named = {
        part: [TextRow(_renamed(row.label, SENTIMENTS, folder), row.text.replace("<br />", "\n")) for row in rows]
        for part, rows in tables.items()
    }
    return text_set(named, source=str(folder), classes=POLARITY)


def is_yelp_polarity(folder: Path) -> bool:
    """Return whether a folder contains Yelp polarity."""
    try:
        for part in PARTS:
            with (folder / f"{part}.csv").open(newline="", encoding="utf-8") as file:
                first = next(csv.reader(file), [])
            if len(first) != 2 or first[0] not in YELP:
                return False
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return True


def read_yelp_polarity(folder: Path) -> RawDataset:
    """Read train.csv and test.csv, which have no header: 1 (negative) or 2 (positive), and the review."""
    tables = {}
    for part in PARTS:
        path = folder / f"{part}.csv"
        check_utf8(path)
        with path.open(newline="", encoding="utf-8") as file:
            tables[part] = [_yelp_row(row, path, line) for line, row in enumerate(csv.reader(file), start=1)]
    return text_set(tables, source=str(folder), classes=POLARITY)


def is_newsgroups(folder: Path) -> bool:
    """Return whether a folder contains 20 Newsgroups."""
    unpacked = all((folder / name).is_dir() for name in NEWS_FOLDERS.values())
    return unpacked or _lines_labeled(folder, lambda label: label.count(".") >= 1 and " " not in label)


def read_newsgroups(folder: Path, *, remove: Sequence[str] | None = None) -> RawDataset:
    """Read 20 Newsgroups: Latin-1 files such as `20news-bydate-train/sci.space/60862`, or JSON lines with the group as label.

    Args:
        folder: The folder.
        remove: Parts to remove: "headers", "footers", "quotes" (all by default). They reveal the sender, the computer or the
            group itself, so the accuracy with them does not measure topics (85 % instead of 70 % for a linear model on
            TF-IDF). A post with nothing left stays as an empty text.
    """
    strip = stripper(remove)
    if (folder / NEWS_FOLDERS["train"]).is_dir():
        groups = sorted(path.name for path in (folder / NEWS_FOLDERS["train"]).iterdir() if path.is_dir())
        tables = {part: _from_folders(folder / name, groups, _latin) for part, name in NEWS_FOLDERS.items()}
    else:
        tables = {part: read_texts(folder / f"{part}.jsonl") for part in PARTS}
    found = text_set(
        {part: [row._replace(text=strip(row.text)) for row in rows] for part, rows in tables.items()},
        source=str(folder),
    )
    return found._replace(taxonomy=group_tree(found.classes))


def _from_folders(root: Path, names: Sequence[str], decode: Callable[[bytes, Path], str]) -> list[TextRow]:
    """Read one text per file, sorted by name."""
    files = [(name, file) for name in names for file in sorted((root / name).iterdir()) if file.is_file()]
    return [TextRow(name, decode(file.read_bytes(), file)) for name, file in files]


def _latin(content: bytes, _: Path) -> str:
    return content.decode("latin-1")


def _lines_labeled(folder: Path, fits: Callable[[str], bool]) -> bool:
    """Return whether both JSON files exist and their first labels satisfy `fits`."""
    try:
        for part in PARTS:
            with (folder / f"{part}.jsonl").open("rb") as file:
                first = [json.loads(line) for line in islice(file, 1)]
            if not first or not fits(str(first[0]["label"])):
                return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def _renamed(label: str, names: Mapping[str, str], folder: Path) -> str:
    if label not in names:
        raise InputError(f"{folder}: expected the labels {', '.join(names)}, got {label!r}.")
    return names[label]


def _yelp_row(row: Sequence[str], path: Path, line: int) -> TextRow:
    if len(row) != 2 or row[0] not in YELP:
        raise InputError(
            f"{path}, row {line}: expected 1 or 2, then a review, got {counted(len(row), 'value')} starting with {row[:1]}."
        )
    return TextRow(YELP[row[0]], row[1].replace("\\n", "\n"))
