"""The folder of one run.

Each file is written completely or not at all. Training resumes from `state.json`, which is renamed into place only after
the tensors that it names are on disk, so a run that is killed at any moment resumes from a complete state.

    config.json           the configuration: data, backbone, objective, settings, versions
    setup.safetensors     the inputs that the objective was built from: relation, tree, vectors
    state.json            epoch and step, the history so far, and the name of the file with the tensors; until the end
    state-*.safetensors   weights, buffers, optimizer and random state at that step; until the end
    metrics.csv           one row for each epoch; the same whether or not the run was interrupted
    timing.json           seconds spent training
    model.safetensors     the trained model
    final.json            its metrics on the test set
    outputs.safetensors   its outputs on the test set, and on the samples that were held out for the temperature
    decisions.npz         the calibrated decision on each test sample, with its cost
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, refuse_damaged
from labelkin._files import EVENTS, STATE, TEMPORARY, csv_text, is_events_folder, write_bytes, write_text
from labelkin._version import RUN_LAYOUT
from labelkin.runs._decisions import DECISIONS, decisions_in, packed_decisions
from labelkin.runs._run_files import LOCK, read_config, read_history, read_json, read_seconds
from labelkin.training import State, is_packed, load_packed, save_packed


class RunFolder:
    """Read and write the folder of one run; a `Checkpoint` for `Trainer`.

    Args:
        path: The folder. It need not exist; `create` makes it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from labelkin.runs import RunFolder
        >>> with TemporaryDirectory() as store:
        ...     run = RunFolder.create(f"{store}/run", {"data": "digits"}, {})
        ...     run.config["data"], run.final
        ('digits', None)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any], setup: Mapping[str, Any]) -> "RunFolder":
        """Start a run in a new or empty folder.

        Args:
            path: The folder; created if it does not exist. A folder with files that labelkin did not write is refused.
            config: The content of config.json, without the version of the layout.
            setup: The inputs that the objective was built from: nested dicts and lists of tensors and plain values.
        """
        folder = cls(path)
        folder.check_free()
        folder.path.mkdir(parents=True, exist_ok=True)
        folder._sweep()
        save_packed(folder.path / "setup.safetensors", setup)
        folder._write("config.json", {"version": RUN_LAYOUT, **config})
        return folder

    def check_free(self) -> None:
        """Raise `InputError` unless a new run may be started here.

        The folder must be missing or empty, or contain only files that labelkin left when it was stopped before it had
        written config.json. Nothing is changed.
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
        """The run's configuration; raises `InputError` if the folder does not contain a run of this layout."""
        config = read_config(self.path)
        if config is None:
            raise InputError(
                f"{self.path}: not the folder of a run; it has no config.json that labelkin wrote. Choose another folder."
            )
        return config

    @property
    def setup(self) -> dict[str, Any]:
        """The inputs that the objective was built from."""
        loaded: dict[str, Any] = load_packed(self.path / "setup.safetensors")
        return loaded

    @property
    def final(self) -> dict[str, Any] | None:
        """The metrics on the test set, None where one is undefined. None if the run has not finished."""
        found: dict[str, Any] | None = read_json(self.path / "final.json")
        return found

    @property
    def seconds(self) -> float | None:
        """The seconds spent training, including the parts before it was resumed. None if the run has not finished."""
        return read_seconds(self.path)

    def save(self, state: State) -> None:
        """Save a training state in place of the last one."""
        progress, tensors = state
        name = f"state-{progress['epoch']:05d}-{progress['step']:07d}.safetensors"
        save_packed(self.path / name, tensors)
        self._write("state.json", {**progress, "tensors": name})
        self.record(progress["history"])
        self._drop_states(keep=name)

    def load(self, *, clean: bool = True) -> State | None:
        """Return the last saved state, or None if there is none. That of a finished run is its trained model.

        Args:
            clean: Whether to delete temporary files of an interrupted write. Only one of several processes may do so, or
                they would delete each other's files.
        """
        if clean:
            self._sweep()
        progress = read_json(self.path / "state.json")
        if progress is None and self.final is not None:
            history = self.history()
            done = {"epoch": len(history), "step": 0, "history": history, "seconds": self.seconds}
            return State(done, {"model": self.model_state()})
        if progress is None:
            return None
        with refuse_damaged(self.path / "state.json", "delete it to train the run from the start"):
            name = progress["tensors"]
            if not STATE.fullmatch(name):
                raise ValueError(f"tensors is {name!r:.40}, expected the name of a training state")
            if clean:
                self.record(progress["history"])
                self._drop_states(keep=name)
        return State(progress, load_packed(self.path / name))

    def _drop_states(self, keep: str) -> None:
        """Delete all training states but one."""
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

    def record(self, history: Sequence[Mapping[str, float]]) -> None:
        """Write the metrics of all finished epochs to metrics.csv."""
        write_text(self.path / "metrics.csv", csv_text(history))

    def finish(
        self, model: Mapping[str, Any], metrics: Mapping[str, float], outputs: Mapping[str, Any], *, seconds: float
    ) -> None:
        """Write the results of a run that has ended; final.json marks it as finished. The training states are deleted.

        Args:
            model: The state of the trained model.
            metrics: The final metrics; NaN where one is undefined.
            outputs: The model's outputs on the test set; the decisions among them are written to a separate file.
            seconds: The time spent training.
        """
        save_packed(self.path / "model.safetensors", model)
        decided, rest = decisions_in(outputs)
        save_packed(self.path / "outputs.safetensors", rest)
        if decided is not None:
            write_bytes(self.path / DECISIONS, packed_decisions(decided))
        self._write("timing.json", {"seconds": seconds})
        self._write("final.json", {name: None if isnan(value) else value for name, value in metrics.items()})
        self.drop_states()

    def drop_states(self) -> None:
        """Delete the training states, which only an unfinished run needs; optimizers make them large."""
        (self.path / "state.json").unlink(missing_ok=True)  # first, since it names the tensors
        for file in self._states():
            file.unlink(missing_ok=True)

    def drop_weights(self) -> None:
        """Delete the weights, which only prediction and resuming need; metrics and outputs stay."""
        self.drop_states()
        (self.path / "model.safetensors").unlink(missing_ok=True)

    def model_state(self) -> dict[str, Any]:
        """Return the state of the trained model; raises `InputError` if there is none."""
        if not (self.path / "model.safetensors").exists() and self.final is not None:
            raise InputError(
                f"{self.path}: this run keeps its results but no weights (--keep results); train it again to use it."
            )
        if not (self.path / "model.safetensors").exists():
            command = f"labelkin train --resume {shlex.quote(str(self.path))}"
            raise InputError(f"{self.path}: the run is not finished; resume it with `{command}`.")
        loaded: dict[str, Any] = load_packed(self.path / "model.safetensors")
        return loaded

    def outputs(self) -> dict[str, Any]:
        """Return the trained model's outputs on the test set."""
        loaded: dict[str, Any] = load_packed(self.path / "outputs.safetensors")
        return loaded

    def history(self) -> list[dict[str, float]]:
        """Return the rows of metrics.csv as numbers; an empty list before the first epoch has ended."""
        return read_history(self.path)

    def _write(self, name: str, value: Any) -> None:
        """Write a JSON file."""
        write_text(self.path / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def _is_leftover(file: Path) -> bool:
    """Return whether labelkin created this file or folder before it wrote config.json."""
    if file.name == EVENTS:
        return is_events_folder(file)
    if not file.is_file() or file.is_symlink():
        return False
    if file.name == LOCK:
        return file.stat().st_size == 0
    if file.name == "error.txt":
        return file.read_bytes().startswith(b"Traceback")
    if file.name == "setup.safetensors":
        return is_packed(file)
    return TEMPORARY.fullmatch(file.name) is not None
