"""Metrics for the argument `compute_metrics` of a `transformers.Trainer`."""

import warnings
from collections.abc import Callable
from typing import Any

import torch

from labelkin import metrics
from labelkin._checks import InputError
from labelkin.structure import DistanceKind, Taxonomy


def compute_metrics_for(
    taxonomy: Taxonomy | None = None, *, distance: DistanceKind = "height", ignore_index: int = -100
) -> Callable[[Any], dict[str, float]]:
    """Return a function that computes labelkin's metrics from the predictions of a `transformers.Trainer`.

    They are accuracy, top-5 accuracy if there are more than five classes, and with a tree the mean severity of mistakes
    (`severity`, NaN without mistakes), the mean distance of all answers (`cost`) and hierarchical F1 (`hierarchical_f1`).

    Args:
        taxonomy: The tree of the classes, in the order of the labels.
        distance: The kind of distance of `cost`; see `Taxonomy.distance`.
        ignore_index: Samples with this label are left out.

    Returns:
        A function of an `EvalPrediction`, for the argument `compute_metrics`.

    Example:
        >>> import numpy as np
        >>> from transformers import EvalPrediction
        >>> from labelkin import Taxonomy
        >>> from labelkin.doors.transformers import compute_metrics_for
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> compute = compute_metrics_for(tree)
        >>> compute(EvalPrediction(np.array([[2.0, 0.0, 1.0], [2.0, 0.0, 1.0]]), np.array([0, 1])))
        {'accuracy': 0.5, 'severity': 1.0, 'cost': 0.5, 'hierarchical_f1': 0.75}
    """

    def compute(evaluated: Any) -> dict[str, float]:
        given = evaluated.predictions
        scores = torch.as_tensor(given[0] if isinstance(given, tuple) else given)
        target = torch.as_tensor(evaluated.label_ids)
        if scores.shape[:-1] != target.shape:
            raise InputError(
                f"predictions: expected one row of scores for each of {tuple(target.shape)} labels, got shape "
                f"{tuple(scores.shape)}."
            )
        kept = target != ignore_index
        scores, target = scores[kept], target[kept].long()
        found = metrics.summary(scores, target, taxonomy)
        if taxonomy is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", metrics.UndefinedMetric)  # NaN means that there are no samples
                found["cost"] = metrics.average_distance(scores, target, taxonomy, distance=distance).mean
                found["hierarchical_f1"] = metrics.hierarchical_f1(scores.argmax(-1), target, taxonomy).mean
        return found

    return compute
