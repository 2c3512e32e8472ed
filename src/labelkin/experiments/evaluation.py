"""A finished run measured again: on its own test set, or on other data with the same classes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError, listed, near
from labelkin.data import ArraySplit, Batches, Split
from labelkin.data.held_out import read_held_out
from labelkin.experiments.device import fastest_device
from labelkin.experiments.identity import check_unchanged, data_changed
from labelkin.experiments.predictor import Predictor, load, run_at
from labelkin.experiments.run import Bench
from labelkin.training import RunFolder
from labelkin.training.conclusion import final_metrics

BATCH = 1024


class Evaluated(NamedTuple):
    data: str
    samples: int
    metrics: dict[str, float]  # NaN where one is undefined


def evaluate(
    run: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    *,
    data_options: Mapping[str, Any] | None = None,
) -> Evaluated:
    """The metrics of a run on its own test set or, with `data`, on that.

    Other data must have the run's class names, in any order. Its test split is measured, or all of it where it comes
    without one; the data that the run was trained on stands for the run's own test set, unless it has changed since: then
    it is refused, or, where it is given as `data`, other data. Images are brought to the run's shape; a table's columns are
    the run's unless `data_options` name others.
    """
    config, options = RunFolder(run_at(run)).config, dict(data_options or {})
    if data is None:
        check_unchanged(
            config, otherwise=", or give them as DATA (`labelkin evaluate RUN DATA`) to measure all of them"
        )
    predictor = load(run).to(fastest_device())
    spec, name = predictor.spec, os.fspath(predictor.spec.data if data is None else data)
    own = _same(name, spec.data)
    if own and not data_changed(config):
        split = Bench(replace(spec, data_options={**spec.data_options, **options})).dataset.test
    else:
        held = ("label", "labels") if own else ("label",)  # a file of labels belongs to the run's own inputs
        trained = {key: spec.data_options[key] for key in held if key in spec.data_options}
        found = read_held_out(name, shape=predictor.shape, samples=predictor.samples, trained=trained, **options)
        split = _in_order(found.split, found.classes, predictor.classes, name)
    if isinstance(split, ArraySplit):
        predictor.check(split.inputs)
    scores, target = _scored(predictor, split)
    return Evaluated(name, len(target), final_metrics(predictor.model.objective, scores, target, predictor.taxonomy))


def _same(data: str | os.PathLike[str], other: str) -> bool:
    return os.fspath(data) == other or (Path(data).exists() and Path(other).exists() and os.path.samefile(data, other))


def _in_order(split: Split, classes: Sequence[str], wanted: Sequence[str], name: str) -> Split:
    """The split with its targets numbered as the run has them."""
    unknown = [own for own in classes if own not in wanted]
    if unknown:
        hint = near(unknown[0], wanted)
        raise InputError(f"{name}: has the class {listed(unknown)}, which the run does not know.{hint}")
    missing = [known for known in wanted if known not in classes]
    if missing:
        raise InputError(
            f"{name}: lacks the class {listed(missing)} of the run; expected the same {len(wanted)} classes."
        )
    place = torch.tensor([list(wanted).index(own) for own in classes])
    return split.with_targets(place[split.targets])


@torch.no_grad()
def _scored(predictor: Predictor, split: Split) -> tuple[Tensor, Tensor]:
    """Scores and targets of the samples that could be read."""
    found: list[tuple[Tensor, Tensor]] = []
    for batch in Batches(split, batch_size=min(BATCH, len(split)), device=predictor.mean.device).epoch(0):
        read = batch.weight > 0
        found.append((predictor(batch.inputs[read]).float().cpu(), batch.targets[read].cpu()))
    scores, target = (torch.cat(part) for part in zip(*found, strict=True))
    return scores, target
