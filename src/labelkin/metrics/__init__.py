"""Metrics of mistakes, each with its range, its direction and when it is undefined."""

from labelkin.metrics.basic import Metric, UndefinedMetric, accuracy, mistake_severity, top_k_accuracy
from labelkin.metrics.calibration import Calibration, brier_score, expected_calibration_error
from labelkin.metrics.costs import expected_cost, ordinal_mse
from labelkin.metrics.curves import auac, epochs_saved
from labelkin.metrics.hierarchical import (
    average_distance,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
)
from labelkin.metrics.structure import StructureCorrelation, structure_correlation
from labelkin.metrics.summary import summary
from labelkin.metrics.superclasses import superclass_accuracy, superclass_accuracy_by_kmeans
from labelkin.metrics.weighted import (
    ByClass,
    WeightedCounts,
    confusion_matrix,
    weighted_accuracy,
    weighted_counts,
    weighted_f1,
    weighted_precision,
    weighted_recall,
)

__all__ = [
    "ByClass",
    "Calibration",
    "Metric",
    "StructureCorrelation",
    "UndefinedMetric",
    "WeightedCounts",
    "accuracy",
    "auac",
    "average_distance",
    "brier_score",
    "confusion_matrix",
    "epochs_saved",
    "expected_calibration_error",
    "expected_cost",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "mistake_severity",
    "ordinal_mse",
    "structure_correlation",
    "summary",
    "superclass_accuracy",
    "superclass_accuracy_by_kmeans",
    "top_k_accuracy",
    "weighted_accuracy",
    "weighted_counts",
    "weighted_f1",
    "weighted_precision",
    "weighted_recall",
]
