"""The labels that a run learned to be similar (003 Table 5)."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import torch

from labelkin._arrays import ranked
from labelkin._checks import InputError, check_count, listed, near
from labelkin.data.corpora import END, UNKNOWN
from labelkin.experiments.predictor import load_run
from labelkin.experiments.translator import is_translation, load_translator
from labelkin.objectives import LabelEmbedding
from labelkin.training import Model


class Neighbours(NamedTuple):
    label: str
    nearest: list[str]  # nearest first
    scores: list[float]  # entries of the label's embedding


@torch.no_grad()
def nearest_labels(run: str | os.PathLike[str], labels: Sequence[str], *, top: int = 10) -> list[Neighbours]:
    """Return the `top` labels with the largest `e_y[i]` for each label y.

    The label itself and the end and unknown tokens are left out. Works for runs that learn an embedding: label-embedding and
    compressed-label-embedding.
    """
    check_count("top", top)
    model, names, signs = _labels(run)
    if not isinstance(model.objective, LabelEmbedding):
        raise InputError(
            f"{run}: the run's objective learns no label embedding; train with label-embedding or compressed-label-embedding."
        )
    positions = [_position(label, names) for label in labels]
    most = len(names) - len(signs) - 1
    if top > most:
        raise InputError(f"top: expected at most {most}, the number of other labels, got {top}.")
    rows = model.objective.embed(torch.tensor(positions))
    rows[torch.arange(len(positions)), positions] = -torch.inf
    rows[:, signs] = -torch.inf
    places = ranked(rows, top)
    scores = rows.gather(-1, places)
    found = zip(labels, places.tolist(), scores.tolist(), strict=True)
    return [Neighbours(label, [names[i] for i in nearest], values) for label, nearest, values in found]


def _labels(run: str | os.PathLike[str]) -> tuple[Model, tuple[str, ...], list[int]]:
    """Return a run's model, the names of its labels, and the positions of tokens that are not words."""
    if is_translation(run):
        translator = load_translator(run)
        return translator.model, translator.target.vocabulary.words, [END, UNKNOWN]
    predictor = load_run(run)
    return predictor.model, predictor.classes, []


def _position(label: str, names: Sequence[str]) -> int:
    if label not in names:
        hint = near(label, names) or f" The first: {listed(names[2:])}."
        raise InputError(f"label: {label!r} is not among the run's {len(names)} labels.{hint}")
    return names.index(label)
