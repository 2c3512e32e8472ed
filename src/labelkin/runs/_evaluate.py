"""Evaluate a finished run on its own test set or on other data with the same classes."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError, counted, listed, near
from labelkin.data import DATASETS, ArraySplit, Batches, Split, read_held_out, seen_before
from labelkin.runs._folder import RunFolder
from labelkin.runs._identity import check_unchanged, data_changed
from labelkin.runs._places import located
from labelkin.runs._predictor import Predictor, existing_run_folder, load_run
from labelkin.runs._setup import fastest_device
from labelkin.runs._workspace import DataWorkspace
from labelkin.training import costs_for, decide_test, final_metrics


class Evaluated(NamedTuple):
    """The metrics of a run on some data.

    Args:
        data: The name or path of the data.
        samples: The number of samples.
        metrics: The metrics by name, NaN where one is undefined.
        seen: How many of the samples the run was trained or calibrated on.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> evaluated = labelkin.evaluate(run)
        >>> evaluated.data, evaluated.metrics["accuracy"] == run.metrics["accuracy"]
        ('digits', True)
    """

    data: str
    samples: int
    metrics: dict[str, float]
    seen: int = 0


def evaluate(
    run: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    *,
    data_options: Mapping[str, Any] | None = None,
    unseen: bool = False,
    costs: str | os.PathLike[str] | None = None,
) -> Evaluated:
    """Evaluate a finished classification run.

    Samples of other data that the run was trained on are recognized by their content (streamed images by name and size). A
    warning says how many there are, because metrics on them say little about new data.

    The model is always in evaluation mode; a warning says if the run's own metrics were computed in training mode.

    Args:
        run: The folder of the run, or the result of `labelkin.train`.
        data: Other data with class names of the run, in any order; some may be missing. Its test split is used, or all of it if
            it has none. Images are resized to the run's shape. None uses the run's own test set; it is refused if the data
            changed since training.
        data_options: Keyword arguments of `labelkin.data.load`. The columns of a table default to those of the run.
        unseen: Whether to leave out the samples of `data` that the run was trained on.
        costs: A .csv or .npz file of costs by class name, used for decisions; by default the costs that the run was trained
            with, or the distances in its tree.

    Returns:
        The name of the data, the number of samples, the metrics, and how many samples the run was trained on.

    Example:
        >>> import labelkin, tempfile
        >>> run = labelkin.train("digits", out=tempfile.mkdtemp() + "/run", epochs=1)
        >>> labelkin.evaluate(run).samples
        359
    """
    folder, options = RunFolder(existing_run_folder(run)), dict(data_options or {})
    config = located(folder.config, folder.path)
    if data is None:
        _check_there(config["data"])
        check_unchanged(
            config, otherwise=", or give them as DATA (`labelkin evaluate RUN DATA`) to evaluate on all of them"
        )
    predictor = load_run(run).to(fastest_device())
    if predictor.spec.settings.evaluation == "batch-statistics":
        warnings.warn(
            f"{os.fspath(folder.path)}: the run was evaluated in training mode (evaluation: batch-statistics), with the "
            "statistics of each test batch, and is evaluated without them here, so that these metrics differ from those of "
            "the run.",
            stacklevel=2,
        )
    spec, name = predictor.spec, os.fspath(predictor.spec.data if data is None else data)
    own, known = _same(name, spec.data), None
    if own and not data_changed(config):
        split = DataWorkspace(replace(spec, data_options={**spec.data_options, **options})).dataset.test
    else:
        held = ("label", "labels") if own else ("label",)  # a file of labels belongs to the run's own inputs only
        trained = {key: spec.data_options[key] for key in held if key in spec.data_options}
        held_out = read_held_out(name, shape=predictor.shape, samples=predictor.samples, trained=trained, **options)
        split = _in_order(held_out.split, held_out.classes, predictor.classes, name)
        known = folder.setup.get("trained_on")  # earlier versions recorded none
    if isinstance(split, ArraySplit):
        predictor.check(split.inputs)
    scores, target, seen = _scored(predictor, split, known)
    if unseen:
        scores, target, seen = _unseen(scores, target, seen, name)
    elif seen.any():
        _warn_seen(int(seen.sum()), len(seen), name)
    found = final_metrics(predictor.model.objective, scores, target, predictor.taxonomy)
    if predictor.is_calibrated:
        kept: Tensor | None = folder.setup.get("costs")
        matrix = kept if costs is None else costs_for(costs, predictor.classes)
        found |= decide_test(scores, target, predictor.taxonomy, predictor.calibration, matrix).metrics
    elif costs is not None:
        raise InputError(f"costs: {os.fspath(run)} recorded no calibration; train it again, or leave costs out.")
    return Evaluated(name, len(target), found, int(seen.sum()))


def _check_there(data: str) -> None:
    """Refuse to evaluate a run on its own test set if its data are gone."""
    if data not in DATASETS and not Path(data).expanduser().exists():
        raise InputError(
            f"{data}: the data of this run no longer exist; restore them, or name their new location "
            "(`labelkin evaluate RUN DATA --unseen` leaves out the samples of the training)."
        )


def _same(data: str | os.PathLike[str], other: str) -> bool:
    return os.fspath(data) == other or (Path(data).exists() and Path(other).exists() and os.path.samefile(data, other))


def _in_order(split: Split, classes: Sequence[str], wanted: Sequence[str], name: str) -> Split:
    """Return the split with its targets in the run's class order."""
    unknown = [own for own in classes if own not in wanted]
    if unknown:
        hint = near(unknown[0], wanted)
        raise InputError(f"{name}: the run was not trained on the class {listed(unknown)}.{hint}")
    place = torch.tensor([list(wanted).index(own) for own in classes])
    return split.with_targets(place[split.targets])


@torch.no_grad()
def _scored(predictor: Predictor, split: Split, known: Mapping[str, Any] | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores and targets of the samples that could be read, and whether the run was trained on each."""
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    size = min(predictor.at_once, len(split))
    for batch in Batches(split, batch_size=size, device=predictor.mean.device).epoch(0):
        read = batch.weight > 0
        inputs, targets, index = batch.inputs[read], batch.targets[read].cpu(), batch.index[read].cpu()
        seen = torch.zeros_like(index, dtype=torch.bool) if known is None else seen_before(split, index, inputs, known)
        parts.append((predictor(inputs).float().cpu(), targets, seen))
    scores, target, seen = (torch.cat(part) for part in zip(*parts, strict=True))
    return scores, target, seen


def _unseen(scores: Tensor, target: Tensor, seen: Tensor, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Leave out the samples that the run was trained on."""
    if seen.all():
        raise InputError(
            f"{name}: the run was trained on all {counted(len(seen), 'sample')}; give data that are new to it."
        )
    return scores[~seen], target[~seen], seen[~seen]


def _warn_seen(count: int, of: int, name: str) -> None:
    warnings.warn(
        f"{name}: the run was trained on {count:,} of the {counted(of, 'sample')}, so the figures say little "
        f"about new data; leave "
        "them out with --unseen (in Python, unseen=True).",
        stacklevel=3,
    )
