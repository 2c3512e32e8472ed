"""Tables of texts, and splits whose samples are texts until they are encoded."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import torch
from torch import Tensor

from labelkin._checks import InputError, listed, near
from labelkin.data._dataset import ArraySplit, RawDataset, Split, class_names, positions
from labelkin.data._encoders import DEFAULT, encoder
from labelkin.data._encoders.hashed import Encoder
from labelkin.data._readers.tables import LABEL, SPLIT, read_rows, row_label, row_part


@dataclass(frozen=True, eq=False)
class TextSplit(ArraySplit):
    """An `ArraySplit` that keeps its `texts`; `inputs` are (n, 0) until an `encoder` has filled them."""

    texts: tuple[str, ...] = ()
    encoder: Encoder | None = None

    @classmethod
    def of(cls, texts: Sequence[str], targets: Tensor) -> Self:
        return cls(torch.empty(len(texts), 0), targets, texts=tuple(texts))

    def take(self, index: Tensor) -> Self:
        return replace(super().take(index), texts=tuple(self.texts[i] for i in index.tolist()))

    def encoded_by(self, by: Encoder) -> Self:
        return replace(self, inputs=by.encode(self.texts), encoder=by)

    def statistics(self) -> tuple[Tensor, Tensor]:
        """No shift and one scale for all features: the angles between texts are what an encoder means."""
        width = self.inputs.shape[1]
        lengths = torch.linalg.vector_norm(self.inputs, dim=1).double()  # (n,)
        return torch.zeros(width), torch.full((width,), float(lengths.square().mean().div(width).sqrt()) or 1.0)


def encoded(title: str, found: RawDataset, name: str | None) -> RawDataset:
    """The set with vectors for its texts; what the encoder has to learn it learns from the training split alone."""
    assert isinstance(found.train, TextSplit)
    fitted = encoder(name or DEFAULT).fitted(found.train.texts)

    def filled(part: str, split: Split | None) -> ArraySplit | None:
        if not isinstance(split, TextSplit):
            return None
        done = split.encoded_by(fitted)
        _check_known(title, part, done.inputs, fitted.name)
        return done

    train = filled("train", found.train)
    assert train is not None
    return found._replace(train=train, test=filled("test", found.test), val=filled("val", found.val))


def _check_known(title: str, part: str, vectors: Tensor, name: str) -> None:
    unknown = without_words(vectors)
    if unknown and unknown == len(vectors):
        raise InputError(f"{title}: none of the {unknown:,} {part} texts has a word that {name} knows; are they texts?")
    warn_unknown(f"{title}: {unknown:,} of {len(vectors):,} {part} texts", unknown, name)


def without_words(vectors: Tensor) -> int:
    """How many texts have no word that their encoder knows."""
    return int((vectors == 0).all(1).sum())


def warn_unknown(which: str, unknown: int, name: str) -> None:
    if unknown:
        warnings.warn(f"{which} have no word that {name} knows; their features are all zero.", stacklevel=2)


TEXT = "text"


class TextRow(NamedTuple):
    label: str
    text: str
    part: str | None = None  # where a split column gives it


def read_text_tables(paths: Mapping[str, Path], *, text: str | None = None, label: str | None = None) -> RawDataset:
    """One file for each part, or `{"train": path}` alone, which a column called split may divide.

    The columns are `text` and `label` unless others are named; all further columns are left alone. An empty text is
    refused with its line: a class can't be learned from nothing.
    """
    tables = {part: read_texts(path, text=text, label=label) for part, path in paths.items()}
    if len(tables) == 1 and any(row.part is not None for row in tables["train"]):
        tables = _divided(tables["train"], paths["train"])
    return text_set(tables, source=str(paths["train"]))


def text_set(tables: Mapping[str, list[TextRow]], *, source: str, classes: tuple[str, ...] | None = None) -> RawDataset:
    """Rows of each part to splits; the classes are those of the training rows unless they are given."""
    names = classes or class_names([row.label for row in tables["train"]])
    splits = {
        part: TextSplit.of([row.text for row in rows], positions([row.label for row in rows], names, source=source))
        for part, rows in tables.items()
    }
    return RawDataset(names, splits["train"], splits.get("test"), splits.get("val"))


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
