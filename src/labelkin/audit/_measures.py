"""Accuracy, hierarchical metrics, cost and the most expensive confusions, with confidence intervals; and the split of the
samples into a fitting half and a measuring half.
"""

import warnings
from collections.abc import Sequence
from math import nan, sqrt

import numpy as np
import torch
from torch import Tensor

from labelkin import metrics
from labelkin.analysis import costliest
from labelkin.audit._decision_findings import Saving
from labelkin.audit._findings import Basics, Cost, Difference, Hierarchy, Interval, Worst
from labelkin.audit._predictions import Predictions
from labelkin.decide import Halves, split_halves
from labelkin.structure import Taxonomy

LEAST_SAMPLES = 20  # fewer samples are not split into halves
Z = 1.959963984540054  # normal quantile of 0.975
BEST = 5  # classes in top-5 accuracy and distance@5


def split_if_enough(count: int, seed: int) -> Halves | None:
    """Split `count` samples into random halves; None if there are too few samples."""
    return None if count < LEAST_SAMPLES else split_halves(count, seed)


def share_interval(hits: int, count: int) -> Interval:
    """Return Wilson's interval of a share; it stays within 0 and 1."""
    share, spread = hits / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    reach = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    return Interval(max(0.0, middle - reach), min(1.0, middle + reach))


def mean_interval(values: Tensor) -> Interval:
    """Return the interval of a mean over samples, by the normal distribution; NaN for a single sample."""
    reach = Z * float(values.double().std()) / sqrt(len(values)) if len(values) > 1 else nan
    middle = float(values.double().mean())
    return Interval(middle - reach, middle + reach)


def mean_difference(before: Tensor, after: Tensor) -> Difference:
    """Return the difference of two means over the same samples."""
    ones = torch.ones(len(before), dtype=torch.float64)
    return ratio_difference((before, ones), (after, ones))


def ratio_difference(before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor]) -> Difference:
    """Return the difference of two ratios `sum(part) / sum(whole)` over the same samples.

    The severity is such a ratio: its `whole` counts the mistakes, which differ before and after. To first order, a sample
    moves a ratio by `(part - ratio * whole) / mean(whole)`; the interval uses the variance of the difference of these
    contributions. A ratio whose `whole` is 0 is NaN.
    """
    differ = int(((before[0] != after[0]) | (before[1] != after[1])).sum())
    ratios, contributions = [], []
    for part, whole in ((p.double(), w.double()) for p, w in (before, after)):
        if not whole.any():
            ratios.append(nan)
            continue
        ratios.append(float(part.sum() / whole.sum()))
        contributions.append((part - ratios[-1] * whole) / whole.mean())
    if len(contributions) < 2 or len(contributions[0]) < 2:
        return Difference(ratios[0], ratios[1], differ)
    change = ratios[1] - ratios[0]
    reach = Z * float((contributions[1] - contributions[0]).std()) / sqrt(len(contributions[0]))
    return Difference(ratios[0], ratios[1], differ, change, change - reach, change + reach)


def saving(before: Tensor, after: Tensor) -> Saving:
    """Return the share of the total cost `before` that `after` saves, over the same samples; NaN if nothing was spent.

    It is `1 - sum(after) / sum(before)`. The interval counts the variance of both sums, as in `ratio_difference`.
    """
    spent, left = before.double(), after.double()
    if not spent.any():
        return Saving(nan, nan, nan)
    ratio = float(left.sum() / spent.sum())
    if len(spent) < 2:
        return Saving(1 - ratio, nan, nan)
    reach = Z * float(((left - ratio * spent) / spent.mean()).std()) / sqrt(len(spent))
    return Saving(1 - ratio, 1 - ratio - reach, 1 - ratio + reach)


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
