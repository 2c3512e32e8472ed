"""Read scores from a file in chunks, so that tables of any length need constant memory."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError
from labelkin._numpy_files import StoredArray
from labelkin.audit._doubts import check_class_columns
from labelkin.audit._predictions import check_file, load_named_arrays
from labelkin.audit._read_files import Chunk, score_array, score_columns, table_chunks, to_numpy
from labelkin.audit._schema import Fields, Kind, SampleNames, check_present, class_texts, find_kind, find_target
from labelkin.data import CLASS_NAME_KEYS, TARGET_KEYS, read_rows


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
    chunks = table_chunks(path, rows, found, others)
    if fields.columns is None and found.names is not None:
        start = next(chunks)
        check_class_columns(found.names, start.scores, kind_read, labels=(), source=str(path))
        chunks = chain([start], chunks)
    return Stream(kind_read, found.names, tuple(columns[at] for at in others), chunks)


def _arrays(path: Path, kind: str | None, fields: Fields) -> Stream:
    arrays = load_named_arrays(path)
    keys = sorted(arrays)
    if fields.columns is not None or fields.ignored:
        raise InputError(f"columns: {path} has arrays, not columns; name the array with the scores (--scores).")
    kind_read = _scores_kind(kind, keys, path)
    name = check_present("scores", fields.scores or kind_read, keys, str(path))
    scores = score_array(arrays[name], name, str(path))
    if not len(scores):
        raise InputError(f"{name}: {path} has no samples.")
    names = next((to_numpy(arrays[key]) for key in CLASS_NAME_KEYS if key in arrays), None)
    others = {
        key: to_numpy(arrays[key]) for key in keys if key not in (name, *CLASS_NAME_KEYS) and _is_small(arrays[key])
    }
    values = {key: column.tolist() for key, column in others.items() if column.shape == (len(scores),)}
    chunks = (
        Chunk(
            block.numpy(),
            [list(row) for row in zip(*(column[place] for column in values.values()), strict=True)]
            or [[] for _ in block],
            range(place.start, place.stop),
            SampleNames("sample", range(place.start, place.stop)),
        )
        for place, block in scores.blocks()
    )
    texts = None if names is None else class_texts(names.reshape(-1).tolist(), source=str(path))
    return Stream(kind_read, texts, tuple(values), chunks)


def _is_small(values: object) -> bool:
    """Return whether an array is in memory; a table that stays in its file is not a column."""
    return not isinstance(values, StoredArray)


def _scores_kind(kind: str | None, names: Sequence[str], path: Path) -> Kind:
    found = find_kind(kind, names, str(path))
    if found == "labels":
        raise InputError(f"kind: {path} holds predicted labels; decisions need logits or probabilities (--kind).")
    return found


def _target(columns: Sequence[str], fields: Fields, path: Path) -> str | None:
    """Return the column of true classes, which does not hold scores; None if there is none."""
    if fields.target is not None:
        return fields.target if fields.target in columns else None
    return find_target(None, columns, str(path)) if any(name in columns for name in TARGET_KEYS) else None
