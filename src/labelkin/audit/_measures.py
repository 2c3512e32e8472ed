"""Accuracy, hierarchical metrics, cost and the most expensive confusions."""

import warnings
from collections.abc import Sequence
from math import nan

import numpy as np
import torch
from torch import Tensor

from labelkin import metrics
from labelkin.analysis import costliest
from labelkin.audit._findings import Basics, Cost, Hierarchy, Worst
from labelkin.audit._predictions import Predictions
from labelkin.audit._statistics import mean_interval, share_interval
from labelkin.structure import Taxonomy

BEST = 5  # classes in top-5 accuracy and distance@5


def basics(given: Predictions) -> Basics:
    """Return accuracy and the number of mistakes."""
    right = int((given.predicted == given.target).sum())
    count = len(given.target)
    top5 = nan
    if given.prob_rows is not None and len(given.classes) > BEST:
        (hits,) = given.prob_rows.each(lambda p, t: (metrics.top_k_accuracy(p, t, k=BEST).values,), given.target)
        top5 = float(hits.double().mean())
    return Basics(right / count, share_interval(right, count), top5, count - right)


def hierarchy(given: Predictions, tree: Taxonomy) -> Hierarchy:
    """Return the metrics on the taxonomy."""
    pair = (given.predicted, given.target)
    counts = metrics.confusion_matrix(*pair, len(given.classes))
    semantic = tree.distance("semantic")
    at_5 = nan
    if given.prob_rows is not None and len(given.classes) >= BEST:
        (far,) = given.prob_rows.each(lambda p, t: (metrics.average_distance(p, t, tree, k=BEST).values,), given.target)
        at_5 = float(far.double().mean())
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", metrics.UndefinedMetric
        )  # the result is NaN; a note lists classes without samples
        weighted = [
            measure(counts, semantic).mean
            for measure in (
                metrics.weighted_accuracy,
                metrics.weighted_precision,
                metrics.weighted_recall,
                metrics.weighted_f1,
            )
        ]
        severity = metrics.mistake_severity(*pair, tree).mean
    return Hierarchy(
        int(tree.distance("height").max()),  # below the tree's own height where the root has a single child
        severity,
        _severity_by_chance(given, tree),
        float(heights(tree, given.target, given.predicted).mean()),
        at_5,
        metrics.hierarchical_precision(*pair, tree).mean,
        metrics.hierarchical_recall(*pair, tree).mean,
        metrics.hierarchical_f1(*pair, tree).mean,
        *weighted,
    )


def heights(tree: Taxonomy, target: Tensor, classes: Tensor) -> Tensor:
    """Return the distance of each class to the true one, in the shape of `classes`: (n,) or (n, k)."""
    true = target.numpy().reshape(-1, *[1] * (classes.ndim - 1))
    return torch.from_numpy(np.asarray(tree.distance("height", true, classes.numpy())))


def cost(given: Predictions, costs: Tensor) -> Cost:
    """Return the mean cost per sample."""
    found = metrics.expected_cost(given.predicted, given.target, costs)
    return Cost(found.mean, mean_interval(found.values))


def worst(given: Predictions, tree: Taxonomy | None, costs: Tensor | None, *, top: int) -> Worst:
    """Return the `top` confusions that cost most: by `costs`, otherwise by the tree, otherwise by their number."""
    by, distances = _weights(given.classes, tree, costs)
    found = costliest(given.predicted, given.target, names=given.classes, distances=distances, top=top)
    return Worst(by, found.confusions, found.total)


def _weights(classes: Sequence[str], tree: Taxonomy | None, costs: Tensor | None) -> tuple[str, Tensor]:
    if costs is not None:
        return "costs", costs
    if tree is not None:
        return "taxonomy", torch.from_numpy(tree.distance("height"))
    return "times", torch.ones(len(classes), len(classes))


def _severity_by_chance(given: Predictions, tree: Taxonomy) -> float:
    """Return the severity if mistakes were spread evenly over the other classes."""
    mistaken = given.target[given.predicted != given.target]
    if not len(mistaken):
        return nan
    others = tree.distance("height").sum(1) / (len(given.classes) - 1)
    return float(others[mistaken.numpy()].mean())
