"""Every metric of `labelkin.metrics`, beside its literal form."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin import metrics
from labelkin.bench import literal
from labelkin.bench.plain import Plain
from labelkin.bench.predictions import Predictions


class Case(NamedTuple):
    """A metric to time: `ours` returns what the metric does, `literal` the same numbers as a list."""

    ours: Callable[[Predictions], object]
    literal: Callable[[Plain], list[float]] | None = None


def _on_classes(metric: Callable[..., object]) -> Callable[[Predictions], object]:
    return lambda given: metric(given.predicted, given.target, given.taxonomy)


def _weighted(metric: Callable[..., object]) -> Callable[[Predictions], object]:
    return lambda given: metric(_confusion(given), given.distances)


def _confusion(given: Predictions) -> Tensor:
    return metrics.confusion_matrix(given.predicted, given.target, len(given.distances))


def _distance(k: int) -> Case:
    return Case(
        lambda given: metrics.average_distance(given.logits, given.target, given.taxonomy, k=k),
        partial(literal.average_distance, k=k),
    )


def by_kmeans(given: Predictions) -> metrics.Metric:
    """Compute superclass accuracy by k-means."""
    return metrics.superclass_accuracy_by_kmeans(given.probs, given.probs, given.target, given.groups)


def structure(given: Predictions) -> metrics.StructureCorrelation:
    """Compute the structure correlation of the label vectors."""
    return metrics.structure_correlation(given.vectors, given.distances, given="vectors")


CASES: dict[str, Case] = {
    "accuracy": Case(lambda given: metrics.accuracy(given.predicted, given.target), literal.accuracy),
    "top_k_accuracy, k 5": Case(
        lambda given: metrics.top_k_accuracy(given.logits, given.target, k=5), partial(literal.top_k, k=5)
    ),
    "mistake_severity": Case(_on_classes(metrics.mistake_severity), literal.severity),
    "average_distance, k 1": _distance(1),
    "average_distance, k 5": _distance(5),
    "average_distance, k 20": _distance(20),
    "hierarchical_precision": Case(
        _on_classes(metrics.hierarchical_precision), partial(literal.ancestors_shared, part=lambda ours, theirs: ours)
    ),
    "hierarchical_recall": Case(
        _on_classes(metrics.hierarchical_recall), partial(literal.ancestors_shared, part=lambda ours, theirs: theirs)
    ),
    "hierarchical_f1": Case(
        _on_classes(metrics.hierarchical_f1),
        partial(literal.ancestors_shared, part=lambda ours, theirs: (ours + theirs) / 2),
    ),
    "confusion_matrix": Case(_confusion, literal.confusion),
    "weighted_counts": Case(_weighted(metrics.weighted_counts), literal.weighted_counts),
    "weighted_precision": Case(_weighted(metrics.weighted_precision), partial(literal.weighted, errors=["predicted"])),
    "weighted_recall": Case(_weighted(metrics.weighted_recall), partial(literal.weighted, errors=["true"])),
    "weighted_f1": Case(_weighted(metrics.weighted_f1), partial(literal.weighted, errors=["true", "predicted"])),
    "weighted_accuracy": Case(_weighted(metrics.weighted_accuracy), literal.weighted_accuracy),
    "expected_cost": Case(
        lambda given: metrics.expected_cost(given.predicted, given.target, given.distances), literal.expected_cost
    ),
    "ordinal_mse": Case(lambda given: metrics.ordinal_mse(given.predicted, given.target), literal.ordinal_mse),
    "expected_calibration_error": Case(
        lambda given: metrics.expected_calibration_error(given.probs, given.target), literal.calibration_error
    ),
    "brier_score": Case(lambda given: metrics.brier_score(given.probs, given.target), literal.brier),
    "superclass_accuracy": Case(
        lambda given: metrics.superclass_accuracy(given.probs, given.target, given.groups), literal.superclass
    ),
    "superclass_accuracy_by_kmeans": Case(by_kmeans),
    "structure_correlation": Case(structure),  # its literal form goes by classes
    "auac": Case(lambda given: metrics.auac(given.curve).mean, literal.auac),
    "epochs_saved": Case(lambda given: metrics.epochs_saved(given.curve, given.curve).mean, literal.epochs_saved),
    "summary": Case(lambda given: metrics.summary(given.logits, given.target, given.taxonomy), literal.summary),
}


def flat(found: object) -> list[float]:
    """Return the numbers of a metric as the literal forms list them: values first, the mean last."""
    if isinstance(found, metrics.Calibration):
        return [found.mean]
    if isinstance(found, metrics.Metric):
        return [*found.values.double().tolist(), found.mean]
    if isinstance(found, metrics.WeightedCounts):
        return torch.cat(list(found)).tolist()
    if isinstance(found, Tensor):
        return found.flatten().double().tolist()
    if isinstance(found, dict):
        return list(found.values())
    assert isinstance(found, float)
    return [found]
