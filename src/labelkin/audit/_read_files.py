"""Read predictions from arrays and from .npz, .csv, .jsonl and .parquet files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from labelkin._checks import InputError, check_names, listed
from labelkin.audit._schema import PREDICTED, Fields, Floats, Kind, Raw, find_kind, find_target, label_texts, named
from labelkin.data import CLASS_NAME_KEYS, check_finite, parse_number, read_rows


def read_arrays(arrays: Mapping[str, Any], kind: str | None, fields: Fields, source: str) -> Raw:
    """The true class of each sample, logits or probs (n, K) or predicted classes, and names in `classes` if they are there."""
    keys = sorted(arrays)
    if fields.columns is not None:
        raise InputError(f"columns: {source} holds arrays; name the one with the scores (--scores).")
    found = find_kind(kind, keys, source)
    given = named("predicted", fields.predicted or PREDICTED, keys, source) if found == "labels" else None
    scores = None if given else named("scores", fields.scores or found, keys, source)
    target = find_target(fields.target, keys, source)
    names = next((_plain(arrays[key]) for key in CLASS_NAME_KEYS if key in arrays), None)
    count = len(np.atleast_1d(_plain(arrays[target])))
    places = [f"sample {i}" for i in range(count)]
    return Raw(
        kind=found,
        target=_labels(arrays[target], target, source, places),
        scores=None if scores is None else _scores(arrays[scores], scores, source, count),
        predicted=None if given is None else _labels(arrays[given], given, source, places),
        names=None if names is None else tuple(str(name) for name in names.reshape(-1).tolist()),
        places=places,
    )


def _labels(values: Any, name: str, source: str, places: list[str]) -> list[str]:
    array = _plain(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "iufUS":
        raise InputError(
            f"{name}: expected one class a sample in {source}, by name or as a whole number, got {array.dtype} of shape "
            f"{array.shape}."
        )
    if not len(array):
        raise InputError(f"{name}: {source} has no samples.")
    if len(array) != len(places):
        raise InputError(f"{name}: expected {len(places)} in {source}, as many as there are targets, got {len(array)}.")
    return label_texts(array.tolist(), what=f"{source}: {name}", places=places)


def _scores(values: Any, name: str, source: str, count: int) -> Floats:
    array = _plain(values)
    if array.ndim != 2 or array.dtype.kind not in "iuf" or array.shape[1] < 2:
        raise InputError(
            f"{name}: expected numbers of shape (n, K) in {source}, a column for each of two classes or more, got "
            f"{array.dtype} of shape {array.shape}."
        )
    if len(array) != count:
        raise InputError(f"{name}: expected {count} rows in {source}, one for each target, got {len(array)}.")
    check_finite(array, source=f"{source}: {name}")
    return array.astype(np.float64)


def _plain(values: Any) -> npt.NDArray[Any]:
    return values.detach().cpu().double().numpy() if isinstance(values, Tensor) else np.asarray(values)


HINT = "name the columns that hold the classes' scores (--columns)"


def read_table(path: Path, kind: str | None, fields: Fields) -> Raw:
    """Scores lie in a column of lists called as their kind, or in a column for each class."""
    columns, rows = read_rows(path)
    found = find_kind(kind, columns, str(path))
    target = columns.index(find_target(fields.target, columns, str(path)))
    if found == "labels":
        predicted = columns.index(named("predicted", fields.predicted or PREDICTED, columns, str(path)))
        lines, cells = _cells(path, ((line, (row[target], row[predicted])) for line, row in rows))
        return Raw(
            found,
            label_texts((cell[0] for cell in cells), what=f"{path}: target", places=lines),
            None,
            label_texts((cell[1] for cell in cells), what=f"{path}: predicted", places=lines),
            None,
            lines,
        )
    lists = _list_column(found, columns, fields, path)
    if lists is not None:
        place = columns.index(lists)
        pairs = ((line, (row[target], _listed_numbers(row[place], lists, path, line))) for line, row in rows)
        names = None
    else:
        wanted, names = _class_columns(columns, columns[target], fields, path)
        places = [columns.index(name) for name in wanted]
        pairs = ((line, (row[target], _numbers([row[i] for i in places], wanted, path, line))) for line, row in rows)
    lines, cells = _cells(path, pairs)
    scores = _stacked([cell[1] for cell in cells], lines, path)
    check_finite(scores, source=str(path), columns=names, samples=lines)
    labels = label_texts((cell[0] for cell in cells), what=f"{path}: target", places=lines)
    return Raw(found, labels, scores, None, names, lines)


def _cells(path: Path, pairs: Any) -> tuple[list[str], list[tuple[Any, Any]]]:
    lines, cells = [], []
    for line, pair in pairs:
        lines.append(f"line {line}")
        cells.append(pair)
    if not cells:
        raise InputError(f"{path}: the table has columns but no rows.")
    return lines, cells


def _list_column(kind: Kind, columns: Sequence[str], fields: Fields, path: Path) -> str | None:
    if fields.scores is not None:
        return named("scores", fields.scores, columns, str(path))
    return kind if fields.columns is None and kind in columns else None


def _class_columns(
    columns: Sequence[str], target: str, fields: Fields, path: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of scores, and the classes they are for."""
    chosen = fields.columns
    if isinstance(chosen, str):
        start = chosen.removesuffix("*")
        wanted = tuple(name for name in columns if name.startswith(start) and name != target)
        names = tuple(name.removeprefix(start) for name in wanted)
        if start == chosen or len(wanted) < 2:
            raise InputError(
                f"columns: expected names, or a beginning and * that two columns or more have, as 'p_*', got {chosen!r} and "
                f"in {path} the columns {listed(list(columns))}."
            )
        check_names("columns", names)
        return wanted, names
    aside = (target, fields.predicted or PREDICTED)
    wanted = tuple(name for name in columns if name not in aside) if chosen is None else tuple(chosen)
    for name in wanted:
        named("columns", name, columns, str(path))
    if len(wanted) < 2:
        raise InputError(
            f"columns: expected a column for each of two classes or more in {path}, got {listed(wanted) or 'none'} "
            f"beside {target!r}; for predicted labels say so (--kind labels)."
        )
    return wanted, wanted


def _numbers(values: Sequence[Any], names: Sequence[str], path: Path, line: int) -> Floats:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(
            [parse_number(value, name, path, line, hint=HINT) for value, name in zip(values, names, strict=True)]
        )


def _listed_numbers(value: Any, column: str, path: Path, line: int) -> Floats:
    if not isinstance(value, (list, tuple)) or any(isinstance(part, (list, tuple, dict)) for part in value):
        raise InputError(
            f"{path}, line {line}: expected a list of numbers in column {column!r}, one a class, got {value!r:.40}; lists "
            "are read from .jsonl and .parquet, other tables have a column for each class (--columns)."
        )
    return _numbers(value, [column] * len(value), path, line)


def _stacked(rows: Sequence[Floats], lines: Sequence[str], path: Path) -> Floats:
    width = len(rows[0])
    odd = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if odd is not None:
        raise InputError(f"{path}, {lines[odd]}: expected {width} scores, as in {lines[0]}, got {len(rows[odd])}.")
    return np.stack(rows)
