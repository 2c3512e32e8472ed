"""The batches of a data loader, in all common forms, and the metrics of their scores."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from labelkin import metrics
from labelkin._checks import InputError, listed
from labelkin.data import Minibatch
from labelkin.objectives import Objective
from labelkin.structure import Taxonomy

FIELDS = ("node", "weight", "index")


class Given(NamedTuple):
    """A batch: inputs of the backbone, class positions, and further arguments of the loss."""

    inputs: Any
    target: Tensor
    others: dict[str, Tensor]  # some of `FIELDS`

    def size(self, ignore_index: int) -> float:
        """Return the number of samples that the loss is a mean of, or the sum of their weights."""
        learned = self.target != ignore_index
        if self.target.is_floating_point():  # class probabilities, all of which count
            learned = torch.ones(len(self.target), dtype=torch.bool, device=self.target.device)
        if "node" in self.others:
            learned = learned | (self.others["node"] >= 0)
        return float((learned * self.others["weight"] if "weight" in self.others else learned).sum())

    def counted(self, ignore_index: int) -> Tensor:
        """Return (B,) whether the class of each row is known, and the row is not padding."""
        known = self.target != ignore_index
        if "weight" in self.others:
            known = known & (self.others["weight"] > 0)
        return known & (self.others["node"] < 0) if "node" in self.others else known


def given(batch: Any) -> Given:
    """Return the parts of a batch.

    Args:
        batch: (inputs, target), (inputs, target, index), a mapping with "inputs", "target" and any of "node", "weight"
            and "index", or a `labelkin.data.Minibatch`.

    >>> import torch
    >>> given((torch.zeros(2, 3), torch.tensor([0, 1]))).target
    tensor([0, 1])
    """
    if isinstance(batch, Minibatch):
        weight = {"weight": batch.weight} if batch.weighted else {}
        return Given(batch.inputs, batch.targets, {"index": batch.index, **weight})
    if isinstance(batch, Mapping) and {"inputs", "target"} <= set(batch) <= {"inputs", "target", *FIELDS}:
        return Given(batch["inputs"], batch["target"], {name: batch[name] for name in FIELDS if name in batch})
    if isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
        return Given(batch[0], batch[1], dict(zip(("index",), batch[2:], strict=False)))
    got = f"a mapping with {listed(list(batch))}" if isinstance(batch, Mapping) else f"{type(batch).__name__}"
    raise InputError(
        "batch: expected (inputs, target), (inputs, target, index), or a mapping with 'inputs' and 'target' and any of "
        f"'node', 'weight' and 'index', got {got}; let the data loader's collate_fn return one of these."
    )


def metrics_for(objective: Objective, taxonomy: Taxonomy | None) -> nn.ModuleDict:
    """Return the metrics of an objective by name: accuracy, calibration error, and with a tree severity, cost and F1.

    The tree is put into the order of the objective's classes, if they have names.
    """
    if taxonomy is not None and not isinstance(objective.classes, int):
        taxonomy = taxonomy.reorder(objective.classes)
    found: dict[str, nn.Module] = {"accuracy": metrics.Accuracy()}
    if objective.has_probabilities:
        found["calibration_error"] = metrics.CalibrationError()
    if taxonomy is not None:
        found["severity"] = metrics.MistakeSeverity(taxonomy=taxonomy)
        found["cost"] = metrics.AverageDistance(taxonomy=taxonomy)
        found["hierarchical_f1"] = metrics.HierarchicalF1(taxonomy=taxonomy)
    return nn.ModuleDict(found)


def update_metrics(found: nn.ModuleDict, objective: Objective, outputs: Any, batch: Given) -> None:
    """Add the outputs of a batch to the metrics of `metrics_for`; samples without a class are left out."""
    rows, scores = batch.counted(objective.ignore_index), objective.scores(outputs)
    target, scores = batch.target[rows], scores[rows]
    for name, metric in found.items():
        if name == "calibration_error":
            metric.update(objective.probs(outputs)[rows], target)  # type: ignore[operator]
        else:
            metric.update(scores if name == "cost" else scores.argmax(-1), target)  # type: ignore[operator]
