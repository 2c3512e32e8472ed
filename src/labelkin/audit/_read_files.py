"""Read predictions from arrays and from .npz, .csv, .jsonl and .parquet files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_names, counted, listed, plain, plain_names
from labelkin._numpy_files import StoredArray
from labelkin.audit._columns import ColumnWriter
from labelkin.audit._doubts import check_class_columns
from labelkin.audit._names import check_order
from labelkin.audit._schema import (
    PREDICTED,
    Fields,
    Floats,
    Kind,
    Labels,
    LabelWriter,
    Raw,
    SampleNames,
    check_present,
    class_texts,
    find_kind,
    find_target,
    without_fraction,
)
from labelkin.audit._scores import Scores, Spool, block_rows
from labelkin.data import CLASS_NAME_KEYS, ROW_NAMES, check_finite, parse_number, read_rows

HINT = "correct the value, or name the columns with the scores (--columns), or those without (--ignore)"
MOST_ROWS, MOST_NUMBERS = 4096, 2**20  # of a chunk of a table


def read_arrays(arrays: Mapping[str, Any], kind: str | None, fields: Fields, source: str) -> Raw:
    """Read a mapping of arrays: true classes, scores (n, K) or predicted labels, and optionally class names."""
    keys = sorted(arrays)
    if fields.columns is not None or fields.ignored:
        raise InputError(f"columns: {source} has arrays, not columns; name the array with the scores (--scores).")
    kind_read, predicted, scores = find_kind(kind, keys, source, predicted=fields.predicted), None, None
    if kind_read == "labels":
        predicted = check_present("predicted", fields.predicted or PREDICTED, keys, source)
    else:
        scores = check_present("scores", fields.scores or kind_read, keys, source)
    target = find_target(fields.target, keys, source)
    own = next((to_numpy(arrays[key]) for key in CLASS_NAME_KEYS if key in arrays), None)
    names = None if own is None else class_texts(own.reshape(-1).tolist(), source=source)
    if scores is not None and (columns := _column_names(arrays[scores], source)) is not None:
        check_order(names or columns, columns)
        names = names or columns
    count = len(np.atleast_1d(to_numpy(arrays[target])))
    sample_names = SampleNames("sample", range(count))
    return Raw(
        kind=kind_read,
        target=_labels(arrays[target], target, source, sample_names),
        scores=None if scores is None else score_array(arrays[scores], scores, source, count),
        predicted=None if predicted is None else _labels(arrays[predicted], predicted, source, sample_names),
        names=names,
        sample_names=sample_names,
    )


def _column_names(table: Any, source: str) -> tuple[str, ...] | None:
    """Return the names of the columns of a table such as those of pandas; None if it numbers them."""
    names = plain_names(getattr(table, "columns", None))
    if not isinstance(names, list) or names == list(range(len(names))):
        return None
    return tuple(class_texts(names, source=source))


def _labels(values: Any, name: str, source: str, sample_names: Sequence[str]) -> Labels:
    given = to_numpy(values)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1 or given.dtype.kind not in "biufUSO":
        raise InputError(
            f"{name}: expected one class name or whole number per sample in {source}, got {given.dtype} of shape {given.shape}."
        )
    if not len(given):
        raise InputError(f"{name}: {source} has no samples.")
    if len(given) != len(sample_names):
        raise InputError(
            f"{name}: expected {counted(len(sample_names), 'label')} in {source}, one per target, got {len(given)}."
        )
    found = LabelWriter(f"{source}: {name}")
    for start in range(0, len(given), MOST_ROWS):
        place = slice(start, start + MOST_ROWS)
        found.add((_cell(value) for value in given[place].tolist()), sample_names[place])
    return found.labels()


def _cell(value: Any) -> Any:
    """Return a value of an array of objects, such as a column of pandas, or None for one that is no label."""
    return plain(value) if isinstance(value, (str, bytes, Number, np.generic)) else None


def score_array(values: Any, name: str, source: str, count: int | None = None) -> Scores:
    """Return an array of scores (n, K), checked; `count` is the number of targets, if there are any."""
    given = values if isinstance(values, StoredArray) else to_numpy(values)
    if len(given.shape) != 2 or given.dtype.kind not in "iuf" or given.shape[1] < 2:
        raise InputError(
            f"{name}: expected numbers of shape (n, K) with at least two classes in {source}, got {given.dtype} of shape "
            f"{given.shape}."
        )
    if count is not None and given.shape[0] != count:
        raise InputError(f"{name}: expected {counted(count, 'row')} in {source}, one per target, got {given.shape[0]}.")
    if isinstance(given, StoredArray):
        start, rows = 0, block_rows(given.shape[1])
        for block in given.blocks(rows):
            own = SampleNames("sample", range(start, start + len(block)))
            check_finite(block, source=f"{source}: {name}", samples=own)
            start += len(block)
        return Scores.stored(given)
    check_finite(given, source=f"{source}: {name}")
    return Scores.of(torch.from_numpy(given.astype(np.float64)))


def to_numpy(values: Any) -> npt.NDArray[Any]:
    if isinstance(values, StoredArray):
        return np.concatenate(list(values.blocks(block_rows(values.shape[1]))))
    return values.detach().cpu().double().numpy() if isinstance(values, Tensor) else np.asarray(values)


def read_table(path: Path, kind: str | None, fields: Fields) -> Raw:
    """Read a table; scores are in one column of lists named after their kind, or in one column per class."""
    columns, rows = read_rows(path)
    kind_read = find_kind(kind, columns, str(path), predicted=fields.predicted)
    target = columns.index(find_target(fields.target, columns, str(path)))
    if kind_read == "labels":
        predicted = columns.index(check_present("predicted", fields.predicted or PREDICTED, columns, str(path)))
        return _labels_of_table(path, rows, target, predicted)
    found = score_columns(columns, kind_read, columns[target], fields, path)
    lines, labels, spool = ColumnWriter(np.int64), LabelWriter(f"{path}: target"), Spool()
    for chunk in table_chunks(path, rows, found, [target]):
        lines.add(chunk.lines)
        labels.add((row[0] for row in chunk.kept), chunk.sample_names)
        spool.add(chunk.scores)
    true = without_fraction(labels.labels(), found.names)
    if fields.columns is None and found.names is not None:
        check_class_columns(found.names, spool.sample(), kind_read, labels=set(true.distinct), source=str(path))
    return Raw(kind_read, true, spool.scores(), None, found.names, SampleNames("line", lines.column()))


def _labels_of_table(path: Path, rows: Iterator[tuple[int, Sequence[Any]]], target: int, predicted: int) -> Raw:
    """Read the true and the predicted labels of a table; `target` and `predicted` are the positions of their columns."""
    lines, true, guessed = ColumnWriter(np.int64), LabelWriter(f"{path}: target"), LabelWriter(f"{path}: predicted")
    while True:
        own, cells, guesses = list[int](), list[Any](), list[Any]()
        for line, row in islice(rows, MOST_ROWS):
            own.append(line)
            cells.append(row[target])
            guesses.append(row[predicted])
        if not own:
            break
        lines.add(own)
        true.add(cells, SampleNames("line", own))
        guessed.add(guesses, SampleNames("line", own))
    sample_names = SampleNames("line", lines.column())
    if not len(sample_names):
        raise InputError(f"{path}: the table has a header but no rows.")
    return Raw("labels", true.labels(), None, guessed.labels(), None, sample_names)


class Chunk(NamedTuple):
    """Some rows of a table.

    Attributes:
        scores: (n, K) logits or probabilities.
        kept: The other values of each row, unchanged.
        lines: The line of each row, or its position.
        sample_names: A name of each row for error messages.
    """

    scores: Floats
    kept: list[list[Any]]
    lines: Sequence[int]
    sample_names: Sequence[str]


def table_chunks(
    path: Path, rows: Iterator[tuple[int, Sequence[Any]]], found: "ScoreColumns", others: Sequence[int]
) -> Iterator[Chunk]:
    """Yield the scores of a table and the values in the columns `others`, some rows at a time; at least one chunk."""
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: the table has a header but no rows.")
    width = len(found.scores(*first))
    size = max(1, min(MOST_ROWS, MOST_NUMBERS // max(1, width)))
    rows = chain([first], rows)
    while part := list(islice(rows, size)):
        lines = [line for line, _ in part]
        names = SampleNames("line", lines)
        scores = _part_scores(path, part, found, names)
        if scores.shape[1] != width:
            raise InputError(
                f"{path}, {names[0]}: expected {counted(width, 'score')}, as in the first row, got {scores.shape[1]}."
            )
        check_finite(scores, source=str(path), columns=found.names, samples=names)
        yield Chunk(scores, [[row[at] for at in others] for _, row in part], lines, names)


def _part_scores(
    path: Path, part: Sequence[tuple[int, Sequence[Any]]], found: "ScoreColumns", names: Sequence[str]
) -> Floats:
    """Return the scores of some rows: all at once, or row by row if that fails, to find the value that is not a number."""
    if found.names is not None:
        try:
            return np.array([[row[at] for at in found.positions] for _, row in part], dtype=np.float64)
        except (TypeError, ValueError):
            pass
    return _stacked([found.scores(line, row) for line, row in part], names, path)


class ScoreColumns(NamedTuple):
    """The columns of a table that hold the scores.

    Attributes:
        positions: Their positions.
        names: The class of each; None for a column of lists.
        scores: Returns the scores (K,) from a line number and the values of its row.
    """

    positions: list[int]
    names: tuple[str, ...] | None
    scores: Callable[[int, Sequence[Any]], Floats]


def score_columns(columns: Sequence[str], kind: Kind, target: str | None, fields: Fields, path: Path) -> ScoreColumns:
    """Return the columns with the scores, without the column `target`."""
    lists = _list_column(kind, columns, fields, path)
    if lists is not None:
        at = columns.index(lists)
        return ScoreColumns([at], None, lambda line, row: _listed_numbers(row[at], lists, path, line))
    wanted, names = _class_columns(columns, target, fields, path)
    positions = [columns.index(name) for name in wanted]
    return ScoreColumns(positions, names, lambda line, row: _numbers([row[i] for i in positions], wanted, path, line))


def _list_column(kind: Kind, columns: Sequence[str], fields: Fields, path: Path) -> str | None:
    """Return the name of the column of lists with the scores; None if there is one column per class."""
    if fields.scores is not None:
        return check_present("scores", fields.scores, columns, str(path))
    return kind if fields.columns is None and kind in columns else None


def _class_columns(
    columns: Sequence[str], target: str | None, fields: Fields, path: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns with the scores, and the class of each."""
    chosen, others = fields.columns, (target, *ROW_NAMES, *fields.ignored)
    for name in fields.ignored if fields.has_ignored else ():
        check_present("ignore", name, columns, str(path))
    if isinstance(chosen, str):
        start = chosen.removesuffix("*")
        wanted = tuple(name for name in columns if name.startswith(start) and name not in others)
        names = tuple(name.removeprefix(start) for name in wanted)
        if start == chosen or len(wanted) < 2:
            raise InputError(
                f"columns: expected names, or a prefix and * such as 'p_*' that matches at least two columns, got {chosen!r}; "
                f"{path} has the columns {listed(list(columns))}."
            )
        check_names("columns", names)
        return wanted, names
    others = (*others, fields.predicted or PREDICTED)
    wanted = tuple(name for name in columns if name not in others) if chosen is None else tuple(chosen)
    for name in wanted:
        check_present("columns", name, columns, str(path))
    if len(wanted) < 2:
        besides = "" if target is None else f" besides {target!r}"
        raise InputError(
            f"columns: expected one column of scores per class, and at least two, in {path}, got {listed(wanted) or 'none'}"
            f"{besides}; if the file holds predicted labels, pass --kind labels."
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
            f"{path}, line {line}: expected a list of numbers in column {column!r}, one per class, got {value!r:.40}; only "
            ".jsonl and .parquet files can hold lists, a .csv file has one column per class (--columns)."
        )
    return _numbers(value, [column] * len(value), path, line)


def _stacked(rows: Sequence[Floats], lines: Sequence[str], path: Path) -> Floats:
    width = len(rows[0])
    odd = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if odd is not None:
        raise InputError(
            f"{path}, {lines[odd]}: expected {counted(width, 'score')}, as in {lines[0]}, got {len(rows[odd])}."
        )
    return np.stack(rows)
