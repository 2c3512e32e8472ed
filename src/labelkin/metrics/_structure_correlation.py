"""Correlation between label vectors and a reference structure (001 Eq. 4)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice
from labelkin.metrics._result import Metric, warn_undefined
from labelkin.metrics._validation import Table, check_rows, distance_table

Given = Literal["vectors", "distances"]


@dataclass(frozen=True, eq=False)
class StructureCorrelation(Metric):
    """The result of `structure_correlation`, with one value per class, NaN for classes that are left out.

    Attributes:
        mean: The mean over the other classes.
        values: (K,) Kendall's tau-b of each class.
        dropped: The number of classes that are left out, because all their distances are equal.

    Example:
        >>> from labelkin import metrics
        >>> reference = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
        >>> metrics.structure_correlation([[0.0], [1.0], [3.0]], reference, given="vectors").dropped
        0
    """

    dropped: int  # classes whose distances are all equal, in the labels or in the reference


def structure_correlation(labels: Table, reference_distances: Table, *, given: Given) -> StructureCorrelation:
    """Return the mean over classes of Kendall's tau-b between distances of labels and distances in a reference (001 Eq. 4).

    It ranges from -1 to 1: 1 is the order of the reference, and 0 is no correlation; higher is better. The distances of a class
    are ties if they agree to twelve digits of its largest distance.

    Args:
        labels: (K, D) label vectors, compared by Euclidean distance, or (K, K) distances; at least three classes.
        reference_distances: (K, K) distances of the reference.
        given: Whether `labels` are `"vectors"` or `"distances"`, since a square table could be either.

    Returns:
        A `StructureCorrelation`. Classes whose distances are all equal are left out; if that applies to all classes (one-hot
        labels), the mean is NaN, with a warning.

    Example:
        >>> from labelkin import metrics
        >>> reference = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
        >>> metrics.structure_correlation([[0.0], [1.0], [-3.0]], reference, given="vectors").mean
        1.0
    """
    check_choice("given", given, ("vectors", "distances"))
    here = _between(labels) if given == "vectors" else distance_table("labels", labels)
    reference = distance_table("reference_distances", reference_distances, len(here))
    if len(here) < 3:
        raise InputError(f"labels: expected at least 3 classes, got {len(here)}.")
    per_class = torch.tensor(
        [_tau(ours, theirs) for ours, theirs in zip(_others(here), _others(reference), strict=True)],
        dtype=torch.float64,
    )
    dropped = int(per_class.isnan().sum())
    if dropped == len(per_class):
        warn_undefined("structure_correlation: in every class all distances are equal, so it is undefined (NaN).")
    return StructureCorrelation(float(torch.nanmean(per_class)), per_class, dropped)


def _between(labels: Table) -> Tensor:
    vectors = torch.as_tensor(labels, dtype=torch.float64)
    check_rows("labels", vectors)
    row, column = torch.triu_indices(len(vectors), len(vectors), offset=1)
    distances = vectors.new_zeros(len(vectors), len(vectors))
    distances[row, column] = torch.pdist(vectors)  # a matrix product would make equal distances unequal
    return distances + distances.T


def _others(distances: Tensor) -> Tensor:
    """Return each class's distances to the others (K, K - 1), divided by its largest and rounded to twelve digits."""
    count = len(distances)
    rows = distances[~torch.eye(count, dtype=torch.bool, device=distances.device)].view(count, count - 1)
    largest = rows.max(1, keepdim=True).values
    return (rows / torch.where(largest > 0, largest, 1)).round(decimals=12).cpu()


def _tau(ours: Tensor, theirs: Tensor) -> float:
    from scipy.stats import kendalltau  # slow to import

    if ours.min() == ours.max() or theirs.min() == theirs.max():
        return float("nan")
    if len(ours) == 2:  # scipy would compute a variance that is undefined
        return float(torch.sign((ours[1] - ours[0]) * (theirs[1] - theirs[0])))
    return float(np.asarray(kendalltau(ours.numpy(), theirs.numpy(), method="asymptotic").statistic))
