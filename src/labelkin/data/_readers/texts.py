"""Read tables of texts, and splits of texts that an encoder turns into vectors."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import torch
from torch import Tensor

from labelkin._checks import InputError, counted
from labelkin.data._dataset import ArraySplit, RawDataset, Split, class_names, positions
from labelkin.data._encoders import DEFAULT, encoder
from labelkin.data._encoders.hashed import Encoder
from labelkin.data._partial import BELOW, with_paths
from labelkin.data._readers.rows import read_rows
from labelkin.data._readers.tables import (
    SPLIT,
    is_several,
    label_columns,
    labels_in,
    missing_column,
    row_labels,
    row_part,
)


@dataclass(frozen=True, eq=False)
class TextSplit(ArraySplit):
    """Texts with their vectors in memory; `inputs` has shape (n, 0) until an encoder fills it.

    Args:
        inputs: (n, D) vectors of the texts.
        targets: (n,) classes as `int64`.
        coarse: (n,) a second label per sample, if there is one.
        texts: The texts.
        encoder: The encoder that computed `inputs`.

    Example:
        >>> import torch
        >>> from labelkin.data import TextSplit
        >>> split = TextSplit.of(["a good film", "a bad film"], torch.tensor([1, 0]))
        >>> split.shape
        (0,)
        >>> from labelkin.data._encoders import encoder
        >>> split.encoded_by(encoder("hashed-tfidf:8").fitted(split.texts)).shape[0] <= 8
        True
    """

    texts: tuple[str, ...] = ()
    encoder: Encoder | None = None

    @classmethod
    def of(cls, texts: Sequence[str], targets: Tensor) -> Self:
        """Return texts without vectors."""
        return cls(torch.empty(len(texts), 0), targets, texts=tuple(texts))

    def take(self, index: Tensor) -> Self:
        """Return the samples at the given positions."""
        return replace(super().take(index), texts=tuple(self.texts[i] for i in index.tolist()))

    def encoded_by(self, by: Encoder) -> Self:
        """Return the same texts with vectors from an encoder."""
        return replace(self, inputs=by.encode(self.texts), encoder=by)

    def statistics(self) -> tuple[Tensor, Tensor]:
        """Return a mean of 0 and the same deviation for all features, which keeps the angles between the vectors.

        Token ids are not scaled.
        """
        width = self.inputs.shape[1]
        if self.encoder is not None and self.encoder.gives_ids:
            return torch.zeros(width), torch.ones(width)
        lengths = torch.linalg.vector_norm(self.inputs, dim=1).double()  # (n,)
        return torch.zeros(width), torch.full((width,), float(lengths.square().mean().div(width).sqrt()) or 1.0)


def encoded(title: str, found: RawDataset, name: str | None) -> RawDataset:
    """Fit an encoder to the training texts, and encode all splits."""
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
    return found._replace(
        train=train,
        test=filled("test", found.test),
        val=filled("val", found.val),
        calibration=filled("calibration", found.calibration),
        partial=filled("partial", found.partial),
    )


def _check_known(title: str, part: str, vectors: Tensor, name: str) -> None:
    """Refuse a split if the encoder knows none of its words; warn if it knows none in some texts."""
    unknown = without_words(vectors)
    if unknown and unknown == len(vectors):
        raise InputError(
            f"{title}: {name} knows no word in any of the {unknown:,} {part} texts; check that the column contains texts."
        )
    warn_unknown(f"{title}: {unknown:,} of {len(vectors):,} {part} texts", unknown, name)


def without_words(vectors: Tensor) -> int:
    """Return the number of texts without any word that the encoder knows."""
    return int((vectors == 0).all(1).sum())


def warn_unknown(which: str, unknown: int, name: str) -> None:
    """Warn about texts without any word that the encoder knows."""
    if unknown:
        warnings.warn(f"{which} have no word that {name} knows; their features are all zero.", stacklevel=2)


TEXT = "text"


class TextRow(NamedTuple):
    """One row of a table of texts."""

    label: str
    text: str
    part: str | None = None  # from the split column, if there is one


def read_text_tables(
    paths: Mapping[str, Path],
    *,
    text: str | None = None,
    label: str | Sequence[str] | None = None,
    encoding: str | None = None,
) -> RawDataset:
    """Read one table per split, or `{"train": path}` only, which may have a column "split".

    Args:
        paths: Split -> file.
        text: Column of the texts ("text" by default). An empty text is refused.
        label: Column of the labels ("label" by default), or several, coarse to fine. All further columns are ignored.
        encoding: The encoding of .csv and .tsv files, which is UTF-8 by default.
    """
    tables = {part: read_texts(path, text=text, label=label, encoding=encoding) for part, path in paths.items()}
    if len(tables) == 1 and any(row.part is not None for row in tables["train"]):
        tables = _divided(tables["train"], paths["train"])
    found = text_set(tables, source=str(paths["train"]), several=is_several(label))
    return found if not is_several(label) else with_paths(found, [tuple(name.split(BELOW)) for name in found.classes])


def text_set(
    tables: Mapping[str, list[TextRow]],
    *,
    source: str,
    classes: tuple[str, ...] | None = None,
    several: bool = False,
) -> RawDataset:
    """Build splits from the rows of each split; the classes are the labels of the training rows unless they are given."""
    labels = {part: [row.label for row in rows] for part, rows in tables.items()}
    names = classes or class_names(labels_in(labels, several=several))
    splits = {
        part: TextSplit.of([row.text for row in rows], positions([row.label for row in rows], names, source=source))
        for part, rows in tables.items()
    }
    return RawDataset(names, splits["train"], splits.get("test"), splits.get("val"))


def read_texts(
    path: Path,
    *,
    text: str | None = None,
    label: str | Sequence[str] | None = None,
    encoding: str | None = None,
) -> list[TextRow]:
    """Return the rows of one table; empty texts are refused."""
    if encoding is None:
        check_utf8(path)
    columns, rows = read_rows(path, encoding=encoding)
    at_text, names = column_place("text", text or TEXT, columns, path), label_columns(label)
    at_labels = [column_place("label", name, columns, path) for name in names]
    at_part = columns.index(SPLIT) if SPLIT in columns and SPLIT not in (text, *names) else None
    found, empty = [], []
    for line, row in rows:
        content = "" if row[at_text] is None else str(row[at_text])
        if not content.strip():
            empty.append(line)
        part = None if at_part is None else row_part(row[at_part], path, line)
        found.append(TextRow(row_labels([row[i] for i in at_labels], names, path, line), content, part))
    if empty:
        raise InputError(
            f"{path}, line {empty[0]}: expected a text in column {text or TEXT!r}, got an empty cell "
            f"({counted(len(empty), 'empty row')} in all); remove them."
        )
    if not found:
        raise InputError(f"{path}: the table has columns but no rows.")
    return found


def column_place(argument: str, name: str, columns: tuple[str, ...], path: Path) -> int:
    """Return the position of a column, or raise if there is none of that name."""
    if name not in columns:
        raise missing_column(argument, name, columns, path)
    return columns.index(name)


def check_utf8(path: Path) -> None:
    """Refuse a text file that is not UTF-8; the error names the first wrong byte."""
    if path.suffix.lower() != ".parquet":
        decoded(path.read_bytes(), path)


def decoded(content: bytes, path: Path) -> str:
    """Decode UTF-8."""
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 at byte {error.start} (0x{content[error.start]:02x}); save the file as UTF-8."
        ) from None


def _divided(rows: list[TextRow], path: Path) -> dict[str, list[TextRow]]:
    """Group rows by their split column."""
    divided: dict[str, list[TextRow]] = {}
    for row in rows:
        divided.setdefault(str(row.part), []).append(row)
    if "train" not in divided:
        raise InputError(f"{path}: expected rows with 'train' in the column {SPLIT!r}, got none.")
    return divided
