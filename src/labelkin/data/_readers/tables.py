"""Read tables (.csv, .jsonl, .parquet) with one label column; the others contain numbers or an image path."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from labelkin._checks import InputError, check_names, listed, near
from labelkin._extras import require
from labelkin.data._dataset import ArraySplit, FileSplit, RawDataset, Split, class_names, positions
from labelkin.data._partial import BELOW, label_path, with_paths
from labelkin.data._readers.arrays import check_finite
from labelkin.data._readers.folders import SPLIT_NAMES
from labelkin.data._readers.images import SUFFIXES, OnError, choose_form

Row = tuple[int, Sequence[Any]]  # line number, from 1 as in editors, and one value per column


class Rows(NamedTuple):
    """The columns of a table, and an iterator over its rows."""

    columns: tuple[str, ...]
    rows: Iterator[Row]


def read_rows(path: Path) -> Rows:
    """Open a .csv, .jsonl or .parquet file. Returns its columns and its rows, one value per column."""
    source = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[path.suffix.lower()](path)
    try:
        _, header = next(source)
    except StopIteration:
        raise InputError(f"{path}: the table is empty.") from None
    columns = tuple(str(name).strip() for name in header)
    check_names(f"{path}: columns", columns)
    return Rows(columns, source)


def _csv(path: Path) -> Iterator[Row]:
    """Yield the header and the rows of a .csv file."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        width = None
        try:
            for row in reader:
                width = len(row) if width is None else width
                if row and len(row) != width:
                    raise InputError(
                        f"{path}, line {reader.line_num}: expected {width} values as in the header, got {len(row)}."
                    )
                if row:
                    yield reader.line_num, row
        except (csv.Error, UnicodeDecodeError) as error:
            line = reader.line_num + 1 if isinstance(error, csv.Error) else _first_undecodable(path)
            raise InputError(f"{path}, line {line}: not readable as UTF-8 CSV ({error}); save it as UTF-8.") from error


def _first_undecodable(path: Path) -> int:
    """Return the number of the first line that is not UTF-8; the position in a decoding error counts from a buffer's start."""
    with path.open("rb") as file:
        for line, content in enumerate(file, start=1):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError:
                return line
    return 1


def _jsonl(path: Path) -> Iterator[Row]:
    """Yield the columns of the first object as a header, and one row per object."""
    columns: list[str] | None = None
    with path.open("rb") as file:
        for line, content in enumerate(file, start=1):
            if not content.strip():
                continue
            try:
                record = json.loads(content)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {line}: not JSON ({error}).") from error
            if not isinstance(record, dict):
                raise InputError(f"{path}, line {line}: expected a JSON object with one value per column.")
            if columns is None:
                columns = list(record)
                yield 0, columns
            if record.keys() != set(columns):
                odd = listed(sorted(record.keys() ^ set(columns)))
                raise InputError(
                    f"{path}, line {line}: expected the same keys as in the first line; the difference is {odd}."
                )
            yield line, [record[name] for name in columns]


def _parquet(path: Path) -> Iterator[Row]:
    """Yield the columns and the rows of a .parquet file."""
    parquet = require("pyarrow.parquet", extra="parquet", use="reading .parquet files")
    pyarrow = require("pyarrow", extra="parquet", use="reading .parquet files")
    try:
        with parquet.ParquetFile(path) as file:
            yield 0, list(file.schema_arrow.names)
            lines = count(1)
            for batch in file.iter_batches():
                columns = [column.to_pylist() for column in batch.columns]
                for row in zip(*columns, strict=True):
                    yield next(lines), row
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable parquet file ({error}).") from error


LABEL, SPLIT = "label", "split"
HINT = "name the numeric columns (--features), the column of image paths (--image) or the column of texts (--text)"


class Roles(NamedTuple):
    """The columns of the labels, coarse to fine, of the image paths and of the numeric features."""

    labels: tuple[str, ...]
    image: str | None
    features: tuple[str, ...]


class Table(NamedTuple):
    """The samples of one file: either `images` or `features` (n, D), and `parts` if there is a split column."""

    labels: list[str]
    images: list[Path]
    features: npt.NDArray[np.float32]
    parts: list[str]


def read_tables(
    paths: Mapping[str, Path],
    *,
    label: str | Sequence[str] | None = None,
    image: str | None = None,
    features: Sequence[str] | None = None,
    image_size: int | None = None,
    on_error: OnError = "stop",
) -> RawDataset:
    """Read one table per split, or `{"train": path}` only, which may have a column "split".

    Args:
        paths: Split -> file.
        label: Column of the labels ("label" by default), or several, coarse to fine, that define the taxonomy. Where the finest
            are empty, only a node above the class is known.
        image: Column of the image paths, relative to the table's folder (default: the first column with names of image files).
        features: Numeric columns (default: all others, if there is no column of images).
        image_size: Height and width that images are converted to.
        on_error: What to do with images that cannot be read: "stop" or "skip".
    """
    roles = column_roles(paths["train"], label, image, features)
    tables = {part: _table(path, roles) for part, path in paths.items()}
    if on_error == "stop":
        for part, table in tables.items():
            _check_images(table, paths[part])
    if tables["train"].parts and len(tables) == 1:
        tables = _divided(tables["train"], paths["train"])
    classes = class_names(labels_in({part: t.labels for part, t in tables.items()}, several=is_several(label)))
    form = None
    if tables["train"].images:
        form = choose_form(tables["train"].images, image_size=image_size)
    splits: dict[str, Split] = {}
    for part, table in tables.items():
        targets = positions(table.labels, classes, source=str(paths.get(part, paths["train"])))
        if form is None:
            splits[part] = ArraySplit(torch.from_numpy(table.features), targets)
        else:
            files = tuple(table.images)
            splits[part] = FileSplit(paths=files, targets=targets, form=form, on_error=on_error)
    found = RawDataset(classes, splits["train"], splits.get("test"), splits.get("val"))
    return with_paths(found, [tuple(name.split(BELOW)) for name in classes]) if is_several(label) else found


def label_columns(label: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the label columns that an option names."""
    names = (LABEL,) if label is None else (label,) if isinstance(label, str) else tuple(label)
    check_names("label", names)
    return names


def is_several(label: str | Sequence[str] | None) -> bool:
    """Return whether an option names several label columns."""
    return len(label_columns(label)) > 1


def labels_in(labels: Mapping[str, Sequence[str]], *, several: bool) -> list[str]:
    """Return the labels of the training rows, and the inner nodes among those of other rows if there are several columns."""
    trained = list(labels["train"])
    if not several:
        return trained
    above = {BELOW.join(path[:d]) for path in map(_path, trained) for d in range(1, len(path))}
    return trained + [name for part, own in labels.items() if part != "train" for name in own if name in above]


def _path(label: str) -> list[str]:
    return label.split(BELOW)


def _table(path: Path, roles: Roles) -> Table:
    """Read one file."""
    columns, rows = read_rows(path)
    _check_columns(path, columns, roles)
    place = {name: i for i, name in enumerate(columns)}
    wanted = [place[name] for name in roles.features]
    divided = SPLIT in place and SPLIT not in (*roles.labels, *roles.features)
    lines: list[str] = []
    table = Table([], [], np.empty((0, len(wanted)), dtype=np.float32), [])
    numbers: list[npt.NDArray[np.float32]] = []
    for line, row in rows:
        lines.append(f"line {line}")
        table.labels.append(row_labels([row[place[name]] for name in roles.labels], roles.labels, path, line))
        if divided:
            table.parts.append(row_part(row[place[SPLIT]], path, line))
        if roles.image is not None:
            table.images.append(path.parent / str(row[place[roles.image]]))
        else:
            numbers.append(row_numbers([row[i] for i in wanted], roles.features, path, line))
    if not lines:
        raise InputError(f"{path}: the table has columns but no rows.")
    if roles.image is not None:
        return table
    values = np.stack(numbers)
    check_finite(values, source=str(path), columns=roles.features, samples=lines)
    return table._replace(features=values)


def column_roles(
    path: Path, label: str | Sequence[str] | None, image: str | None, features: Sequence[str] | None
) -> Roles:
    """Return the roles of the columns of the training table; the other tables use the same."""
    columns, rows = read_rows(path)
    labels = label_columns(label)
    if image is None and features is None:
        _, first = next(rows, (0, [""] * len(columns)))
        named = [
            name for name, value in zip(columns, first, strict=True) if Path(str(value)).suffix.lower() in SUFFIXES
        ]
        image = next((name for name in named if name not in labels), None)
    if image is not None:
        return Roles(labels, image, ())
    rest = tuple(name for name in columns if name not in (*labels, SPLIT)) if features is None else tuple(features)
    if not rest:
        raise InputError(f"{path}: expected at least one input column besides the label {listed(labels)}.")
    return Roles(labels, None, rest)


def missing_column(argument: str, name: str, columns: Sequence[str], path: Path) -> InputError:
    """Return the error for a table without a column: its columns, similar names, and the option that names another."""
    known = listed(list(columns))
    if len(columns) == 1 and (separator := next((mark for mark in ";\t|" if mark in columns[0]), None)) is not None:
        return InputError(
            f"{argument}: {path} has the single column {known}, perhaps because {separator!r} separates its values; expected "
            "commas, so save it with commas."
        )
    return InputError(
        f"{argument}: {path} has no column {name!r}, only {known}; name another with --{argument} "
        f"({argument}= in Python).{near(name, columns)}"
    )


def _check_columns(path: Path, columns: Sequence[str], roles: Roles) -> None:
    wanted = {"label": roles.labels, "image": (roles.image,) if roles.image else (), "features": roles.features}
    for argument, names in wanted.items():
        for name in names:
            if name not in columns:
                raise missing_column(argument, name, columns, path)


def _divided(table: Table, path: Path) -> dict[str, Table]:
    """Split a table by its split column."""
    divided = {}
    for part in sorted(set(table.parts)):
        mine = [i for i, own in enumerate(table.parts) if own == part]
        images = [table.images[i] for i in mine] if table.images else []
        values = table.features[mine] if len(table.features) else table.features
        divided[part] = Table([table.labels[i] for i in mine], images, values, [])
    if "train" not in divided:
        raise InputError(f"{path}: expected rows with 'train' in the column {SPLIT!r}, got none.")
    return divided


def row_label(value: Any, column: str, path: Path, line: int) -> str:
    """Return the label in a cell."""
    text = "" if value is None else str(value).strip()
    if not text:
        raise InputError(f"{path}, line {line}: expected a label in column {column!r}, got an empty cell.")
    return text


def row_labels(values: Sequence[Any], columns: Sequence[str], path: Path, line: int) -> str:
    """Return the label in one cell, or the path in several."""
    if len(columns) == 1:
        return row_label(values[0], columns[0], path, line)
    return label_path(values, columns, f"{path}, line {line}")


def row_part(value: Any, path: Path, line: int) -> str:
    """Return the split in a cell."""
    try:
        return SPLIT_NAMES[str(value).strip().lower()]
    except KeyError:
        raise InputError(
            f"{path}, line {line}: expected 'train', 'val' or 'test' in the split column, got {value!r}."
        ) from None


def _check_images(table: Table, path: Path) -> None:
    missing = [str(file) for file in table.images if not file.is_file()]
    if missing:
        raise InputError(f"{path}: lists {len(missing)} image(s) that do not exist: {listed(missing)}.")


def row_numbers(values: Sequence[Any], names: Sequence[str], path: Path, line: int) -> npt.NDArray[np.float32]:
    """Return the numbers of a row as float32."""
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = [parse_number(value, name, path, line) for value, name in zip(values, names, strict=True)]
    with np.errstate(over="ignore"):  # overflow gives infinity, which check_finite refuses
        return np.array(numbers, dtype=np.float32)


def parse_number(value: Any, column: str, path: Path, line: int, *, hint: str = HINT) -> float:
    """Return the number in a cell, or NaN for an empty cell (`check_finite` reports them together)."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:40]}..."
        raise InputError(f"{path}, line {line}: expected a number in column {column!r}, got {shown}; {hint}.") from None
