"""The rows of a table file, one at a time, each with the line it stands on."""

import csv
import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError, check_names, listed
from labelkin._extras import require

Row = tuple[int, Sequence[Any]]  # the line, counted from 1 as editors do, and the values in the columns' order


class Rows(NamedTuple):
    columns: tuple[str, ...]
    rows: Iterator[Row]


def read_rows(path: Path) -> Rows:
    """The columns of a .csv, .jsonl or .parquet file, and its rows, all of them as long as there are columns."""
    source = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[path.suffix.lower()](path)
    try:
        _, header = next(source)
    except StopIteration:
        raise InputError(f"{path}: the table is empty.") from None
    columns = tuple(str(name).strip() for name in header)
    check_names(f"{path}: columns", columns)
    return Rows(columns, source)


def _csv(path: Path) -> Iterator[Row]:
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
            raise InputError(f"{path}, after line {reader.line_num}: not readable as UTF-8 CSV ({error}).") from error


def _jsonl(path: Path) -> Iterator[Row]:
    columns: list[str] | None = None
    with path.open("rb") as file:
        for line, content in enumerate(file, start=1):
            if not content.strip():
                continue
            try:
                record = json.loads(content)
            except ValueError as error:
                raise InputError(f"{path}, line {line}: not JSON ({error}).") from error
            if not isinstance(record, dict):
                raise InputError(f"{path}, line {line}: expected an object with a value for each column.")
            if columns is None:
                columns = list(record)
                yield 0, columns
            if record.keys() != set(columns):
                odd = listed(sorted(record.keys() ^ set(columns)))
                raise InputError(f"{path}, line {line}: expected the columns of the first line, differs in {odd}.")
            yield line, [record[name] for name in columns]


def _parquet(path: Path) -> Iterator[Row]:
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
