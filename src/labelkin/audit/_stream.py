"""Read scores from a file in chunks, so that tables of any length need constant memory."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelkin._checks import InputError
from labelkin.audit._doubts import check_class_columns
from labelkin.audit._predictions import check_file, load_named_arrays
from labelkin.audit._read_files import ScoreColumns, score_array, score_columns, stacked, to_numpy
from labelkin.audit._schema import Fields, Floats, Kind, check_present, find_kind, find_target
from labelkin.data import CLASS_NAME_KEYS, TARGET_KEYS, check_finite, read_rows

MOST_ROWS, MOST_NUMBERS = 4096, 2**20  # of a chunk


class Chunk(NamedTuple):
    """Some rows of the file.

    Attributes:
        scores: (n, K) logits or probabilities.
        kept: The other values of each row, as text.
        sample_names: A name of each row for error messages.
    """

    scores: Floats
    kept: list[list[Any]]
    sample_names: list[str]


class Stream(NamedTuple):
    """A file of scores that is read once, from start to end.

    Attributes:
        kind: "logits" or "probs".
        names: The class names, if the file has them.
        kept: The names of the other columns.
        chunks: The rows; at least one chunk.
    """

    kind: Kind
    names: tuple[str, ...] | None
    kept: tuple[str, ...]
    chunks: Iterator[Chunk]


def open_stream(source: str | Path, kind: str | None, fields: Fields) -> Stream:
    """Open a file of scores; a column or array of true classes is not needed, and is kept if the file has one."""
    path = check_file(source)
    return _arrays(path, kind, fields) if path.suffix.lower() == ".npz" else _table(path, kind, fields)


def _table(path: Path, kind: str | None, fields: Fields) -> Stream:
    columns, rows = read_rows(path)
    kind_read = _scores_kind(kind, columns, path)
    found = score_columns(columns, kind_read, _target(columns, fields, path), fields, path)
    others = [at for at in range(len(columns)) if at not in set(found.positions)]
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: the table has a header but no rows.")
    width = len(found.scores(*first))
    chunks: Iterator[Chunk] = _table_chunks(path, chain([first], rows), found, others, width)
    if fields.columns is None and found.names is not None:
        start = next(chunks)
        check_class_columns(found.names, start.scores, kind_read, labels=(), source=str(path))
        chunks = chain([start], chunks)
    return Stream(kind_read, found.names, tuple(columns[at] for at in others), chunks)


def _table_chunks(
    path: Path, rows: Iterator[tuple[int, Sequence[Any]]], found: ScoreColumns, others: Sequence[int], width: int
) -> Iterator[Chunk]:
    size = _chunk_rows(width)
    while part := list(islice(rows, size)):
        lines = [f"line {line}" for line, _ in part]
        scores = _numbers(path, part, found, lines)
        if scores.shape[1] != width:
            raise InputError(
                f"{path}, {lines[0]}: expected {width} scores, as in the first row, got {scores.shape[1]}."
            )
        check_finite(scores, source=str(path), columns=found.names, samples=lines)
        yield Chunk(scores, [[row[at] for at in others] for _, row in part], lines)


def _numbers(
    path: Path, part: Sequence[tuple[int, Sequence[Any]]], found: ScoreColumns, lines: Sequence[str]
) -> Floats:
    """Return the scores of some rows: all at once, or row by row if that fails, to find the value that is no number."""
    if found.names is not None:
        try:
            return np.array([[row[at] for at in found.positions] for _, row in part], dtype=np.float64)
        except (TypeError, ValueError):
            pass
    return stacked([found.scores(line, row) for line, row in part], lines, path)


def _arrays(path: Path, kind: str | None, fields: Fields) -> Stream:
    arrays = load_named_arrays(path)
    keys = sorted(arrays)
    if fields.columns is not None:
        raise InputError(f"columns: {path} has arrays, not columns; name the array with the scores (--scores).")
    kind_read = _scores_kind(kind, keys, path)
    name = check_present("scores", fields.scores or kind_read, keys, str(path))
    scores = score_array(arrays[name], name, str(path))
    if not len(scores):
        raise InputError(f"{name}: {path} has no samples.")
    names = next((to_numpy(arrays[key]) for key in CLASS_NAME_KEYS if key in arrays), None)
    kept = [
        key for key in keys if key not in (name, *CLASS_NAME_KEYS) and to_numpy(arrays[key]).shape == (len(scores),)
    ]
    values = [to_numpy(arrays[key]).tolist() for key in kept]
    size = _chunk_rows(scores.shape[1])
    chunks = (
        Chunk(
            scores[start : start + size],
            [list(row) for row in zip(*(column[start : start + size] for column in values), strict=True)]
            or [[] for _ in scores[start : start + size]],
            [f"sample {i}" for i in range(start, min(start + size, len(scores)))],
        )
        for start in range(0, len(scores), size)
    )
    texts = None if names is None else tuple(str(text) for text in names.reshape(-1).tolist())
    return Stream(kind_read, texts, tuple(kept), chunks)


def _scores_kind(kind: str | None, names: Sequence[str], path: Path) -> Kind:
    found = find_kind(kind, names, str(path))
    if found == "labels":
        raise InputError(f"kind: {path} holds predicted labels; decisions need logits or probabilities (--kind).")
    return found


def _target(columns: Sequence[str], fields: Fields, path: Path) -> str | None:
    """Return the column of true classes, which is no score; None if there is none."""
    if fields.target is not None:
        return fields.target if fields.target in columns else None
    return find_target(None, columns, str(path)) if any(name in columns for name in TARGET_KEYS) else None


def _chunk_rows(width: int) -> int:
    return max(1, min(MOST_ROWS, MOST_NUMBERS // max(1, width)))
