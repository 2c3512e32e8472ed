"""The rows of tables: .csv and .tsv in any common separator and encoding, .jsonl and .parquet."""

import codecs
import csv
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError, check_names, counted, listed, one_line
from labelkin._extras import require
from labelkin._files import separator_of

Row = tuple[int, Sequence[Any]]  # line number, from 1 as in editors, and one value per column
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
UTF8, WINDOWS = "utf-8-sig", "cp1252"
# Columns of row names, which are no features or scores: pandas and R write them into .csv files, before the other columns and
# without a name, and pandas into .parquet files.
ROW_NAMES = ("", "__index_level_0__")


class Rows(NamedTuple):
    """The columns of a table, and an iterator over its rows."""

    columns: tuple[str, ...]
    rows: Iterator[Row]


def read_rows(path: Path, *, encoding: str | None = None) -> Rows:
    """Open a .csv, .tsv, .jsonl or .parquet file.

    Args:
        path: The file.
        encoding: The encoding of a .csv or .tsv file. By default it is UTF-8, UTF-16 if the file has its byte order mark, or
            else Windows-1252, with a warning.

    Returns:
        The columns, and the rows with one value per column. The first column may have no name; see `ROW_NAMES`.
    """
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        source = _separated(path, encoding)
    else:
        source = {".jsonl": _jsonl, ".parquet": _parquet}[suffix](path)
    try:
        _, header = next(source)
    except StopIteration:
        raise InputError(f"{path}: the table is empty.") from None
    columns = tuple(str(name).strip() for name in header)
    check_names(f"{path}: columns", columns[1:] if columns[:1] == ("",) else columns, least=0)
    return Rows(columns, source)


def encoding_of(path: Path) -> str:
    """Return the encoding of a text file: UTF-8, UTF-16 by its first bytes, or Windows-1252, with a warning.

    A file that is UTF-8 except for some bytes is damaged, and refused.
    """
    about = path.stat()
    return _detected(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=64)  # a file is opened several times, and the warning is needed once
def _detected(path: Path, size: int, modified: int) -> str:
    """Return the encoding of a file; the cache key includes its modification time."""
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
        file.seek(0)
        wrong, is_utf8 = None, False
        for number, content in enumerate(file, start=1):
            try:
                content.decode("utf-8")
            except UnicodeDecodeError as error:
                wrong = wrong or (number, content[error.start])
            else:
                is_utf8 = is_utf8 or not content.isascii()
    if wrong is None:
        return UTF8
    line, byte = wrong
    if is_utf8:
        raise InputError(
            f"{path}, line {line}: not readable as UTF-8 (byte 0x{byte:02x}), as other lines are; repair the line, save the "
            "file as UTF-8, or name its encoding (--encoding of train and compare)."
        )
    warnings.warn(
        f"{path} is not UTF-8 (line {line}); it is read as Windows-1252. If that is wrong, save it as "
        "UTF-8, or name its encoding (--encoding of train and compare).",
        stacklevel=2,
    )
    return WINDOWS


def known_encoding(name: str) -> str:
    """Return the name of an encoding, or raise if Python does not know it."""
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        raise InputError(
            f"encoding: expected the name of an encoding, such as utf-8 or latin-1, got {name!r}."
        ) from None
    return UTF8 if found == "utf-8" else found


def _separated(path: Path, encoding: str | None) -> Iterator[Row]:
    """Yield the header and the rows of a .csv or .tsv file."""
    used = encoding_of(path) if encoding is None else known_encoding(encoding)
    try:
        with path.open(newline="", encoding=used) as file:
            mark = "\t" if path.suffix.lower() == ".tsv" else separator_of(file.readline())
            file.seek(0)
            yield from _rows(path, csv.reader(file, delimiter=mark), decimal_comma=mark == ";")
    except UnicodeError as error:
        raise InputError(
            f"{path}: not readable as {used.removesuffix('-sig')} ({error}); save it as UTF-8, or name its encoding "
            "(--encoding of train and compare)."
        ) from error


def _rows(path: Path, reader: Any, *, decimal_comma: bool) -> Iterator[Row]:
    width = None
    try:
        for row in reader:
            width = len(row) if width is None else width
            if row and len(row) != width:
                raise InputError(
                    f"{path}, line {reader.line_num}: expected {counted(width, 'value')} as in the header, got {len(row)}."
                )
            if row:
                yield reader.line_num, [with_point(cell) for cell in row] if decimal_comma else row
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num + 1}: not readable as CSV ({error}).") from error


def with_point(cell: str) -> str:
    """Write a number with a decimal comma, which tables with semicolons have, with a point."""
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell


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
                    f"{path}, line {line}: expected the same keys as in the first line; only one of the two has {odd}."
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
        raise InputError(f"{path}: not a readable parquet file ({one_line(error)}).") from error
