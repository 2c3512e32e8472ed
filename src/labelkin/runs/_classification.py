"""Classification runs: a data set, a backbone and an objective."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelkin import models
from labelkin.data import SPLIT_NAMES, Dataset, fingerprint, labels_beside, sample_format
from labelkin.objectives import OBJECTIVES, Context
from labelkin.runs._folder import RunFolder
from labelkin.runs._identity import data_id, run_id
from labelkin.runs._run_files import RunInUse, locked
from labelkin.runs._setup import check_machine, environment, is_other_process, saved_context
from labelkin.runs._spec import RunSpec
from labelkin.runs._workspace import DataWorkspace
from labelkin.training import (
    Classify,
    Fleet,
    FleetMember,
    Model,
    NotBatched,
    Place,
    Progress,
    Trained,
    Trainer,
    build_model,
    check_accumulation,
    classify,
    logit_offset,
)

__all__ = ["COMMAND", "KIND", "check", "data_files", "fingerprint", "train", "train_fleet"]

KIND = "classification"
COMMAND = "evaluate"


def check(spec: RunSpec, workspace: DataWorkspace) -> None:
    """Refuse a run that the data, the objective or the machine do not allow, before any training."""
    workspace.try_objective(spec)
    if spec.backbone in models.BACKBONES or (spec.backbone is not None and ":" not in spec.backbone):
        shape = workspace.dataset.shape  # read outside the `with`, which would put the data on the meta device
        with torch.device("meta"):
            models.build(spec.backbone, shape)
    check_accumulation(OBJECTIVES[spec.objective], spec.settings)
    _task(spec, workspace).batches(spec.settings, Place(torch.device("cpu")))
    check_machine(spec.settings)


def train(
    spec: RunSpec,
    path: str | os.PathLike[str] | None,
    *,
    resume: bool,
    workspace: DataWorkspace,
    progress: Callable[[int], Progress],
    log: Callable[[Mapping[str, float]], None],
) -> Trained:
    """Train a classifier; see `labelkin.runs.train_run`."""
    check(spec, workspace)
    model, context, options = _built(spec, workspace)
    context.tree()  # the folder records that it was used
    task = _task(spec, workspace)
    folder = None if path is None else RunFolder(os.fspath(path))
    trainer = Trainer(model, task, spec.settings, checkpoint=folder, progress=progress, log=log)
    with nullcontext() if folder is None or is_other_process() else locked(folder.path):
        if folder is not None:
            _begin(folder, spec, workspace.dataset, context, options, task.costs)
        trained = trainer.fit(resume=resume)
        if torch.distributed.is_initialized():
            torch.distributed.barrier()  # the first process writes the files that the others read
    return trained


def _task(spec: RunSpec, workspace: DataWorkspace) -> Classify:
    partial = str(spec.data_options.get("partial", "use"))
    tree, costs = workspace.context.tree(), workspace.costs(spec)
    return classify(workspace.dataset, tree, spec.objective, spec.settings, partial=partial, costs=costs)


def train_fleet(
    specs: Sequence[RunSpec],
    paths: Sequence[Path],
    kinds: Sequence[str],
    *,
    workspace: DataWorkspace,
    progress: Callable[[int], Progress],
) -> list[Trained | Exception]:
    """Train or resume runs as one batched model, and write the folders that `train` would have written.

    Args:
        specs: The runs, which differ in objective, options and seed.
        paths: The folder of each run.
        kinds: What each run's objective depends on besides the seed; those of one kind must be neighbors.
        workspace: The data of all runs.
        progress: Called with the number of steps per epoch; returns the object that shows them.

    Returns:
        The result of each run, or the error that ended it: `RunInUse` if another process trains it, or `Diverged`.
    """
    results: dict[int, Trained | Exception] = {}
    members: dict[int, FleetMember] = {}
    task: Classify | None = None
    with ExitStack() as locks:
        for place, (spec, path) in enumerate(zip(specs, paths, strict=True)):
            check(spec, workspace)
            folder = RunFolder(path)
            try:
                locks.enter_context(locked(folder.path))
            except RunInUse as error:
                results[place] = error
                continue
            model, context, options = _built(spec, workspace)
            context.tree()  # the folder records that it was used
            own = _task(spec, workspace)
            task = task or own
            _begin(folder, spec, workspace.dataset, context, options, own.costs)
            members[place] = FleetMember(model, task, spec.settings, checkpoint=folder)
        if members:
            fleet = Fleet(list(members.values()), [kinds[place] for place in members], progress=progress)
            try:
                results |= dict(zip(members, fleet.fit(resume=True), strict=True))
            except NotBatched as error:
                rows = None if error.rows is None else [list(members)[row] for row in error.rows]
                raise NotBatched(str(error), rows) from error
    return [results[place] for place in range(len(specs))]


def _built(spec: RunSpec, workspace: DataWorkspace) -> tuple[Model, Context, dict[str, Any]]:
    """Return the model of a run, with the context and the options that its objective is built from."""
    options = workspace.options(spec)
    offset = logit_offset(spec.settings.logit_adjustment, workspace.counts)
    context, shape = workspace.context.afresh(), workspace.dataset.shape
    model = build_model(
        spec.objective,
        options,
        _backbone(spec, shape),
        shape,
        context,
        seed=spec.settings.seed,
        logit_offset=offset,
    )
    return model, context, options


def _backbone(spec: RunSpec, shape: tuple[int, ...]) -> str:
    return spec.backbone or models.default(shape)


def data_files(spec: RunSpec) -> Iterator[Path]:
    """Yield the files that the run was trained on; in a folder, the tables named after their split."""
    path = Path(spec.data).expanduser()
    if path.is_dir():
        yield from (file for file in path.iterdir() if file.name.partition(".")[0].lower() in (*SPLIT_NAMES, "dev"))
    elif path.is_file():
        yield from filter(None, (path, labels_beside(path)))


def _begin(
    folder: RunFolder,
    spec: RunSpec,
    dataset: Dataset,
    context: Context,
    options: Mapping[str, Any],
    costs: Tensor | None,
) -> None:
    """Write the configuration of a new run. Only the first of several processes does it."""
    if (folder.path / "config.json").exists() or is_other_process():
        return
    config = {
        "id": run_id(spec),
        "data_id": data_id(spec, with_fold=False),
        "kind": KIND,
        **spec.as_dict(),
        "resolved_backbone": _backbone(spec, dataset.shape),
        "revision": OBJECTIVES[spec.objective].revision_of(spec.options),
        "tree": _origin(spec, context),
        "environment": environment(),
    }
    setup = {
        "context": saved_context(context),
        "options": dict(options),
        "shape": list(dataset.shape),
        "samples": sample_format(dataset, spec.data, **spec.data_options)._asdict(),
        "mean": dataset.normalize.mean,
        "std": dataset.normalize.std,
        **({} if costs is None else {"costs": costs}),
    }
    RunFolder.create(folder.path, config, setup)


def _origin(spec: RunSpec, context: Context) -> str:
    if spec.taxonomy is not None:
        return "given"
    return "built" if context.taxonomy is None else "own"
