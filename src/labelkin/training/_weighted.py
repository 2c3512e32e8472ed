"""Classification of table rows with sample weights, and with inner nodes of a taxonomy as labels."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.data import ArraySplit, Batches, Dataset, Minibatch, Normalize
from labelkin.structure import Taxonomy
from labelkin.training._partial import PartialClassify
from labelkin.training._settings import Settings
from labelkin.training._task import Place


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


def standardized_dataset(columns: Tensor, targets: npt.NDArray[np.int64], classes: npt.NDArray[Any]) -> Dataset:
    """Return a dataset of columns that are standardized already."""
    split = ArraySplit(columns, torch.from_numpy(targets))
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
