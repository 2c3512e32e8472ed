"""Inputs of the estimator's training: the taxonomy, the objective's context and a separate random state."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, listed
from labelkin._sparse_rows import SparseRows
from labelkin.data import ArraySplit, Dataset, calibration_part
from labelkin.objectives import OBJECTIVES, Context
from labelkin.structure import Taxonomy, load_tree

Floats = npt.NDArray[np.floating[Any]]


def given_tree(choice: Any) -> Taxonomy | None:
    """Return the whole taxonomy that the caller passed; None without one, and for "wordnet", where all labels are classes."""
    if choice is None or (isinstance(choice, str) and choice == "wordnet"):
        return None
    if isinstance(choice, Mapping):
        return Taxonomy.from_nested(choice)
    return choice if isinstance(choice, Taxonomy) else load_tree(choice, others=("wordnet",))


def inner_nodes(labels: npt.NDArray[Any], tree: Taxonomy | None, objective: str) -> npt.NDArray[np.bool_]:
    """Return which of the labels are inner nodes of the tree."""
    names = [] if tree is None else [name for name, leaf in zip(tree.names, tree.is_leaf, strict=True) if not leaf]
    inner = np.isin([str(label) for label in labels.tolist()], names)
    if inner.any() and not OBJECTIVES[objective].takes_nodes:
        raise InputError(
            f"y: {listed(labels[inner].tolist())} name inner nodes of the taxonomy, but the objective {objective!r} takes only "
            "classes; use an objective such as 'hierarchical', or label these samples with classes."
        )
    return inner


def held_out_rows(place: npt.NDArray[np.int64], inner: npt.NDArray[np.bool_], share: float) -> npt.NDArray[np.bool_]:
    """Return a mask of the samples to calibrate on, which all have a class; the same for every seed and objective.

    Args:
        place: (n,) positions of the labels of the samples.
        inner: Whether each label is an inner node.
        share: The share of the samples.
    """
    classed = np.flatnonzero(~inner[place])
    parts = calibration_part(torch.from_numpy(place[classed]), share, seed=0) if share else None
    held = np.zeros(len(place), dtype=np.bool_)
    if parts is not None:
        held[classed[parts.part.numpy()]] = True
    return held


def objective_context(
    data: Dataset, taxonomy: Taxonomy | None, weight: Floats, known: npt.NDArray[np.bool_]
) -> Context:
    """Return the context of an objective, with the samples whose class is known and their weights."""
    assert isinstance(data.train, ArraySplit)
    rows = torch.from_numpy(known)
    inputs = cast(Tensor | SparseRows, data.train.inputs)  # see `standardized_dataset`
    return Context(
        classes=data.classes,
        taxonomy=taxonomy,
        inputs=inputs.take(rows) if isinstance(inputs, SparseRows) else inputs[rows],
        targets=data.train.targets[rows],
        weights=None if (weight == weight[0]).all() else torch.from_numpy(weight[known]),
        train_samples=len(data.train),
    )


def own_random_state() -> AbstractContextManager[None]:
    """Return a context manager in which seeding torch does not affect the caller's random numbers."""
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.random.fork_rng(devices=range(torch.cuda.device_count()) if used else ())
