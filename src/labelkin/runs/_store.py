"""Read the runs of a folder. Needs no torch, so that thousands of runs can be listed quickly."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError, listed
from labelkin._files import remove_run
from labelkin.runs._compatibility import current_options
from labelkin.runs._folder import is_locked
from labelkin.runs._run_files import read_config, read_final, read_history, read_seconds


class Record(NamedTuple):
    """One run, as its folder describes it."""

    id: str
    path: Path
    label: str  # the plan's name for it, else its objective with the options given
    config: dict[str, Any]
    final: dict[str, float] | None  # metrics, NaN where undefined; None if the run has not finished
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
        """The options of the objective under their current names."""
        return current_options(self.objective, self.config["options"])

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.config["settings"])

    @property
    def finished(self) -> bool:
        return self.final is not None

    def history(self) -> list[dict[str, float]]:
        """Read the metrics of each epoch."""
        return read_history(self.path)


class Store:
    """A folder of run folders, each named `OBJECTIVE-seedSEED-ID`.

    Args:
        path: The folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.problems: list[str] = []  # with folders that could not be read; filled by `records`

    def records(self) -> list[Record]:
        """List all readable runs, sorted by folder name. `problems` says what is wrong with the others."""
        if not self.path.is_dir():
            raise InputError(f"{self.path}: there is no such folder.")
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
        """Return the run whose id starts with `wanted`, or whose folder has that name."""
        records = self.records()
        matches = [r for r in records if r.id.startswith(wanted) or r.path.name == wanted]
        if not matches:
            raise InputError(f"{self.path}: has no run {wanted!r}; its ids: {listed([r.id for r in records])}.")
        if len(matches) > 1:
            names = listed([record.path.name for record in matches])
            raise InputError(f"{self.path}: {len(matches)} runs match {wanted!r}: {names}; give more digits of the id.")
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
    """Read the run of a folder. Returns None if the folder holds no run."""
    config = read_config(path)
    if config is None:
        return None
    return Record(
        id=config["id"],
        path=path,
        label=label_for(config["objective"], current_options(config["objective"], config["options"])),
        config=config,
        final=read_final(path),
        seconds=read_seconds(path),
    )


def label_for(objective: str, options: Mapping[str, Any]) -> str:
    """Return a label such as `"label-embedding tau=3"`."""
    return " ".join([objective, *(f"{name}={value}" for name, value in options.items())])
