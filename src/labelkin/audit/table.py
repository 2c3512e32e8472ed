"""Predictions in .csv, .jsonl and .parquet: a row a sample."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelkin._checks import InputError, check_names, listed
from labelkin.audit.labels import label_texts
from labelkin.audit.raw import PREDICTED, Fields, Floats, Kind, Raw, find_kind, find_target, named
from labelkin.data.arrays import check_finite
from labelkin.data.rows import read_rows
from labelkin.data.tables import number

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
        return np.array([number(value, name, path, line, hint=HINT) for value, name in zip(values, names, strict=True)])


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
