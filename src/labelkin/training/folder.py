"""The folder of one run: what was asked, where training stands, what came of it.

Each file is written whole or not at all, and training goes on from `state.json`, which is renamed into place only after the
tensors it names are on disk. A run killed at any moment therefore resumes from a state that is complete.

    config.json           what was asked: data, backbone, objective, settings, versions
    setup.safetensors     what the objective was built from: relation, tree, vectors
    state.json            where training stands, the history so far, and which tensors belong to it
    state-*.safetensors   weights, buffers, optimizer and random state of that moment
    metrics.csv           a row an epoch: the same for a run that was killed and one that was not
    timing.json           seconds spent training
    model.safetensors     the trained model
    final.json            its metrics on the test set
    outputs.safetensors   its scores on the test set
"""

import csv
import json
import shlex
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from labelkin._checks import InputError
from labelkin._files import (
    EVENTS,
    STATE,
    TEMPORARY,
    csv_text,
    is_events_folder,
    is_run_config,
    write_text,
)
from labelkin._version import RUN_LAYOUT
from labelkin.training import packing


class RunFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any], setup: Mapping[str, Any]) -> "RunFolder":
        """Start a run in a new or empty folder.

        Args:
            path: The folder; made if it does not exist. A folder with files that labelkin did not write is refused.
            config: What config.json will contain besides the layout's version.
            setup: What the objective was built from: nested dicts and lists of tensors and plain values.
        """
        folder = cls(path)
        folder.check_free()
        folder.path.mkdir(parents=True, exist_ok=True)
        folder._sweep()
        packing.save(folder.path / "setup.safetensors", setup)
        folder._write("config.json", {"version": RUN_LAYOUT, **config})
        return folder

    def check_free(self) -> None:
        """Raise `InputError` unless a new run may be started here.

        The folder must be missing or empty, or contain only what labelkin left when it was stopped before it had written
        config.json. Nothing is changed.
        """
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise InputError(f"{self.path}: expected a folder, but this is a file; choose another name.")
        if (self.path / "config.json").exists():
            raise InputError(f"{self.path}: the folder already contains a run; choose another folder.")
        if not all(map(_is_leftover, self.path.iterdir())):
            raise InputError(
                f"{self.path}: the folder is not empty and does not contain a run; choose a new or an empty folder."
            )

    @property
    def config(self) -> dict[str, Any]:
        found = self._read("config.json")
        if found is None:
            raise InputError(f"{self.path}: not the folder of a run; it has no config.json.")
        if not is_run_config(found):
            raise InputError(
                f"{self.path}: the folder does not contain a run; labelkin did not write its config.json. "
                "Choose another folder."
            )
        if found.get("version") != RUN_LAYOUT:
            raise InputError(
                f"{self.path}: written in layout {found.get('version')}, this labelkin reads {RUN_LAYOUT}; "
                "use the labelkin version that config.json names, or train anew."
            )
        return found

    @property
    def setup(self) -> dict[str, Any]:
        loaded: dict[str, Any] = packing.load(self.path / "setup.safetensors")
        return loaded

    @property
    def final(self) -> dict[str, Any] | None:
        """The metrics on the test set once training has ended; null where one is undefined."""
        return self._read("final.json")

    @property
    def seconds(self) -> float | None:
        """Seconds spent training, over all its parts where it was resumed."""
        timing = self._read("timing.json")
        return None if timing is None else timing["seconds"]

    def save_state(self, progress: Mapping[str, Any], tensors: Any) -> None:
        """`progress` is JSON with "epoch" and "step"; the state it describes is in `tensors`."""
        name = f"state-{progress['epoch']:05d}-{progress['step']:07d}.safetensors"
        packing.save(self.path / name, tensors)
        self._write("state.json", {**progress, "tensors": name})
        self.write_metrics(progress["history"])
        self._drop_states(keep=name)

    def load_state(self, *, tidy: bool = True) -> tuple[dict[str, Any], Any] | None:
        """Where to go on; of several processes one alone makes the folder `tidy`, or they would sweep one another's files."""
        if tidy:
            self._sweep()
        progress = self._read("state.json")
        if progress is None:
            return None
        if tidy:
            self.write_metrics(progress["history"])
            self._drop_states(keep=progress["tensors"])
        return progress, packing.load(self.path / progress["tensors"])

    def _drop_states(self, keep: str) -> None:
        for old in self._states():
            if old.name != keep:
                old.unlink(missing_ok=True)

    def _states(self) -> list[Path]:
        """Return the files of training states, by labelkin's own naming scheme."""
        return [file for file in self.path.glob("state-*.safetensors") if STATE.fullmatch(file.name)]

    def _sweep(self) -> None:
        """Delete the temporary files that labelkin leaves when it is killed while writing; no other file is touched."""
        for file in self.path.glob(".labelkin-*.tmp"):
            if TEMPORARY.fullmatch(file.name):
                file.unlink(missing_ok=True)

    def write_metrics(self, history: Sequence[Mapping[str, float]]) -> None:
        write_text(self.path / "metrics.csv", csv_text(history))

    def finish(
        self, model: Mapping[str, Any], metrics: Mapping[str, float], outputs: Mapping[str, Any], *, seconds: float
    ) -> None:
        packing.save(self.path / "model.safetensors", model)
        packing.save(self.path / "outputs.safetensors", outputs)
        self._write("timing.json", {"seconds": seconds})
        self._write("final.json", {name: None if isnan(value) else value for name, value in metrics.items()})

    def drop_weights(self) -> None:
        """Remove what only predicting or going on needs; metrics and outputs stay."""
        (self.path / "state.json").unlink(missing_ok=True)  # first, since it names the tensors
        for file in [self.path / "model.safetensors", *self._states()]:
            file.unlink(missing_ok=True)

    def model_state(self) -> dict[str, Any]:
        if not (self.path / "model.safetensors").exists() and self.final is not None:
            raise InputError(
                f"{self.path}: keeps its results and no weights (--keep results); train it anew to use it."
            )
        if not (self.path / "model.safetensors").exists():
            command = f"labelkin train --resume {shlex.quote(str(self.path))}"
            raise InputError(f"{self.path}: training has not ended; go on with `{command}`.")
        loaded: dict[str, Any] = packing.load(self.path / "model.safetensors")
        return loaded

    def outputs(self) -> dict[str, Any]:
        loaded: dict[str, Any] = packing.load(self.path / "outputs.safetensors")
        return loaded

    def history(self) -> list[dict[str, float]]:
        """metrics.csv, as numbers."""
        path = self.path / "metrics.csv"
        if not path.exists():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]

    def _write(self, name: str, value: Any) -> None:
        write_text(self.path / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            loaded: dict[str, Any] = json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InputError(f"{self.path / name}: damaged ({error}).") from error
        return loaded


def _is_leftover(file: Path) -> bool:
    """Return whether labelkin made this file or folder before it had written config.json."""
    if file.name == EVENTS:
        return is_events_folder(file)
    if not file.is_file() or file.is_symlink():
        return False
    if file.name == "lock":
        return file.stat().st_size == 0
    if file.name == "error.txt":
        return file.read_bytes().startswith(b"Traceback")
    if file.name == "setup.safetensors":
        return packing.is_packed(file)
    return TEMPORARY.fullmatch(file.name) is not None
