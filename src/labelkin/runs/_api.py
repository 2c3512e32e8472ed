"""Train one run from Python: `labelkin.train`."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelkin.runs._identity import run_name
from labelkin.runs._spec import RunSpec
from labelkin.runs._store import read_record
from labelkin.runs._train import check_same
from labelkin.runs._train import train_run as train_spec
from labelkin.training import Progress, Settings, Silent

STORE = "runs"


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
        train_spec(spec, folder, resume=record is not None, progress=progress)
        record = read_record(folder)
    assert record is not None
    assert record.final is not None
    final = record.final
    metrics = {name: value for name, value in final.items() if name != "epoch"}
    return TrainedRun(folder, spec, int(final["epoch"]), metrics, record.history(), record.seconds)
