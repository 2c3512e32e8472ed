"""Build the taxonomy, the context and the model of a run from plain values."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from labelkin import models, relations
from labelkin._checks import InputError, check_choice
from labelkin._numpy_files import load_numpy
from labelkin.data import ArraySplit, Dataset, FileSplit, TextSplit, Tokens, class_vectors
from labelkin.objectives import OBJECTIVES, Context
from labelkin.structure import Taxonomy, load_tree
from labelkin.training._cost_files import costs_for, has_names
from labelkin.training._model import Model

CONTEXT_IMAGES = 5_000  # images of a streamed data set that trees and relations are computed from


def taxonomy_for(
    choice: Taxonomy | Mapping[str, Any] | str | os.PathLike[str] | None, dataset: Dataset
) -> Taxonomy | None:
    """Return the taxonomy of a data set's classes.

    Args:
        choice: A taxonomy, a nested mapping of names, a file, a built-in tree's name or "wordnet"; it is restricted to the
            data's classes. None takes the data set's own taxonomy, which may be None.
        dataset: The data set.
    """
    if choice is None:
        return dataset.taxonomy
    if isinstance(choice, Mapping):
        choice = Taxonomy.from_nested(choice)
    if isinstance(choice, Taxonomy):
        return choice.restrict(dataset.classes)
    if choice == "wordnet":
        return Taxonomy.from_wordnet(dataset.classes, rule="shortest")
    return load_tree(choice, others=("wordnet",)).restrict(dataset.classes)


def context_for(dataset: Dataset, taxonomy: Taxonomy | None, *, side: int | None = None) -> Context:
    """Return the context that objectives are built from, with the training data but without the number of features.

    Args:
        dataset: The data set.
        taxonomy: The tree of its classes, if there is one.
        side: Height and width that larger images are reduced to; trees and relations need no more, and their cost grows with
            the number of pixels. None keeps all pixels.
    """
    train = dataset.train
    if isinstance(train, FileSplit):
        train = train.take(torch.arange(0, len(train), max(1, len(train) // CONTEXT_IMAGES))).in_memory()
    assert isinstance(train, ArraySplit)
    return Context(
        classes=dataset.classes,
        taxonomy=taxonomy,
        inputs=_as_vectors(train) if side is None else _reduced(train.inputs, side),
        targets=train.targets,
        train_samples=len(dataset.train),
    )


def _as_vectors(split: ArraySplit) -> torch.Tensor:
    """Return samples as vectors whose distances mean something; token ids become counts of tokens."""
    if isinstance(split, TextSplit) and isinstance(split.encoder, Tokens):
        return split.encoder.counted(split.inputs)
    return split.inputs


def _reduced(inputs: torch.Tensor, side: int) -> torch.Tensor:
    """Return images (n, C, H, W) with at most `side` pixels in height and width, each the mean of those it replaces."""
    if inputs.ndim != 4 or max(inputs.shape[2:]) <= side:
        return inputs
    size = min(side, inputs.shape[2]), min(side, inputs.shape[3])
    small = torch.cat([F.adaptive_avg_pool2d(part.float(), size) for part in torch.split(inputs, 256)])
    return small if inputs.is_floating_point() else small.round().to(inputs.dtype)


def resolved(options: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """Return an objective's options with names replaced by values.

    `vectors` may be an encoder's name or a file of class vectors. `relation` may be "embedding:" followed by such a name or
    file, or a file of K x K numbers. Other names of relations are left for the objective to resolve. `costs` may be a file of
    K x K numbers, or of costs by class name.
    """
    found = dict(options)
    if isinstance(found.get("vectors"), str):
        found["vectors"] = class_vectors(found["vectors"], classes)
    if isinstance(relation := found.get("relation"), str):
        kind, colon, source = relation.partition(":")
        if kind == "embedding" and colon:
            found["relation"] = relations.embedding(class_vectors(source, classes))
        elif Path(relation).is_file():
            found["relation"] = _read_matrix("relation", Path(relation))
    if isinstance(costs := found.get("costs"), str):
        found["costs"] = _costs(Path(costs), classes)
    return found


def _costs(path: Path, classes: Sequence[str]) -> torch.Tensor:
    """Read costs by class name, or K x K numbers in the order of the classes."""
    return costs_for(path, classes) if has_names(path) else _read_matrix("costs", path)


def _read_matrix(option: str, path: Path) -> torch.Tensor:
    """Read K x K numbers from the .npy or .csv file that an option names."""
    check_choice(option, path.suffix.lower(), (".npy", ".csv"))
    try:
        values = load_numpy(path) if path.suffix.lower() == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
        return torch.as_tensor(values, dtype=torch.float64)
    except (ValueError, TypeError, OSError) as error:
        raise InputError(f"{path}: expected a file of K x K numbers ({error}).") from error


def build_model(
    objective: str,
    options: Mapping[str, Any],
    backbone: str,
    shape: tuple[int, ...],
    context: Context,
    *,
    seed: int,
    preprocessing: models.Preprocessing | None = None,
    weights: bool = True,
    network: Mapping[str, Any] | None = None,
    dropout: float = 0.0,
    logit_offset: torch.Tensor | None = None,
) -> Model:
    """Build a model.

    The backbone's initial weights depend only on the seed, so that all objectives start from the same backbone.

    Args:
        objective: A name in `OBJECTIVES`.
        options: Options of the objective, as `resolved` returns them.
        backbone: A name that `models.build` knows.
        shape: The shape of one sample.
        context: Classes, taxonomy and training data for the objective.
        seed: Seed of the initial weights.
        preprocessing: The preprocessing that the backbone's weights expect; None does not change the inputs.
        weights: Whether to load the weights of a pretrained backbone; not needed if those of a run replace them.
        network: The layers of the backbone as `models.network_config` returned them, instead of those under its name.
        dropout: The probability with which a feature is set to 0 in training.
        logit_offset: See `Model`.
    """
    torch.manual_seed(seed)
    given: dict[str, Any] = {"pretrained": False} if not weights and models.is_pretrained(backbone) else {}
    given |= {} if network is None else {"config": network}
    net = models.build(backbone, shape, preprocessing=preprocessing, **given)
    head = OBJECTIVES[objective].build(context.with_features(net.features), **options)
    return Model(net, head, dropout=dropout, logit_offset=logit_offset)
