"""From plain values to what is trained: tree, context, model."""

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch

from labelkin import models
from labelkin.data import ArraySplit, Dataset, FileSplit
from labelkin.objectives import OBJECTIVES, Context
from labelkin.structure import Taxonomy
from labelkin.structure.named import load_tree
from labelkin.training.model import Model

CONTEXT_IMAGES = 5_000  # of a streamed set that its tree and relation are taken from


def taxonomy_for(choice: Taxonomy | str | os.PathLike[str] | None, dataset: Dataset) -> Taxonomy | None:
    """The tree that was asked for, over the data's classes; None where there is none and none was asked for."""
    if choice is None:
        return dataset.taxonomy
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


def build_model(
    objective: str, options: Mapping[str, Any], backbone: str, shape: tuple[int, ...], context: Context, *, seed: int
) -> Model:
    """The model of a run; the backbone's first weights depend on the seed alone, so that all objectives share them."""
    torch.manual_seed(seed)
    net = models.build(backbone, shape)
    known = {field.name: getattr(context, field.name) for field in fields(context)}
    head = OBJECTIVES[objective].build(Context(**{**known, "features": net.features}), **options)
    return Model(net, head)
