"""Columns of tables as numbers: categories become one column each, and missing values are filled in later."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, counted, listed
from labelkin.data._dataset import ArraySplit, RawDataset, Split
from labelkin.data._readers.arrays import check_finite
from labelkin.data._readers.rows import read_rows

MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))
MOST_CATEGORIES = 100
LEAST_ROWS = 10  # fewer numbers may follow each other by accident
LOOKED_AT = 100  # rows in which the first value of a column is looked for
HINT = "name the numeric columns (--features), the column of image paths (--image) or the column of texts (--text)"
Categories = Mapping[str, Sequence[str]]


def is_missing(value: Any) -> bool:
    """Return whether a cell has no value: it is empty, or contains a marker such as `NA` or `null`."""
    return value is None or (isinstance(value, str) and value.strip().lower() in MISSING)


def is_number(value: Any) -> bool:
    """Return whether a cell is a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def find_categories(path: Path, names: Sequence[str], encoding: str | None) -> dict[str, tuple[str, ...]]:
    """Return the columns of a table that hold categories, with their distinct values in order.

    A column holds categories if its first value is not a number, and at most 100 and at most half as many distinct values as
    rows. A column of numbers with a few other values, of names or of texts does not.
    """
    columns, rows = read_rows(path, encoding=encoding)
    place = {name: columns.index(name) for name in names if name in columns}
    first: dict[str, Any] = {}
    for _, row in islice(read_rows(path, encoding=encoding).rows, LOOKED_AT):
        first |= {name: row[i] for name, i in place.items() if name not in first and not is_missing(row[i])}
        if len(first) == len(place):
            break
    words = {name: place[name] for name, value in first.items() if isinstance(value, str) and not is_number(value)}
    if not words:
        return {}
    counts: dict[str, Counter[str]] = {name: Counter() for name in words}
    total = 0
    for _, row in rows:
        total += 1
        for name, i in words.items():
            if not is_missing(row[i]) and len(counts[name]) <= MOST_CATEGORIES:
                counts[name][str(row[i]).strip()] += 1
    return {
        name: tuple(sorted(found))
        for name, found in counts.items()
        if len(found) <= min(MOST_CATEGORIES, total / 2)
        and sum(n for value, n in found.items() if is_number(value)) < found.total() / 2
    }


class Columns:
    """Turn the cells of rows into numbers.

    Args:
        names: The columns, in order.
        categories: The values of those that hold categories. Each becomes one column of 0 and 1; all are 0 for a missing or
            unknown value.
        path: The table, for messages.
    """

    def __init__(self, names: Sequence[str], categories: Categories, path: Path) -> None:
        self.names, self.path = tuple(names), path
        self.places = {name: {value: k for k, value in enumerate(values)} for name, values in categories.items()}
        self.unknown: Counter[str] = Counter()

    @property
    def features(self) -> list[str]:
        """The names of the numbers, such as `width` and `color=red`."""
        return [
            f
            for name in self.names
            for f in ([f"{name}={v}" for v in self.places[name]] if name in self.places else [name])
        ]

    def row(self, values: Sequence[Any], line: int) -> npt.NDArray[np.float32]:
        """Return the numbers of a row as float32; NaN for missing ones."""
        if not self.places:
            return row_numbers(values, self.names, self.path, line)
        parts: list[float] = []
        for name, value in zip(self.names, values, strict=True):
            if name in self.places:
                parts += self._category(name, value)
            else:
                parts.append(parse_number(value, name, self.path, line))
        with np.errstate(over="ignore"):
            return np.array(parts, dtype=np.float32)

    def _category(self, name: str, value: Any) -> list[float]:
        found = [0.0] * len(self.places[name])
        place = None if is_missing(value) else self.places[name].get(str(value).strip())
        if place is not None:
            found[place] = 1.0
        elif not is_missing(value):
            self.unknown[name] += 1
        return found

    def checked(self, values: npt.NDArray[np.float32], lines: Sequence[str]) -> npt.NDArray[np.float32]:
        """Refuse infinite numbers, and warn of unknown categories; missing numbers stay NaN."""
        check_finite(np.where(np.isnan(values), 0, values), source=str(self.path), columns=self.features, samples=lines)
        for name, count in self.unknown.items():
            warnings.warn(
                f"{self.path}: {counted(count, 'value')} of column {name!r} not seen in training; they count as missing.",
                stacklevel=2,
            )
        self.unknown.clear()
        return values

    def warn_missing(self, values: npt.NDArray[np.float32]) -> None:
        """Warn of missing numbers by column."""
        counts = np.isnan(values).sum(axis=0)
        named = [f"{self.features[j]} ({counts[j]})" for j in np.flatnonzero(counts).tolist()]
        if named:
            shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
            warnings.warn(
                f"{self.path}: {counted(int(counts.sum()), 'value')} missing in column {shown}; they are replaced by the "
                "mean of the training samples.",
                stacklevel=2,
            )


def warn_numbered(path: Path, names: Sequence[str], values: npt.NDArray[np.float32]) -> None:
    """Warn of columns that only number the rows: as features they reveal how a table is sorted, often by class."""
    if len(values) < LEAST_ROWS:
        return
    numbered = [names[j] for j in np.flatnonzero((np.diff(values, axis=0) == 1).all(0)).tolist()]
    if numbered:
        used, them = ("it is used as a feature", "it") if len(numbered) == 1 else ("they are used as features", "them")
        warnings.warn(
            f"{path}: the values of {listed(numbered)} number the rows, and {used}; name the features to leave {them} "
            "out (--features).",
            stacklevel=2,
        )


def row_numbers(values: Sequence[Any], names: Sequence[str], path: Path, line: int) -> npt.NDArray[np.float32]:
    """Return the numbers of a row as float32."""
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = [parse_number(value, name, path, line) for value, name in zip(values, names, strict=True)]
    with np.errstate(over="ignore"):  # overflow gives infinity, which check_finite refuses
        return np.array(numbers, dtype=np.float32)


def parse_number(value: Any, column: str, path: Path, line: int, *, hint: str = HINT) -> float:
    """Return the number in a cell, or NaN for a missing one."""
    if is_missing(value):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:40]}..."
        raise InputError(f"{path}, line {line}: expected a number in column {column!r}, got {shown}; {hint}.") from None


def filled(inputs: Tensor, means: Tensor) -> Tensor:
    """Return inputs (n, D) with means (D,) in place of NaN."""
    return torch.where(inputs.isnan(), means.to(inputs), inputs)


def without_missing(name: str, found: RawDataset) -> RawDataset:
    """Fill in missing values of all splits with the means of the training split."""
    parts = ("train", "test", "val", "calibration", "partial")
    splits: dict[str, Split | None] = {part: getattr(found, part) for part in parts}
    arrays = {part: split for part, split in splits.items() if isinstance(split, ArraySplit)}
    if not any(split.inputs.is_floating_point() and bool(split.inputs.isnan().any()) for split in arrays.values()):
        return found
    means = arrays["train"].inputs.nanmean(0)
    empty = torch.nonzero(means.isnan()).flatten().tolist()
    if empty:
        raise InputError(
            f"{name}: expected values in every column, got none in column {listed(empty)} of the training samples."
        )
    done: dict[str, Any] = {
        part: ArraySplit(filled(split.inputs, means), split.targets, split.coarse) for part, split in arrays.items()
    }
    return found._replace(**done)
