"""The runs of a folder, read without torch, so that thousands are listed at once."""

import csv
import json
import os
from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError, listed
from labelkin._files import is_run_config, remove_run
from labelkin._version import RUN_LAYOUT
from labelkin.experiments.lock import is_locked
from labelkin.experiments.renames import current_options


class Record(NamedTuple):
    """What a run's folder says of it."""

    id: str
    path: Path
    label: str  # a plan's own name for it, else its objective with the options it was given
    config: dict[str, Any]
    final: dict[str, float] | None  # NaN where undefined; None where the run has not ended
    seconds: float | None

    @property
    def objective(self) -> str:
        return str(self.config["objective"])

    @property
    def data(self) -> str:
        return str(self.config["data"])

    @property
    def backbone(self) -> str:
        return str(self.config["resolved_backbone"])

    @property
    def seed(self) -> int:
        return int(self.settings["seed"])

    @property
    def options(self) -> dict[str, Any]:
        return current_options(self.config["objective"], self.config["options"])

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.config["settings"])

    @property
    def finished(self) -> bool:
        return self.final is not None

    def history(self) -> list[dict[str, float]]:
        """A row an epoch."""
        try:
            with (self.path / "metrics.csv").open(newline="", encoding="utf-8") as file:
                return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError) as error:
            raise InputError(f"{self.path / 'metrics.csv'}: damaged ({error}).") from error


class Store:
    """A folder of run folders, each named `OBJECTIVE-seedSEED-ID`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.problems: list[str] = []  # of folders that could not be read, after `records`

    def records(self) -> list[Record]:
        """All runs that can be read, by folder name; what is wrong with the others is in `problems`."""
        if not self.path.is_dir():
            raise InputError(f"{self.path}: there is no such folder of runs.")
        found, self.problems = [], []
        for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
            if entry.is_dir():
                try:
                    if (record := read_record(Path(entry.path))) is not None:
                        found.append(record)
                except InputError as error:
                    self.problems.append(str(error))
        return found

    def find(self, wanted: str) -> Record:
        """The one run whose id begins so, or whose folder has that name."""
        records = self.records()
        matches = [r for r in records if r.id.startswith(wanted) or r.path.name == wanted]
        if not matches:
            raise InputError(f"{self.path}: has no run {wanted!r}; its ids: {listed([r.id for r in records])}.")
        if len(matches) > 1:
            names = listed([record.path.name for record in matches])
            raise InputError(f"{self.path}: {len(matches)} runs match {wanted!r}: {names}; say more of the id.")
        return matches[0]

    def remove(self, record: Record) -> list[str]:
        """Delete the files of a run, and its folder if it contains nothing else; refuse a run that is being trained.

        Returns:
            The files in the folder that labelkin did not write, which are kept.
        """
        if is_locked(record.path):
            raise InputError(f"{record.path}: is being trained; stop that first.")
        return remove_run(record.path)


def read_record(path: Path) -> Record | None:
    """The run of a folder; None where the folder holds none."""
    config = _read(path / "config.json")
    if not is_run_config(config):
        return None
    if config.get("version") != RUN_LAYOUT:
        raise InputError(
            f"{path}: written in layout {config.get('version')}, this labelkin reads {RUN_LAYOUT}; use the labelkin version "
            "that config.json names, or train anew."
        )
    final, timing = _read(path / "final.json"), _read(path / "timing.json")
    known = None if final is None else {name: nan if value is None else value for name, value in final.items()}
    return Record(
        id=config["id"],
        path=path,
        label=described(config["objective"], current_options(config["objective"], config["options"])),
        config=config,
        final=known,
        seconds=None if timing is None else timing["seconds"],
    )


def described(objective: str, options: Mapping[str, Any]) -> str:
    """`"label-embedding tau=3"`."""
    return " ".join([objective, *(f"{name}={value}" for name, value in options.items())])


def _read(path: Path) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            loaded: dict[str, Any] = json.loads(file.read())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(f"{path}: damaged ({error}).") from error
    return loaded
