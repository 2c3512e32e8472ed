"""From plain values to what is trained: tree, context, model."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from labelkin import models, relations
from labelkin._checks import InputError, check_choice
from labelkin.data import ArraySplit, Dataset, FileSplit, class_vectors
from labelkin.objectives import OBJECTIVES, Context
from labelkin.structure import Taxonomy
from labelkin.structure.named import load_tree
from labelkin.training.model import Model

CONTEXT_IMAGES = 5_000  # of a streamed set that its tree and relation are taken from


def taxonomy_for(
    choice: Taxonomy | Mapping[str, Any] | str | os.PathLike[str] | None, dataset: Dataset
) -> Taxonomy | None:
    """The tree that was asked for, over the data's classes; None where there is none and none was asked for."""
    if choice is None:
        return dataset.taxonomy
    if isinstance(choice, Mapping):
        choice = Taxonomy.from_nested(choice)
    if isinstance(choice, Taxonomy):
        return choice.restrict(dataset.classes)
    if choice == "wordnet":
        return Taxonomy.from_wordnet(dataset.classes, rule="shortest")
    return load_tree(choice, others=("wordnet",)).restrict(dataset.classes)


def context_for(dataset: Dataset, taxonomy: Taxonomy | None) -> Context:
    """What objectives may be built from, with the training data at hand; features are not known yet."""
    train = dataset.train
    if isinstance(train, FileSplit):
        train = train.take(torch.arange(0, len(train), max(1, len(train) // CONTEXT_IMAGES))).in_memory()
    assert isinstance(train, ArraySplit)
    return Context(
        classes=dataset.classes,
        taxonomy=taxonomy,
        inputs=train.inputs,
        targets=train.targets,
        train_samples=len(dataset.train),
    )


def resolved(options: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """Options with what words in them stand for: `vectors` by an encoder's name or a file, `relation` as `embedding:` and
    such a word, or a file of K x K numbers. Names of relations that follow from the context stay as they are.
    """
    found = dict(options)
    if isinstance(found.get("vectors"), str):
        found["vectors"] = class_vectors(found["vectors"], classes)
    if isinstance(relation := found.get("relation"), str):
        kind, colon, source = relation.partition(":")
        if kind == "embedding" and colon:
            found["relation"] = relations.embedding(class_vectors(source, classes))
        elif Path(relation).is_file():
            found["relation"] = _read_matrix(Path(relation))
    return found


def _read_matrix(path: Path) -> torch.Tensor:
    """K x K numbers of a .npy or .csv file."""
    check_choice("relation", path.suffix.lower(), (".npy", ".csv"))
    try:
        values = np.load(path) if path.suffix.lower() == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
        return torch.as_tensor(values, dtype=torch.float64)
    except (ValueError, TypeError, OSError) as error:
        raise InputError(f"{path}: expected K x K numbers ({error}).") from error


def build_model(
    objective: str, options: Mapping[str, Any], backbone: str, shape: tuple[int, ...], context: Context, *, seed: int
) -> Model:
    """The model of a run; the backbone's first weights depend on the seed alone, so that all objectives share them."""
    torch.manual_seed(seed)
    net = models.build(backbone, shape)
    head = OBJECTIVES[objective].build(context.with_features(net.features), **options)
    return Model(net, head)
