"""How good the predictions are, and how bad when they are wrong."""

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

BEST = 5


def basics(given: Predictions) -> Basics:
    right = int((given.predicted == given.target).sum())
    count = len(given.target)
    top5 = nan
    if given.probs is not None and len(given.classes) > BEST:
        top5 = metrics.top_k_accuracy(given.probs, given.target, k=BEST).mean
    return Basics(right / count, share_interval(right, count), top5, count - right)


def hierarchy(given: Predictions, tree: Taxonomy) -> Hierarchy:
    pair = (given.predicted, given.target)
    counts = metrics.confusion_matrix(*pair, len(given.classes))
    semantic = tree.distance("semantic")
    at_5 = nan
    if given.probs is not None and len(given.classes) >= BEST:
        at_5 = metrics.average_distance(given.probs, given.target, tree, k=BEST).mean
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics.UndefinedMetric)  # NaN says it; classes without samples have their note
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
        int(tree.height[0]),
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
    """The distance of each class from the true one; (n,) or (n, k) as `classes` are."""
    true = target.numpy().reshape(-1, *[1] * (classes.ndim - 1))
    return torch.from_numpy(np.asarray(tree.distance("height", true, classes.numpy())))


def cost(given: Predictions, costs: Tensor) -> Cost:
    found = metrics.expected_cost(given.predicted, given.target, costs)
    return Cost(found.mean, mean_interval(found.values))


def worst(given: Predictions, tree: Taxonomy | None, costs: Tensor | None, *, top: int) -> Worst:
    """The confusions that cost most: by the costs given, else by the tree, else by how often they happen."""
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
    mistaken = given.target[given.predicted != given.target]
    if not len(mistaken):
        return nan
    others = tree.distance("height").sum(1) / (len(given.classes) - 1)
    return float(others[mistaken.numpy()].mean())
