"""Precision, recall, F1 and accuracy in which every error counts its semantic distance (002, Sec. 4.2).

With a distance of 1 between any two classes they are the usual ones. `values` has one entry per class, NaN where it is
undefined for a class.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, listed, renamed
from labelkin.metrics._result import Metric, warn_undefined
from labelkin.metrics._validation import Table, check_pair, distance_table, table


class WeightedCounts(NamedTuple):
    """One number a class; errors count their distance."""

    hits: Tensor
    false_negatives: Tensor  # samples of the class predicted as others
    false_positives: Tensor  # samples of others predicted as the class


def confusion_matrix(predicted: Tensor, target: Tensor, classes: int) -> Tensor:
    """How many samples of each class were predicted as which: (K, K) counts, rows = true, columns = predicted class."""
    check_count("classes", classes)
    check_pair(predicted, target, classes)
    cells = target.long() * classes + predicted.long()
    return cells.bincount(minlength=classes * classes).view(classes, classes)


def weighted_counts(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> WeightedCounts:
    """Hits, and the weighted false negatives and positives of each class (002's wFN and wFP).

    `confusion` has the true classes as rows; the matrices printed in 002 hold with the predicted ones as rows.
    `normalize` divides the distances by their mean over pairs of different classes, so that errors spread evenly over
    the classes count as much as in the plain metrics.
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    counts = table("confusion", confusion)
    if (counts < 0).any():
        raise InputError(f"confusion: expected counts of 0 or more, got {float(counts.min()):.3g}.")
    errors = counts * scaled(distances, len(counts), normalize=normalize).to(counts.device)
    return WeightedCounts(counts.diagonal(), errors.sum(1), errors.sum(0))


def weighted_precision(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> Metric:
    """Hits / (hits + weighted false positives) of each class, and their macro average: 0 to 1, higher is better.

    Undefined for a class that is never predicted: NaN, with a warning; the average is over the other classes.
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    hits, _, positives = weighted_counts(confusion, distances, normalize=normalize)
    return _macro("weighted_precision", hits, hits + positives, "never predicted")


def weighted_recall(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> Metric:
    """Hits / (hits + weighted false negatives) of each class, and their macro average: 0 to 1, higher is better.

    Undefined for a class without samples: NaN, with a warning; the average is over the other classes.
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    hits, negatives, _ = weighted_counts(confusion, distances, normalize=normalize)
    return _macro("weighted_recall", hits, hits + negatives, "without samples")


def weighted_f1(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> Metric:
    """The harmonic mean of weighted precision and recall, and its macro average: 0 to 1, higher is better.

    Two hits over two hits plus the weighted errors: 0 for a class that has samples or predictions and no hit. Undefined
    for a class with neither: NaN, with a warning; the average is over the other classes.
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    hits, negatives, positives = weighted_counts(confusion, distances, normalize=normalize)
    return _macro("weighted_f1", 2 * hits, 2 * hits + negatives + positives, "without samples or predictions")


def weighted_accuracy(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> Metric:
    """All hits / (all hits + all weighted false negatives), and the same of each class: 0 to 1, higher is better.

    Per class it is the weighted recall; overall all samples are pooled. Undefined for a class without samples, and
    overall without any: NaN, with a warning.
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    hits, negatives, _ = weighted_counts(confusion, distances, normalize=normalize)
    per_class = _macro("weighted_accuracy", hits, hits + negatives, "without samples").values
    return Metric(float(hits.sum() / (hits + negatives).sum()), per_class)


def scaled(distances: Table, classes: int, *, normalize: bool) -> Tensor:
    """The distances, checked, divided by their mean over pairs of different classes with `normalize`."""
    found = distance_table("distances", distances, classes)
    if not normalize:
        return found
    mean = found.sum() / (classes * (classes - 1))
    if not mean > 0:
        raise InputError("distances: they are all 0 and have no mean to normalize by; pass normalize=False.")
    return found / mean


def _macro(metric: str, part: Tensor, whole: Tensor, reason: str) -> Metric:
    per_class = part / whole  # 0/0, and nothing else, is NaN
    undefined = per_class.isnan().nonzero().flatten().tolist()
    if undefined:
        which = f"{len(undefined)} of {len(whole)} classes ({listed(undefined)})"
        warn_undefined(f"{metric}: undefined (NaN) for {which}, {reason}.", stacklevel=4)
    return Metric(float(torch.nanmean(per_class)), per_class)
