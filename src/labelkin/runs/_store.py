"""Read the runs of a folder. Needs no torch, so that thousands of runs can be listed quickly."""

import gc
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labelkin._checks import InputError, counted, listed
from labelkin._files import remove_run
from labelkin.runs._compatibility import complete_settings, current_options
from labelkin.runs._run_files import is_locked, read_config, read_final, read_history, read_measures, read_seconds

if TYPE_CHECKING:
    from labelkin.runs._decisions import Decisions, Outcomes


class Record(NamedTuple):
    """One run, as its folder describes it.

    Args:
        id: The id of the run.
        path: The folder.
        label: The objective with the options given, or the plan's name for it.
        config: The content of config.json.
        final: The metrics on the test set, NaN where undefined. None if the run has not finished.
        seconds: The time spent training. None if the run has not finished.

    Example:
        >>> import labelkin, tempfile
        >>> store = tempfile.mkdtemp()
        >>> run = labelkin.train("digits", out=f"{store}/run", epochs=1)
        >>> record = labelkin.runs.Store(store).records()[0]
        >>> record.label, record.seed, record.finished, len(record.history())
        ('one-hot', 0, True, 1)
    """

    id: str
    path: Path
    label: str
    config: dict[str, Any]
    final: dict[str, float] | None
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
        return int(self.config["settings"]["seed"])

    @property
    def options(self) -> dict[str, Any]:
        """The options of the objective under their current names."""
        return current_options(self.objective, self.config["options"])

    @property
    def settings(self) -> dict[str, Any]:
        """The training settings, with the values of those that were added after the run."""
        return complete_settings(self.config["settings"])

    @property
    def finished(self) -> bool:
        return self.final is not None

    def history(self) -> list[dict[str, float]]:
        """Read the metrics of each epoch."""
        return read_history(self.path)

    def decisions(self) -> "Decisions | None":
        """Read the decision on each test sample; None for an unfinished run, and for one that stored none."""
        from labelkin.runs._decisions import read_decisions  # numpy, which listing runs does not need

        return read_decisions(self.path)

    def outcomes(self) -> "Outcomes | None":
        """Read the outcome of the decision on each test sample; None if the run stored no decisions."""
        from labelkin.runs._decisions import outcomes_of  # numpy, which listing runs does not need

        decisions = self.decisions()
        return None if decisions is None else outcomes_of(decisions)


class Store:
    """A folder of run folders, each named `OBJECTIVE-seedSEED-ID`.

    Args:
        path: The folder.

    Example:
        >>> import labelkin, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> run = labelkin.train("digits", out=f"{folder}/run", epochs=1)
        >>> store = labelkin.runs.Store(folder)
        >>> [record.objective for record in store.records()]
        ['one-hot']
        >>> store.find("run").data
        'digits'
        >>> store.remove(store.find("run"))
        []
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.problems: list[str] = []  # one message per folder that could not be read; filled by `records` and `each`

    def records(self) -> list[Record]:
        """List all readable runs, sorted by folder name. `problems` has the error of each of the others."""
        with _without_collection():
            return list(self.each())

    def each(self) -> Iterator[Record]:
        """Yield the runs of `records` one by one, which needs less memory."""
        if not self.path.is_dir():
            raise InputError(f"{self.path}: there is no such folder.")
        self.problems = []
        for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
            if entry.is_dir():
                try:
                    record = read_record(Path(entry.path))
                except InputError as error:
                    self.problems.append(str(error))
                    continue
                if record is not None:
                    yield record

    def readable(self) -> list[Record]:
        """List the runs as `records` does, without those whose decisions, learning curves or added metrics are damaged."""
        found = []
        for record in self.records():
            try:
                record.decisions()
                record.history()
                read_measures(record.path)
            except InputError as error:
                self.problems.append(str(error))
            else:
                found.append(record)
        return found

    def find(self, wanted: str) -> Record:
        """Return the run whose id starts with `wanted`, or whose folder is called `wanted`."""
        records = self.records()
        matches = [r for r in records if r.id.startswith(wanted) or r.path.name == wanted]
        if not matches:
            known = f"the ids are {listed([record.id for record in records])}" if records else "it contains no runs"
            raise InputError(f"{self.path}: there is no run {wanted!r} in this folder; {known}.")
        if len(matches) > 1:
            names = listed([record.path.name for record in matches])
            raise InputError(
                f"{self.path}: {counted(len(matches), 'run')} match {wanted!r}: {names}; give more digits of the id."
            )
        return matches[0]

    def remove(self, record: Record) -> list[str]:
        """Delete the files of a run, and its folder if it contains nothing else; refuse a run that is being trained.

        Returns:
            The files in the folder that labelkin did not write, which are kept.
        """
        if is_locked(record.path):
            raise InputError(f"{record.path}: this run is being trained; stop the training first.")
        return remove_run(record.path)


def readable_or_noted(store: str | os.PathLike[str]) -> list[Record]:
    """List the readable runs of a store; a warning names each of the others, which are left out."""
    opened = Store(store)
    records = opened.readable()
    for problem in opened.problems:
        warnings.warn(f"{problem.rstrip('.')}. The run is left out.", stacklevel=3)
    return records


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause Python's garbage collector while thousands of files are read, which all stay in use; saves a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_record(path: Path) -> Record | None:
    """Read the run of a folder. Returns None if the folder holds no run."""
    config = read_config(path, complete=True)
    if config is None:
        return None
    return Record(
        id=config["id"],
        path=path,
        label=_label(config),
        config=config,
        final=read_final(path),
        seconds=read_seconds(path),
    )


def _label(config: Mapping[str, Any]) -> str:
    """Return the label of a run: its objective, the options, and whether it left out samples without a class."""
    options = current_options(config["objective"], config["options"])
    left_out = {"partial": "none"} if config["data_options"].get("partial") == "none" else {}
    return label_for(config["objective"], {**options, **left_out})


def label_for(objective: str, options: Mapping[str, Any]) -> str:
    """Return a label such as `"label-embedding tau=3"`."""
    return " ".join([objective, *(f"{name}={value}" for name, value in options.items())])
