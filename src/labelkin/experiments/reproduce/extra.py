"""Measures that a paper prints and a run does not take: taken once it has ended, and kept in its folder."""

import json
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from labelkin import metrics
from labelkin._files import write_text
from labelkin.data import Batches, Split
from labelkin.experiments.device import fastest_device
from labelkin.experiments.predictor import load_run
from labelkin.experiments.store import Record
from labelkin.experiments.workspace import DataWorkspace
from labelkin.structure import catalogue
from labelkin.training import RunFolder

EXTRA = "measures.json"  # beside final.json
BATCH = 1024


def extra_measures(record: Record, wanted: Sequence[str]) -> dict[str, float]:
    """Measures that are taken once a run has ended, and kept in its folder: "mse" and "kmeans" (000)."""
    path = record.path / EXTRA
    known: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    taken = dict(known)
    if "mse" in wanted and "digit_mse" not in known:
        taken["digit_mse"] = _digit_mse(record)
    if "kmeans" in wanted and "kmeans_accuracy" not in known:
        taken["kmeans_accuracy"] = _kmeans_accuracy(record)
    if taken != known:
        write_text(path, json.dumps(taken, indent=1) + "\n")
    return taken


def _digit_mse(record: Record) -> float:
    """The squared difference of true and predicted digit, averaged over the test set (000)."""
    outputs = RunFolder(record.path).outputs()
    return float((outputs["scores"].argmax(-1) - outputs["target"]).double().square().mean())


def _kmeans_accuracy(record: Record) -> float:
    """The superclass by k-means of the softmax outputs, the grouping being the run's tree (000)."""
    predictor = load_run(record.path).to(fastest_device())
    outputs = RunFolder(record.path).outputs()
    train = DataWorkspace(predictor.spec).dataset.train
    with torch.no_grad():
        scores = [predictor(inputs).float().cpu() for inputs in _inputs(train, predictor.mean.device)]
    members = catalogue.groups(str(record.config["taxonomy"]))
    group_of = {name: place for place, names in enumerate(members.values()) for name in names}
    found = metrics.superclass_accuracy_by_kmeans(
        torch.cat(scores).softmax(-1),
        outputs["scores"].float().softmax(-1),
        outputs["target"],
        [group_of[name] for name in predictor.classes],
    )
    return found.mean


def _inputs(split: Split, device: torch.device) -> Iterator[Tensor]:
    for batch in Batches(split, batch_size=min(BATCH, len(split)), device=device).epoch(0):
        yield batch.inputs[batch.weight > 0]
