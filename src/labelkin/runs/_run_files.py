"""Read and check the plain files of a run folder (JSON and metrics.csv) and lock it.

This module does not import torch, so that thousands of runs can be listed quickly.
"""

import csv
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import nan
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, check_count, is_finite
from labelkin._files import is_run_config
from labelkin._version import RUN_LAYOUT

LOCK = "lock"
MEASURES = "measures.json"  # metrics that `labelkin reproduce` adds to those in final.json


CONFIG: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "data": (str,),
    "objective": (str,),
    "options": (dict,),
    "data_options": (dict,),
    "resolved_backbone": (str,),
    "taxonomy": (str, type(None)),
    "tree": (str,),
    "settings": (dict,),
    "environment": (dict,),
}
TYPE_NAMES = {str: "text", dict: "an object", type(None): "null"}

BLOCK = 1 << 16  # bytes; most files of a run are smaller
MISSING: Any = object()  # the content of a file that does not exist


def read_json(path: str | os.PathLike[str], *, missing: Any = None) -> Any:
    """Read a JSON file. Returns `missing` if there is no such file."""
    try:
        loaded = json.loads(_content(path))
    except (FileNotFoundError, NotADirectoryError):
        return missing
    except RecursionError as error:
        raise InputError(f"{path}: the file is damaged (its values are nested too deeply).") from error
    except ValueError as error:
        raise InputError(f"{path}: the file is damaged ({error}).") from error
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror}).") from error
    return loaded


def _content(path: str | os.PathLike[str]) -> bytes:
    """Read a file in half the time that `open` takes, because thousands are read."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        content = os.read(handle, BLOCK)
        while more := os.read(handle, BLOCK):
            content += more
    finally:
        os.close(handle)
    return content


def read_config(folder: Path, *, complete: bool = False) -> dict[str, Any] | None:
    """Read a run's config.json and check its layout version. Returns None if the folder holds no run.

    Args:
        folder: The folder.
        complete: Whether to raise `InputError` if a field that every run has is missing or of another type, or if the file
            holds no object.
    """
    path = f"{folder}{os.sep}config.json"  # a string, because thousands of runs are read
    config: Any = read_json(path)
    if config is not None and not isinstance(config, dict):
        if not complete:
            return None
        raise InputError(
            f"{path}: the file is damaged (it is {config!r:.40}, expected an object); train the run again."
        )
    if not is_run_config(config):
        return None
    if config.get("version") != RUN_LAYOUT:
        raise InputError(
            f"{folder}: this run uses layout {config.get('version')}, but this labelkin reads layout {RUN_LAYOUT}; use the "
            "labelkin version that config.json names, or train the run again."
        )
    if complete:
        check_config(path, config)
    checked: dict[str, Any] = config
    return checked


def is_finished_run(folder: Path) -> bool:
    """Return whether a folder contains a finished run, without reading its files."""
    return (folder / "final.json").exists() and (folder / "config.json").exists()


def read_final(folder: Path) -> dict[str, float] | None:
    """Read the metrics on the test set, NaN where one is undefined. Returns None if the run has not finished."""
    path = f"{folder}{os.sep}final.json"
    final = read_json(path, missing=MISSING)
    return None if final is MISSING else check_numbers(path, final)


def read_seconds(folder: Path) -> float | None:
    """Read the seconds spent training, summed over resumed parts. Returns None if the run has not finished."""
    path = f"{folder}{os.sep}timing.json"
    read = read_json(path, missing=MISSING)
    if read is MISSING:
        return None
    timing = check_numbers(path, read)
    if "seconds" not in timing:
        raise InputError(f"{path}: the file is damaged (it has no 'seconds').")
    return float(timing["seconds"])


def read_history(folder: Path) -> list[dict[str, float]]:
    """Read metrics.csv: one row per epoch. Returns an empty list if there is no such file."""
    path = folder / "metrics.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{path}: the file is damaged ({error}).") from error


def read_measures(folder: Path) -> dict[str, float]:
    """Read the metrics that `labelkin reproduce` added to a run. Returns an empty dict if there are none."""
    path = folder / MEASURES
    return check_numbers(path, read_json(path)) if path.exists() else {}


class RunInUse(InputError):
    """Another process is training this run."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the run of a folder and create the folder if it is missing. Raises `RunInUse` if another process holds it."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RunInUse(
            f"{folder}: another process is training this run; wait for it, or choose another folder."
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_locked(folder: Path) -> bool:
    """Return whether a process is training the run of a folder."""
    if not os.path.exists(folder / LOCK):
        return False
    try:
        with locked(folder):
            return False
    except RunInUse:
        return True


def check_config(path: str | os.PathLike[str], config: dict[str, Any]) -> None:
    """Raise `InputError` if a config.json lacks a field that every run has, or has one of another type."""
    for name, types in CONFIG.items():
        if name not in config:
            raise InputError(f"{path}: the file is damaged (it has no {name!r}); train the run again.")
        if not isinstance(config[name], types):
            expected = " or ".join(TYPE_NAMES[kind] for kind in types)
            raise InputError(
                f"{path}: the file is damaged ({name!r} is {config[name]!r:.40}, expected {expected}); train the run again."
            )
    counts = {
        "settings: seed": config["settings"].get("seed"),
        "settings: epochs": config["settings"].get("epochs"),
        "revision": config.get("revision", 0),
        "data_options: fold": config["data_options"].get("fold") or 0,
    }
    for name, value in counts.items():
        try:
            check_count(name, value, least=0)
        except InputError as error:
            raise InputError(f"{path}: the file is damaged ({str(error).rstrip('.')}); train the run again.") from error


def check_numbers(path: str | os.PathLike[str], values: Any) -> dict[str, float]:
    """Return an object of numbers, NaN for null; raise `InputError` if it is anything else."""
    if not isinstance(values, dict):
        raise InputError(f"{path}: the file is damaged (it is {values!r:.40}, expected an object of numbers).")
    if not set(map(type, values.values())) <= {float, type(None)}:  # a quick check, because thousands of files are read
        for name, value in values.items():
            if type(value) not in (float, int, type(None)) or (type(value) is int and not is_finite(value)):
                raise InputError(f"{path}: the file is damaged ({name!r} is {value!r:.40}, expected a number).")
    return {name: nan if value is None else value for name, value in values.items()}
