"""Precision, recall, F1 and accuracy with errors weighted by semantic distance (002 Sec. 4.2).

If all distances are 1, they are the usual metrics. `values` has one entry per class, NaN if undefined for the class.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, listed, renamed
from labelkin.metrics._result import Metric, warn_undefined
from labelkin.metrics._validation import Table, check_pair, distance_table, table


class WeightedCounts(NamedTuple):
    """Hits and weighted errors, one entry per class.

    Example:
        >>> from labelkin import metrics
        >>> metrics.weighted_counts([[5, 1], [0, 4]], [[0, 2], [2, 0]]).false_negatives
        tensor([2., 0.], dtype=torch.float64)
    """

    hits: Tensor
    false_negatives: Tensor  # samples of the class predicted as others
    false_positives: Tensor  # samples of others predicted as the class


def confusion_matrix(predicted: Tensor, target: Tensor, classes: int) -> Tensor:
    """Count the samples of each class by predicted class.

    Args:
        predicted: (n,) predicted class positions.
        target: (n,) true class positions.
        classes: The number of classes.

    Returns:
        (K, K) counts, with true classes as rows and predicted classes as columns.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), 2)
        tensor([[1, 1],
                [0, 1]])
    """
    check_count("classes", classes)
    check_pair(predicted, target, classes)
    cells = target.long() * classes + predicted.long()
    return cells.bincount(minlength=classes * classes).view(classes, classes)


def weighted_counts(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> WeightedCounts:
    """Return hits, weighted false negatives and weighted false positives of each class (wFN and wFP of 002).

    Args:
        confusion: (K, K) counts with true classes as rows. The matrices printed in 002 have predicted classes as rows.
        distances: (K, K) distances between the classes, by which errors are weighted.
        normalize: Divide the distances by their mean over pairs of different classes, so that errors that are spread evenly
            over the classes count as in the plain metrics.
        normalise: The former spelling of `normalize`, deprecated.

    Returns:
        The counts as `WeightedCounts`.

    Example:
        >>> from labelkin import metrics
        >>> metrics.weighted_counts([[5, 1], [0, 4]], [[0, 2], [2, 0]]).false_positives
        tensor([0., 2.], dtype=torch.float64)
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
    """Return hits / (hits + weighted false positives), averaged over classes: 0 to 1, higher is better.

    Args:
        confusion: (K, K) counts with true classes as rows.
        distances: (K, K) distances between the classes.
        normalize: Divide the distances by their mean over pairs of different classes.
        normalise: The former spelling of `normalize`, deprecated.

    Returns:
        A `Metric` with one value per class. A class that is never predicted is NaN, with a warning, and is left out of the
        mean.

    Example:
        >>> from labelkin import metrics
        >>> metrics.weighted_precision([[4, 2], [0, 4]], [[0, 2], [2, 0]]).mean
        0.75
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    hits, _, positives = weighted_counts(confusion, distances, normalize=normalize)
    return _macro("weighted_precision", hits, hits + positives, "never predicted")


def weighted_recall(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> Metric:
    """Return hits / (hits + weighted false negatives), averaged over classes: 0 to 1, higher is better.

    Args:
        confusion: (K, K) counts with true classes as rows.
        distances: (K, K) distances between the classes.
        normalize: Divide the distances by their mean over pairs of different classes.
        normalise: The former spelling of `normalize`, deprecated.

    Returns:
        A `Metric` with one value per class. A class without samples is NaN, with a warning, and is left out of the mean.

    Example:
        >>> from labelkin import metrics
        >>> metrics.weighted_recall([[4, 2], [0, 4]], [[0, 2], [2, 0]]).mean
        0.75
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    hits, negatives, _ = weighted_counts(confusion, distances, normalize=normalize)
    return _macro("weighted_recall", hits, hits + negatives, "without samples")


def weighted_f1(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> Metric:
    """Return the harmonic mean of weighted precision and recall, averaged over classes: 0 to 1, higher is better.

    Args:
        confusion: (K, K) counts with true classes as rows.
        distances: (K, K) distances between the classes.
        normalize: Divide the distances by their mean over pairs of different classes.
        normalise: The former spelling of `normalize`, deprecated.

    Returns:
        A `Metric` with one value per class: 0 for a class with samples or predictions but no hit. A class with neither is
        NaN, with a warning, and is left out of the mean.

    Example:
        >>> from labelkin import metrics
        >>> metrics.weighted_f1([[4, 1], [1, 4]], [[0, 4], [4, 0]]).mean
        0.5
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    hits, negatives, positives = weighted_counts(confusion, distances, normalize=normalize)
    return _macro("weighted_f1", 2 * hits, 2 * hits + negatives + positives, "without samples or predictions")


def weighted_accuracy(
    confusion: Table, distances: Table, *, normalize: bool = False, normalise: bool | None = None
) -> Metric:
    """Return all hits / (all hits + all weighted false negatives): 0 to 1, higher is better.

    Args:
        confusion: (K, K) counts with true classes as rows.
        distances: (K, K) distances between the classes.
        normalize: Divide the distances by their mean over pairs of different classes.
        normalise: The former spelling of `normalize`, deprecated.

    Returns:
        A `Metric` whose mean is over all samples and whose values are the weighted recalls of the classes. A class without
        samples is NaN, with a warning; so is the mean without any samples.

    Example:
        >>> from labelkin import metrics
        >>> metrics.weighted_accuracy([[4, 1], [1, 4]], [[0, 4], [4, 0]]).mean
        0.5
    """
    normalize = renamed("normalize", normalize, "normalise", normalise)
    hits, negatives, _ = weighted_counts(confusion, distances, normalize=normalize)
    per_class = _macro("weighted_accuracy", hits, hits + negatives, "without samples").values
    return Metric(float(hits.sum() / (hits + negatives).sum()), per_class)


def scaled(distances: Table, classes: int, *, normalize: bool) -> Tensor:
    """Return checked distances, divided by their mean over pairs of different classes if `normalize` is set."""
    found = distance_table("distances", distances, classes)
    if not normalize:
        return found
    mean = found.sum() / (classes * (classes - 1))
    if not mean > 0:
        raise InputError("distances: expected distances above 0 to normalize by, got only zeros; pass normalize=False.")
    return found / mean


def _macro(metric: str, part: Tensor, whole: Tensor, reason: str) -> Metric:
    per_class = part / whole  # 0/0, and nothing else, is NaN
    undefined = per_class.isnan().nonzero().flatten().tolist()
    if undefined:
        which = f"{len(undefined)} of {len(whole)} classes ({listed(undefined)})"
        warn_undefined(f"{metric}: undefined (NaN) for {which}, {reason}.", stacklevel=4)
    return Metric(float(torch.nanmean(per_class)), per_class)
