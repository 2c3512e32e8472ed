"""Train one run and keep it in its folder: `labelkin.train`, and `train_run` for a spec.

The module of the run's kind does the work (see `_kinds.py`).
"""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelkin._checks import InputError
from labelkin.objectives import OBJECTIVES
from labelkin.runs._folder import RunFolder
from labelkin.runs._identity import check_contents, run_id, run_name
from labelkin.runs._kinds import kind_of
from labelkin.runs._setup import is_other_process
from labelkin.runs._spec import RunSpec
from labelkin.runs._store import read_record
from labelkin.runs._workspace import DataWorkspace
from labelkin.training import Progress, Settings, Silent, Trained

STORE = "runs"


def train_run(
    spec: RunSpec,
    path: str | os.PathLike[str] | None = None,
    *,
    resume: bool = False,
    workspace: DataWorkspace | None = None,
    progress: Callable[[int], Progress] = lambda steps: Silent(),
    log: Callable[[Mapping[str, float]], None] = lambda row: None,
) -> Trained:
    """Train the run that a spec describes.

    Args:
        spec: The run.
        path: The folder to keep the run in. None keeps nothing.
        resume: Continue from the last saved state if the folder holds this run.
        workspace: Data that are already loaded; ignored if they do not match the spec.
        progress: Called with the number of steps per epoch; returns the object that shows them.
        log: Called with the metrics of each epoch.

    Returns:
        The trained model with its history and metrics.

    Example:
        >>> from labelkin.runs import RunSpec, train_run
        >>> from labelkin.training import Settings
        >>> trained = train_run(RunSpec(data="digits", settings=Settings(epochs=1)))
        >>> 0 <= trained.metrics["accuracy"] <= 1
        True
    """
    if path is not None:
        check_folder(path, spec, resume=resume)
    own = workspace if workspace is not None and workspace.serves(spec) else DataWorkspace(spec)
    return kind_of(spec.data).train(spec, path, resume=resume, workspace=own, progress=progress, log=log)


def check_folder(path: str | os.PathLike[str], spec: RunSpec, *, resume: bool) -> None:
    """Refuse a folder that holds another run, files of others or, unless it is resumed, this run."""
    if (Path(path) / "config.json").exists():
        if not resume and not is_other_process():  # the first process has written the folder
            raise InputError(
                f"{path}: this folder already contains a run; resume it with `labelkin train --resume "
                f"{shlex.quote(str(path))}`, or choose another folder."
            )
        check_same(path, spec)
    elif not is_other_process():
        RunFolder(os.fspath(path)).check_free()


def check_run(spec: RunSpec, workspace: DataWorkspace) -> None:
    """Refuse a run that the data, the objective or the machine do not allow, before any folder is created."""
    kind_of(spec.data).check(spec, workspace)


def is_unfinished(spec: RunSpec, path: str | os.PathLike[str]) -> bool:
    """Return whether the folder contains this run, unfinished. A finished run and a different run are refused."""
    folder = RunFolder(os.fspath(path))
    if is_other_process():  # the first process checked the folder, and may have begun the run since
        return (folder.path / "state.json").exists()
    if not (folder.path / "config.json").exists():
        folder.check_free()
        return False
    check_same(path, spec)
    if folder.final is not None:
        use = f"labelkin {kind_of(spec.data).COMMAND} {shlex.quote(str(path))}"
        raise InputError(f"{path}: this run is finished; use it with `{use}`, or choose another folder with --out.")
    return True


def check_same(path: str | os.PathLike[str], spec: RunSpec) -> None:
    """Refuse a folder with a run of another configuration, or of an earlier revision of the objective."""
    config = RunFolder(os.fspath(path)).config
    if config["id"] == run_id(spec):
        check_contents([Path(path)])
        return
    revision = OBJECTIVES[spec.objective].revision_of(spec.options)
    if config["objective"] == spec.objective and config["revision"] != revision:
        raise InputError(
            f"{path}: trained with revision {config['revision']} of {spec.objective!r}; this labelkin has revision {revision}, "
            "which gives different results; choose another folder, or remove this one."
        )
    differences = spec.differs_in(RunSpec.from_dict(config))[:3] or ["files of other content"]
    raise InputError(
        f"{path}: this folder holds a run with {'; '.join(differences)}; choose another folder, or remove this one."
    )


@dataclass(frozen=True)
class TrainedRun:
    """A finished run. `labelkin.evaluate` and `labelkin.load_run` accept it in place of its folder.

    Args:
        path: The folder.
        spec: The configuration.
        epoch: The reported epoch, from 1.
        metrics: The metrics on the test set, NaN where one is undefined.
        history: The metrics of each epoch.
        seconds: The time spent training.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", out=tempfile.mkdtemp() + "/run", epochs=2)
        >>> run.path.name, run.epoch, len(run.history)
        ('run', 2, 2)
    """

    path: Path
    spec: RunSpec
    epoch: int
    metrics: dict[str, float]
    history: list[dict[str, float]]
    seconds: float | None

    def __fspath__(self) -> str:
        return os.fspath(self.path)


def train(
    data: str | os.PathLike[str] = "digits",
    objective: str = "one-hot",
    *,
    out: str | os.PathLike[str] | None = None,
    backbone: str | None = None,
    taxonomy: str | os.PathLike[str] | None = None,
    data_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int], Progress] = lambda steps: Silent(),
    **settings: Any,
) -> TrainedRun:
    """Train one model and keep it in a folder.

    A finished run with the same configuration is returned without training, and an interrupted run resumes.

    Args:
        data: A name or path for `labelkin.data.load`, or a parallel corpus.
        objective: A name in `labelkin.OBJECTIVES`.
        out: The folder of the run. None uses `runs/OBJECTIVE-seedSEED-ID`.
        backbone: A name for `labelkin.models.build`. None chooses one by the shape of the data.
        taxonomy: The name of a shipped tree, a file, or "wordnet". None uses the tree of the data, or builds one from them.
        data_options: Keyword arguments of `labelkin.data.load`.
        options: Keyword arguments of the objective.
        progress: Called with the number of steps per epoch; returns the object that shows them.
        **settings: Fields of `labelkin.training.Settings`, such as `epochs`, `lr` and `seed`.

    Returns:
        The run with its folder, metrics and history.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", "label-smoothing", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> 0 <= run.metrics["accuracy"] <= 1
        True
    """
    spec = RunSpec(
        data=data,  # type: ignore[arg-type]  # a path becomes a name
        objective=objective,
        backbone=backbone,
        taxonomy=taxonomy,  # type: ignore[arg-type]
        settings=Settings.of(**settings),
        data_options=dict(data_options or {}),
        options=dict(options or {}),
    )
    folder = Path(STORE, run_name(spec)) if out is None else Path(out)
    record = read_record(folder)
    if record is not None and record.finished:
        check_same(folder, spec)
    else:
        train_run(spec, folder, resume=record is not None, progress=progress)
        record = read_record(folder)
    assert record is not None
    assert record.final is not None
    final = record.final
    metrics = {name: value for name, value in final.items() if name != "epoch"}
    return TrainedRun(folder, spec, int(final["epoch"]), metrics, record.history(), record.seconds)
