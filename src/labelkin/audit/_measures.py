"""Accuracy, hierarchical metrics, cost and the most expensive confusions, with confidence intervals."""

import warnings
from collections.abc import Sequence
from math import nan, sqrt

import numpy as np
import torch
from torch import Tensor

from labelkin import metrics
from labelkin.analysis import costliest
from labelkin.audit._expected_moments import expected_moments
from labelkin.audit._findings import Basics, Cost, Hierarchy, Interval, Worst
from labelkin.audit._paired import Z
from labelkin.audit._pairs import Pairs
from labelkin.audit._predictions import Predictions
from labelkin.structure import Taxonomy

BEST = 5  # classes in top-5 accuracy and distance@5


def share_interval(hits: int, count: int) -> Interval:
    """Return Wilson's interval of a share; it stays within 0 and 1."""
    share, spread = hits / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    reach = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    return Interval(max(0.0, middle - reach), min(1.0, middle + reach))


def mean_interval(values: Tensor, times: Tensor, *, expected_variance: float = 0.0) -> Interval:
    """Return the interval of a mean over samples, by the normal distribution; NaN for a single sample.

    Args:
        values: (P,) different values.
        times: (P,) how many samples have each.
        expected_variance: The variance to use if that of the values is smaller.
    """
    count, numbers = int(times.sum()), values.double()
    middle = float((times * numbers).sum() / count)
    square = max(float((times * (numbers - middle).square()).sum()), count * expected_variance)
    reach = Z * sqrt(square / (count - 1) / count) if count > 1 else nan
    return Interval(middle - reach, middle + reach)


def basics(given: Predictions) -> Basics:
    """Return accuracy and the number of mistakes."""
    count, wrong = len(given.true), int(given.pairs.mistakes.times.sum())
    top5 = nan
    if given.prob_rows is not None and len(given.classes) > BEST:
        hits = (metrics.top_k_accuracy(p, t, k=BEST).values for p, t in given.prob_rows.beside(given.true))
        top5 = sum(int(part.sum()) for part in hits) / count
    return Basics((count - wrong) / count, share_interval(count - wrong, count), top5, wrong)


def hierarchy(given: Predictions, tree: Taxonomy) -> Hierarchy:
    """Return the metrics on the taxonomy."""
    pairs = given.pairs
    pair = (pairs.predicted, pairs.true)
    counts, semantic = pairs.matrix(len(given.classes)), tree.distance("semantic")
    at_5 = nan
    if given.prob_rows is not None and len(given.classes) >= BEST:
        far = (metrics.average_distance(p, t, tree, k=BEST).values for p, t in given.prob_rows.beside(given.true))
        at_5 = sum(float(part.double().sum()) for part in far) / len(given.true)
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
    wrong = pairs.mistakes
    depth = torch.from_numpy(tree.depth[tree.leaves])
    above = {name: depth[part] for name, part in (("true", pairs.true), ("predicted", pairs.predicted))}
    others = torch.from_numpy(tree.distance("height")).sum(1) / (len(given.classes) - 1)
    return Hierarchy(
        int(tree.distance("height").max()),  # below the tree's own height where the root has a single child
        wrong.mean(heights(tree, wrong)),
        wrong.mean(others[wrong.true]),
        pairs.mean(heights(tree, pairs)),
        at_5,
        # Micro averages: a pair counts as often as the metric counts its nodes.
        pairs.mean(metrics.hierarchical_precision(*pair, tree).values, above["predicted"]),
        pairs.mean(metrics.hierarchical_recall(*pair, tree).values, above["true"]),
        pairs.mean(metrics.hierarchical_f1(*pair, tree).values, above["true"] + above["predicted"]),
        *weighted,
    )


def heights(tree: Taxonomy, pairs: Pairs) -> Tensor:
    """Return the distances of pairs (P,)."""
    return torch.from_numpy(np.asarray(tree.distance("height", pairs.true.numpy(), pairs.predicted.numpy())))


def cost(given: Predictions, costs: Tensor) -> Cost:
    """Return the mean cost per sample; its interval counts mistakes that are too rare to occur, if there are probabilities."""
    paid = metrics.expected_cost(given.pairs.predicted, given.pairs.true, costs).values
    expected = 0.0
    if given.prob_rows is not None:
        sums = torch.zeros(5, dtype=torch.float64)
        for _, block in given.prob_rows.blocks():
            best = block.argmax(-1)
            sums += expected_moments(block, best, best, None, costs).sum(1)
        mean, _, square, *_ = (sums / len(given.true)).tolist()
        expected = square - mean * mean
    return Cost(given.pairs.mean(paid), mean_interval(paid, given.pairs.times, expected_variance=expected))


def worst(given: Predictions, tree: Taxonomy | None, costs: Tensor | None, *, top: int) -> Worst:
    """Return the `top` confusions that cost most: by `costs`, otherwise by the tree, otherwise by their number."""
    by, distances = _weights(given.classes, tree, costs)
    true, predicted, times = given.pairs
    found = costliest(predicted, true, times=times, names=given.classes, distances=distances, top=top)
    return Worst(by, found.confusions, found.total)


def _weights(classes: Sequence[str], tree: Taxonomy | None, costs: Tensor | None) -> tuple[str, Tensor]:
    if costs is not None:
        return "costs", costs
    if tree is not None:
        return "taxonomy", torch.from_numpy(tree.distance("height"))
    return "times", torch.ones(len(classes), len(classes))
