"""Classification runs: a data set, a backbone and an objective."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelkin import models
from labelkin._checks import InputError
from labelkin.data import (
    SPLIT_NAMES,
    Dataset,
    TextSplit,
    Tokens,
    fingerprint,
    folder_content,
    labels_beside,
    sample_digests,
    sample_format,
)
from labelkin.objectives import OBJECTIVES, Context
from labelkin.runs._compatibility import NOT_OF_THE_TEST_SET
from labelkin.runs._folder import RunFolder
from labelkin.runs._identity import data_id, run_id
from labelkin.runs._places import started_in
from labelkin.runs._run_files import RunInUse, locked
from labelkin.runs._setup import check_machine, environment, is_other_process, saved_context
from labelkin.runs._spec import RunSpec
from labelkin.runs._workspace import DataWorkspace, preprocessing_for
from labelkin.structure import Taxonomy
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
    WithBackbone,
    build_model,
    check_accumulation,
    check_mixing,
    check_patience,
    classify,
    frozen_dataset,
    logit_offset,
    make_fabric,
    place_of,
)

__all__ = ["COMMAND", "KIND", "check", "data_files", "fingerprint", "train", "train_fleet"]

KIND = "classification"
COMMAND = "evaluate"


def check(spec: RunSpec, workspace: DataWorkspace) -> None:
    """Refuse a run that the data, the objective or the machine do not allow, before any training."""
    workspace.try_objective(spec)
    dataset = workspace.prepared(spec)
    if spec.backbone is not None and ":" not in spec.backbone:
        drawn = {"pretrained": False} if models.is_pretrained(spec.backbone) else {}
        expected = preprocessing_for(spec)
        with torch.device("meta"):  # without memory; the data are already loaded
            models.build(spec.backbone, dataset.shape, preprocessing=expected, **drawn)
    if spec.settings.freeze and not models.is_pretrained(spec.backbone):
        named = "the default backbone" if spec.backbone is None else repr(spec.backbone)
        raise InputError(
            f"freeze: {named} has no pretrained weights, so its features would be random; choose a pretrained backbone, such "
            "as --backbone efficientnet-lite0 (in Python: backbone='efficientnet-lite0')."
        )
    check_accumulation(OBJECTIVES[spec.objective], spec.settings)
    check_mixing(OBJECTIVES[spec.objective], spec.settings)
    _check_tokens(spec, dataset)
    task = _task(spec, workspace)
    check_patience(task, spec.settings)
    task.batches(spec.settings, Place(torch.device("cpu")))
    check_machine(spec.settings)


def _check_tokens(spec: RunSpec, dataset: Dataset) -> None:
    """Refuse a text network whose inputs are not its own token ids, and token ids for any other network."""
    model = models.text_model(spec.backbone)
    encoder = dataset.train.encoder if isinstance(dataset.train, TextSplit) else None
    if model is not None and (encoder is None or encoder.name != f"tokens:{model}"):
        got = "no texts" if encoder is None else f"texts encoded by {encoder.name}"
        raise InputError(
            f"backbone {spec.backbone!r}: expected texts, which its own tokenizer encodes, got {got}; leave out --encoder, or "
            "choose another backbone."
        )
    if not isinstance(encoder, Tokens):
        return
    if model is None:
        raise InputError(
            f"encoder: {encoder.name!r} gives token ids; train on them with --backbone hf:{encoder.model}."
        )
    if spec.settings.augment:
        raise InputError(f"augment: {spec.settings.augment[0]} cannot change texts; leave it out.")


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
    with nullcontext() if folder is None or is_other_process() else locked(folder.path):
        if folder is not None:
            _begin(folder, spec, task.dataset, context, options, task.costs)
        if spec.settings.freeze:
            trained = _train_head(spec, model, task, folder, resume, progress, log)
        else:
            trainer = Trainer(model, task, spec.settings, checkpoint=folder, progress=progress, log=log)
            trained = trainer.fit(resume=resume)
        if torch.distributed.is_initialized():
            torch.distributed.barrier()  # the first process writes the files that the others read
    return trained


def _task(spec: RunSpec, workspace: DataWorkspace) -> Classify:
    tree, costs = workspace.context.tree(), workspace.costs(spec)
    return _task_on(workspace.prepared(spec), spec, tree, costs)


def _task_on(dataset: Dataset, spec: RunSpec, tree: Taxonomy | None, costs: Tensor | None) -> Classify:
    partial = str(spec.data_options.get("partial", "use"))
    return classify(dataset, tree, spec.objective, spec.settings, partial=partial, costs=costs)


def _train_head(
    spec: RunSpec,
    model: Model,
    task: Classify,
    folder: RunFolder | None,
    resume: bool,
    progress: Callable[[int], Progress],
    log: Callable[[Mapping[str, float]], None],
) -> Trained:
    """Train the objective of a model on the features of its backbone; the result is the whole model.

    A residual head at the end of the backbone has no pretrained weights and is trained with the objective.
    """
    settings = spec.settings
    device = place_of(make_fabric(settings)).device
    with progress(1) as shown:
        frozen, residual = models.split_residual(model.backbone)
        features = frozen_dataset(task.dataset, frozen, device=device, note=shown.note)
    head = Model(residual, model.objective, dropout=settings.dropout, logit_offset=model.logit_offset)
    checkpoint = None if folder is None else WithBackbone(folder, model.backbone, residual)
    own = _task_on(features, spec, task.taxonomy, task.costs)
    trained = Trainer(head, own, settings, checkpoint=checkpoint, progress=progress, log=log).fit(resume=resume)
    example = next(model.objective.parameters())
    model.backbone.to(example.device, example.dtype)
    return trained._replace(model=model.eval())


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
        kinds: What each run's objective depends on besides the seed; runs of one kind must be adjacent.
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
            _begin(folder, spec, own.dataset, context, options, own.costs)
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
        preprocessing=preprocessing_for(spec),
        dropout=spec.settings.dropout,
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
        "data_id": data_id(spec, without=NOT_OF_THE_TEST_SET),
        "kind": KIND,
        **({} if (content := folder_content(spec.data)) is None else {"data_content": content}),
        **spec.as_dict(),
        "resolved_backbone": _backbone(spec, dataset.shape),
        "revision": OBJECTIVES[spec.objective].revision_of(spec.options),
        "tree": _origin(spec, context),
        "environment": environment(),
        **started_in(spec, folder.path),
    }
    setup: dict[str, Any] = {
        "context": saved_context(context),
        "options": dict(options),
        "shape": list(dataset.shape),
        "samples": sample_format(dataset, spec.data, **spec.data_options)._asdict(),
        "mean": dataset.normalize.mean,
        "std": dataset.normalize.std,
        "trained_on": sample_digests(*(split for part, split in dataset.splits.items() if part != "test")),
        **({} if costs is None else {"costs": costs}),
    }
    if (expected := preprocessing_for(spec)) is not None:
        setup["preprocessing"] = expected._asdict() | {"mean": list(expected.mean), "std": list(expected.std)}
    if spec.backbone is not None and (network := models.network_config(spec.backbone)) is not None:
        setup["network"] = network
    RunFolder.create(folder.path, config, setup)


def _origin(spec: RunSpec, context: Context) -> str:
    if spec.taxonomy is not None:
        return "given"
    return "built" if context.taxonomy is None else "own"
