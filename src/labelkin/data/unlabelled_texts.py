"""Texts without labels, for a model that was trained on texts."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError
from labelkin.data.input_files import files_at
from labelkin.data.paths import TABLES
from labelkin.data.rows import read_rows
from labelkin.data.text_tables import check_utf8, column_place, decoded

PLAIN = (".txt",)


class Texts(NamedTuple):
    """Some texts; each has the file it is from, and its row there, from 0, where a file is a table."""

    files: list[str]
    rows: list[int | None]
    texts: list[str]


def text_files(path: Path) -> list[Path]:
    return files_at(path, single=PLAIN, kind="text file", others=TABLES)


def read_unlabelled_texts(files: Sequence[Path], column: str, *, at_once: int) -> Iterator[Texts]:
    """A `.txt` file is one text; a table has one in each row of `column`. An empty text is refused."""
    found = ((file, row, text) for file in files for row, text in _texts(file, column))
    while part := list(islice(found, at_once)):
        yield Texts([str(file) for file, _, _ in part], [row for _, row, _ in part], [text for *_, text in part])


def _texts(file: Path, column: str) -> Iterator[tuple[int | None, str]]:
    if file.suffix.lower() in PLAIN:
        text = decoded(file.read_bytes(), file)
        if not text.strip():
            raise InputError(f"{file}: the file holds no text; remove it.")
        yield None, text
        return
    check_utf8(file)
    columns, rows = read_rows(file)
    place = column_place("text", column, columns, file)
    texts = ((line, "" if row[place] is None else str(row[place])) for line, row in rows)
    for number, (line, text) in enumerate(texts):
        if not text.strip():
            alike = 1 + sum(not other.strip() for _, other in texts)
            raise InputError(
                f"{file}, line {line} (row {number}): no text in column {column!r} ({alike} row(s) like it); remove them."
            )
        yield number, text
