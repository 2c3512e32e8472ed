"""Files with one number per class: weights of the loss, and shares of the classes."""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number, counted, listed, near, reads_as_number
from labelkin._files import separator_of
from labelkin.data import with_point

SUFFIXES = (".csv", ".json")


def shares_for(source: Any, classes: Sequence[str]) -> Tensor:
    """Read the shares or counts of classes, and return them as a (K,) tensor in the order of these classes.

    Args:
        source: A .csv file with a name and a number in each line, with or without a heading; a .json object; a mapping
            `{class: share}`; or K numbers in the order of the classes. Names must be those of all classes.
        classes: The names of the classes.
    """
    if isinstance(source, Mapping):
        return _in_order(
            "shares", "share", {str(name): value for name, value in source.items()}, classes, "the mapping"
        )
    if not isinstance(source, (str, os.PathLike)):
        try:
            return torch.as_tensor(source).double()
        except (TypeError, ValueError, RuntimeError):
            raise InputError(
                f"shares: expected a file, a mapping {{class: share}} or {counted(len(classes), 'number')}, got {source!r:.60}."
            ) from None
    path = Path(source).expanduser()
    if not path.is_file():
        raise InputError(f"shares: there is no file {str(path)!r}.")
    return numbers_by_class("shares", "share", path, classes)


def numbers_by_class(argument: str, number: str, path: Path, classes: Sequence[str]) -> Tensor:
    """Read a file with one number per class, and return (K,) numbers of at least 0 in the order of the classes.

    Args:
        argument: The argument that error messages name.
        number: What a number is, such as "weight".
        path: A .json object, or a .csv file with a name and a number in each line, with or without a heading.
        classes: The names of the classes.
    """
    readers = dict(zip(SUFFIXES, (_read_csv, _read_json), strict=True))
    if path.suffix.lower() not in readers:
        raise InputError(f"{argument}: expected a .csv or .json file, got {str(path)!r}.{near(path.suffix, SUFFIXES)}")
    try:
        by_name = readers[path.suffix.lower()](path.read_text(encoding="utf-8-sig"), number)
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InputError(f"{argument}: {path} is not a file of {number}s by class name ({error}).") from error
    return _in_order(argument, number, by_name, classes, str(path))


def _read_json(text: str, number: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, Mapping):
        raise ValueError(f"expected an object with a {number} for each class, such as {{'cat': 1, 'dog': 2.5}}")
    return dict(found)


def _read_csv(text: str, number: str) -> dict[str, Any]:
    rows = text.splitlines()
    mark = separator_of(rows[0]) if rows else ","
    lines = [[cell.strip() for cell in line] for line in csv.reader(rows, delimiter=mark) if line]
    if any(len(line) != 2 for line in lines):
        raise ValueError(f"expected a class and a {number} in each line")
    if mark == ";":
        lines = [[name, with_point(value)] for name, value in lines]
    if lines and not reads_as_number(lines[0][1]):
        lines = lines[1:]  # a heading
    if len({name for name, _ in lines}) < len(lines):
        raise ValueError("a class occurs twice")
    return {name: float(value) for name, value in lines}


def _in_order(argument: str, number: str, by_name: Mapping[str, Any], classes: Sequence[str], source: str) -> Tensor:
    missing = [name for name in classes if name not in by_name]
    if missing:
        raise InputError(f"{argument}: {source} has no {number} of {listed(missing)}; add one for every class.")
    unknown = [name for name in by_name if name not in set(classes)]
    if unknown:
        raise InputError(
            f"{argument}: {source} has a {number} of {listed(unknown)}, which is not a class of the data."
            f"{near(unknown[0], classes)}"
        )
    for name in classes:
        check_number(f"{argument}: the {number} of {name!r} in {source}", by_name[name], low=0)
    found = torch.tensor([float(by_name[name]) for name in classes], dtype=torch.float64)
    if not found.any():
        raise InputError(f"{argument}: expected at least one {number} above 0 in {source}, got only zeros.")
    return found
