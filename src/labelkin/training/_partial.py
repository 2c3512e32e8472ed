"""Training on samples whose class is not known, only a node of the taxonomy above it; and on rows with sample weights."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, counted, listed
from labelkin._sparse_rows import SparseRows
from labelkin.data import ArraySplit, Batches, Dataset, Minibatch, Normalize, Split, joined
from labelkin.objectives import OBJECTIVES
from labelkin.structure import Taxonomy
from labelkin.training._settings import Settings, augmentations
from labelkin.training._task import Classify, Place


class PartialClassify(Classify):
    """Train a classifier on samples of which some are labeled with inner nodes.

    Args:
        dataset: The data set. `dataset.partial` is trained on as well, if it is given.
        taxonomy: The tree for hierarchical metrics; by default the data set's own, if it has one.
        node: The inner node of each training sample, shape (n,), or -1 if its class is known; None if all classes are known.
        costs: See `Classify`.
    """

    def __init__(
        self,
        dataset: Dataset,
        taxonomy: Taxonomy | None = None,
        *,
        node: Tensor | None = None,
        costs: Tensor | None = None,
    ) -> None:
        super().__init__(dataset, taxonomy, costs=costs)
        self.node = node

    @property
    def trained(self) -> Split:
        partial = self.dataset.partial
        if partial is None or self.node is None:
            return self.dataset.train
        unknown = partial.with_targets(torch.zeros_like(partial.targets))  # the node is used, not the class
        return joined(self.dataset.train, unknown)

    def batches(self, settings: Settings, place: Place) -> Batches:
        self.node = None if self.node is None else self.node.to(place.device)
        return super().batches(settings, place)

    def loss(self, model: Callable[..., Any], batch: Minibatch) -> Any:
        if self.node is None:
            return super().loss(model, batch)
        weight = batch.weight if batch.weighted else None
        return model(batch.inputs, batch.targets, index=batch.index, weight=weight, node=self.node[batch.index])


def nodes_of(dataset: Dataset, taxonomy: Taxonomy) -> Tensor:
    """Return the node of each sample of `dataset.train` (-1) and then of `dataset.partial`, in a taxonomy of the classes."""
    assert dataset.partial is not None
    missing = [name for name in dataset.partial_names if name not in taxonomy.names]
    if missing:
        raise InputError(
            f"{dataset.name}: samples are labeled with the node {listed(missing)}, which the taxonomy does not have; give one "
            "that has it, or leave these samples out with --partial none (partial='none' in Python)."
        )
    nodes = torch.tensor([taxonomy.node(name) for name in dataset.partial_names])
    return torch.cat([torch.full((len(dataset.train),), -1), nodes[dataset.partial.targets]])


def classify(
    dataset: Dataset,
    taxonomy: Taxonomy | None,
    objective: str,
    settings: Settings,
    *,
    partial: str,
    costs: Tensor | None = None,
) -> Classify:
    """Return the task of a run.

    Args:
        dataset: The data set.
        taxonomy: The tree over the classes.
        objective: The name of the objective.
        settings: The training settings.
        partial: With "drop", an objective that learns from classes only leaves out the samples of `dataset.partial`; else it
            is refused if there are any.
        costs: See `Classify`.
    """
    if dataset.partial is None:
        return Classify(dataset, taxonomy, costs=costs)
    if not OBJECTIVES[objective].takes_nodes:
        if partial == "drop":
            return Classify(dataset, taxonomy, costs=costs)
        able = [name for name, kind in OBJECTIVES.items() if kind.takes_nodes]
        raise InputError(
            f"objective: {objective!r} learns from classes only, but {counted(len(dataset.partial), 'training sample')} of "
            f"{dataset.name} have a node above the class as label, such as {dataset.partial_names[0]!r}; leave them out with "
            f"--partial drop (partial='drop' in Python), or use {listed(able, limit=9)}."
        )
    if augmentations(settings.augment).mix is not None:
        raise InputError(
            f"augment: samples without a class cannot be mixed, got {', '.join(settings.augment)}; leave mixup and cutmix "
            "out, or leave these samples out with --partial none (partial='none' in Python)."
        )
    if settings.sampler == "balanced" or settings.balanced is not None:
        raise InputError(
            "sampler: samples without a class cannot be balanced; use class_weight, or leave them out with --partial none."
        )
    assert taxonomy is not None
    return PartialClassify(dataset, taxonomy, node=nodes_of(dataset, taxonomy), costs=costs)


class WeightedClassify(PartialClassify):
    """Train a classifier with sample weights and labels that may be inner nodes; nothing is evaluated during training.

    Args:
        dataset: The training data.
        weight: Weights of the samples, shape (n,).
        node: The inner node of each sample, shape (n,), or -1 if its class is known; None if all classes are known.
    """

    parts_evaluated = ()

    def __init__(
        self, dataset: Dataset, weight: npt.NDArray[np.floating[Any]], node: npt.NDArray[np.int64] | None = None
    ) -> None:
        super().__init__(dataset, node=None if node is None else torch.from_numpy(node))
        self.weight = torch.from_numpy(weight / weight.mean())

    def batches(self, settings: Settings, place: Place) -> Batches:
        self.weight = self.weight.to(place.device)
        return super().batches(settings, place)

    def weighed(self, batch: Minibatch) -> Minibatch:
        return batch._replace(weight=batch.weight * self.weight[batch.index])


def standardized_dataset(
    columns: Tensor | SparseRows, targets: npt.NDArray[np.int64], classes: npt.NDArray[Any]
) -> Dataset:
    """Return a dataset of already standardized columns."""
    split = ArraySplit(cast(Tensor, columns), torch.from_numpy(targets))  # sparse rows are read as a tensor is
    names = tuple(str(label) for label in classes.tolist())
    unchanged = Normalize(torch.zeros(split.shape), torch.ones(split.shape))
    return Dataset(
        name="X", classes=names, train=split, test=split, normalization=unchanged
    )  # the test part is never used


def node_positions(
    labels: npt.NDArray[Any], inner: npt.NDArray[np.bool_], taxonomy: Taxonomy | None
) -> npt.NDArray[np.int64]:
    """Return the node of each label that is an inner node, and -1 for classes."""
    assert taxonomy is not None
    found = np.full(len(labels), -1, dtype=np.int64)
    for position in np.flatnonzero(inner):
        name = str(labels[position])
        if name not in taxonomy.names:
            raise InputError(
                f"y: no sample is labeled with a class below the inner node {name!r}; label some, or leave out the "
                f"samples of {name!r}."
            )
        found[position] = taxonomy.node(name)
    return found
