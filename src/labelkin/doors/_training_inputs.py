"""Inputs of the estimator's training: the taxonomy, the objective's context and a separate random state."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from labelkin.data import ArraySplit, Dataset
from labelkin.objectives import Context
from labelkin.structure import Taxonomy, load_tree

Floats = npt.NDArray[np.floating[Any]]


def given_tree(choice: Any) -> Taxonomy | None:
    """Return the whole taxonomy that the caller passed; None without one, and for "wordnet", where all labels are classes."""
    if choice is None or (isinstance(choice, str) and choice == "wordnet"):
        return None
    if isinstance(choice, Mapping):
        return Taxonomy.from_nested(choice)
    return choice if isinstance(choice, Taxonomy) else load_tree(choice, others=("wordnet",))


def objective_context(
    data: Dataset, taxonomy: Taxonomy | None, weight: Floats, known: npt.NDArray[np.bool_]
) -> Context:
    """Return the context of an objective, with the samples whose class is known and their weights."""
    assert isinstance(data.train, ArraySplit)
    rows = torch.from_numpy(known)
    return Context(
        classes=data.classes,
        taxonomy=taxonomy,
        inputs=data.train.inputs[rows],
        targets=data.train.targets[rows],
        weights=None if (weight == weight[0]).all() else torch.from_numpy(weight[known]),
        train_samples=len(data.train),
    )


def own_random_state() -> AbstractContextManager[None]:
    """Return a context manager in which seeding torch does not affect the caller's random numbers."""
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.random.fork_rng(devices=range(torch.cuda.device_count()) if used else ())
