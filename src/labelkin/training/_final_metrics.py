"""The final metrics of a trained classifier: mistake severity, calibration, cost-sensitive decisions, structure."""

import warnings
from math import isnan, nan

import torch
from torch import Tensor

from labelkin import decide, metrics
from labelkin.metrics import UndefinedMetric
from labelkin.objectives import Objective
from labelkin.structure import Taxonomy

TOP = 5
MOST_CLASSES = 2_000  # beyond this, the distances of all pairs take longer than an epoch of training


def final_metrics(objective: Objective, scores: Tensor, target: Tensor, taxonomy: Taxonomy | None) -> dict[str, float]:
    """Return the final metrics of a classifier; NaN where one is undefined.

    Besides those of `metrics.summary`:

    balanced_accuracy   accuracy of the best classes, averaged over the true classes
    macro_f1            F1 score, averaged over the classes
    ahd5                average hierarchical distance of the five best classes
    ece, brier          calibration, for objectives that define probabilities
    crm_*               accuracy, severity and ahd5 after choosing the class of least expected distance in the tree
    structure           paper 001, Eq. 4: the rank correlation of the distances between label vectors with those in the
                        tree; for an objective that learns no vectors, of the class means of its scores

    Args:
        objective: The trained objective.
        scores: (n, K) its scores on the test set.
        target: (n,) the true classes.
        taxonomy: The tree over the classes, if any.

    >>> from labelkin import OneHot
    >>> scores = torch.eye(3).log_softmax(-1)
    >>> found = final_metrics(OneHot(classes=3), scores, torch.arange(3), None)
    >>> found["accuracy"], sorted(found)
    (1.0, ['accuracy', 'balanced_accuracy', 'brier', 'ece', 'macro_f1'])
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetric)  # the result is NaN; no warning is needed
        found = metrics.summary(scores, target, taxonomy)
        best = scores.argmax(-1)
        found["balanced_accuracy"] = metrics.balanced_accuracy(best, target).mean
        found["macro_f1"] = metrics.macro_f1(best, target).mean
        probs = torch.softmax(scores.double(), -1) if objective.has_probabilities else None
        if taxonomy is not None and scores.shape[-1] >= TOP:
            found["ahd5"] = metrics.average_distance(scores, target, taxonomy, k=TOP).mean
        found["ece"] = nan if probs is None else metrics.expected_calibration_error(probs, target).mean
        found["brier"] = nan if probs is None else metrics.brier_score(probs, target).mean
        if taxonomy is not None:
            found |= _by_cost(probs, target, taxonomy)
            found["structure"] = _structure(objective, scores, target, taxonomy)
    return found


def _by_cost(probs: Tensor | None, target: Tensor, taxonomy: Taxonomy) -> dict[str, float]:
    """Return the metrics after choosing the class of least expected distance (CRM)."""
    if probs is None:
        return dict.fromkeys(("crm_accuracy", "crm_severity", "crm_ahd5"), nan)
    found = decide.compare_rules(probs, target, taxonomy, k=min(TOP, probs.shape[-1])).after
    return {
        "crm_accuracy": found.accuracy,
        "crm_severity": found.severity,
        "crm_ahd5": found.average_distance,
    }


def _structure(objective: Objective, scores: Tensor, target: Tensor, taxonomy: Taxonomy) -> float:
    """Return the structure correlation of the label vectors, or of the class means of the scores."""
    classes = scores.shape[-1]
    if not 3 <= classes <= MOST_CLASSES:
        return nan
    distances = taxonomy.distance("height")
    vectors = objective.label_vectors(range(classes)).detach().cpu()
    found = metrics.structure_correlation(vectors, distances, given="vectors").mean
    if not isnan(found):
        return found
    counts = torch.bincount(target, minlength=classes)
    if not bool(counts.all()):
        return nan
    sums = torch.zeros(classes, classes, dtype=torch.float64).index_add_(0, target, scores.double())
    return metrics.structure_correlation(sums / counts.unsqueeze(1), distances, given="vectors").mean
