"""What is said of a trained classifier: how far its mistakes lie, how sure it is, what deciding by cost changes."""

import warnings
from math import isnan, nan

import torch
from torch import Tensor

from labelkin import decide, metrics
from labelkin.metrics import UndefinedMetric
from labelkin.objectives import Objective
from labelkin.structure import Taxonomy

TOP = 5


def conclude(objective: Objective, scores: Tensor, target: Tensor, taxonomy: Taxonomy | None) -> dict[str, float]:
    """The summary of scores (n, K) with, where they have a meaning, the figures of a comparison; NaN where undefined.

    ahd5                average hierarchical distance of the five best classes
    ece, brier          calibration, of objectives that define probabilities
    crm_*               accuracy, severity and ahd5 after deciding by least expected distance in the tree
    structure           001 Eq. 4: how far the label vectors' distances order the classes as the tree does; where an
                        objective learns no vectors, the class means of its scores stand for them
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetric)  # the NaN says so itself
        found = metrics.summary(scores, target, taxonomy)
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
    """The figures after deciding by least expected distance (CRM)."""
    if probs is None:
        return dict.fromkeys(("crm_accuracy", "crm_severity", "crm_ahd5"), nan)
    found = decide.compare_rules(probs, target, taxonomy, k=min(TOP, probs.shape[-1])).after
    return {
        "crm_accuracy": found.accuracy,
        "crm_severity": found.severity,
        "crm_ahd5": found.average_distance,
    }


def _structure(objective: Objective, scores: Tensor, target: Tensor, taxonomy: Taxonomy) -> float:
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


MOST_CLASSES = 2_000  # beyond that the distances of all pairs take longer than the training's last epoch
