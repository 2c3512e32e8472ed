"""Tables of texts (.csv, .jsonl, .parquet): a column of texts and one of labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError, listed, near
from labelkin.data.read import Read, class_names, positions
from labelkin.data.rows import read_rows
from labelkin.data.tables import LABEL, SPLIT, row_label, row_part
from labelkin.data.text_split import TextSplit

TEXT = "text"


class TextRow(NamedTuple):
    label: str
    text: str
    part: str | None = None  # where a split column gives it


def read_text_tables(paths: Mapping[str, Path], *, text: str | None = None, label: str | None = None) -> Read:
    """One file for each part, or `{"train": path}` alone, which a column called split may divide.

    The columns are `text` and `label` unless others are named; all further columns are left alone. An empty text is
    refused with its line: a class can't be learned from nothing.
    """
    tables = {part: read_texts(path, text=text, label=label) for part, path in paths.items()}
    if len(tables) == 1 and any(row.part is not None for row in tables["train"]):
        tables = _divided(tables["train"], paths["train"])
    return text_set(tables, source=str(paths["train"]))


def text_set(tables: Mapping[str, list[TextRow]], *, source: str, classes: tuple[str, ...] | None = None) -> Read:
    """Rows of each part to splits; the classes are those of the training rows unless they are given."""
    names = classes or class_names([row.label for row in tables["train"]])
    splits = {
        part: TextSplit.of([row.text for row in rows], positions([row.label for row in rows], names, source=source))
        for part, rows in tables.items()
    }
    return Read(names, splits["train"], splits.get("test"), splits.get("val"))


def read_texts(path: Path, *, text: str | None = None, label: str | None = None) -> list[TextRow]:
    """The rows of one table, none of them empty."""
    check_utf8(path)
    columns, rows = read_rows(path)
    places = {"text": text or TEXT, "label": label or LABEL}
    at_text, at_label = (column_place(argument, name, columns, path) for argument, name in places.items())
    at_part = columns.index(SPLIT) if SPLIT in columns and SPLIT not in places.values() else None
    found, empty = [], []
    for line, row in rows:
        content = "" if row[at_text] is None else str(row[at_text])
        if not content.strip():
            empty.append(line)
        part = None if at_part is None else row_part(row[at_part], path, line)
        found.append(TextRow(row_label(row[at_label], places["label"], path, line), content, part))
    if empty:
        raise InputError(
            f"{path}, line {empty[0]}: no text in column {places['text']!r} ({len(empty)} row(s) like it); remove them."
        )
    if not found:
        raise InputError(f"{path}: the table has columns but no rows.")
    return found


def column_place(argument: str, name: str, columns: tuple[str, ...], path: Path) -> int:
    if name not in columns:
        raise InputError(f"{argument}: {path} has no column {name!r}, only {listed(columns)}.{near(name, columns)}")
    return columns.index(name)


def check_utf8(path: Path) -> None:
    """Refuse text that is not UTF-8, by the byte where it stops being that."""
    if path.suffix.lower() != ".parquet":
        decoded(path.read_bytes(), path)


def decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 at byte {error.start} (0x{content[error.start]:02x}); save the file as UTF-8."
        ) from None


def _divided(rows: list[TextRow], path: Path) -> dict[str, list[TextRow]]:
    divided: dict[str, list[TextRow]] = {}
    for row in rows:
        divided.setdefault(str(row.part), []).append(row)
    if "train" not in divided:
        raise InputError(f"{path}: the column {SPLIT!r} never says 'train'.")
    return divided
