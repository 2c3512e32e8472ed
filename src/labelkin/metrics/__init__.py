"""Metrics of mistakes, each with its range, its direction and when it is undefined.

Every metric returns a `Metric` with `mean` and `values`. `confusion_matrix` and `weighted_counts` return counts, and
`summary` the means of several metrics by name. The classes (`Accuracy`, `MistakeSeverity`, ...) accumulate over batches and
need torchmetrics. Names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelkin.metrics.basic import accuracy, mistake_severity, summary, top_k_accuracy
    from labelkin.metrics.calibration import Calibration, brier_score, expected_calibration_error
    from labelkin.metrics.costs import expected_cost, ordinal_mse
    from labelkin.metrics.curves import auac, epochs_saved, first_epoch_reaching, share_of_epochs_saved
    from labelkin.metrics.hierarchical import (
        average_distance,
        hierarchical_f1,
        hierarchical_precision,
        hierarchical_recall,
    )
    from labelkin.metrics.modules import (
        Accuracy,
        AverageDistance,
        BrierScore,
        CalibrationError,
        HierarchicalF1,
        HierarchicalPrecision,
        HierarchicalRecall,
        MistakeSeverity,
        TopKAccuracy,
        WeightedAccuracy,
    )
    from labelkin.metrics.result import Metric, UndefinedMetric
    from labelkin.metrics.structure import StructureCorrelation, structure_correlation
    from labelkin.metrics.superclasses import superclass_accuracy, superclass_accuracy_by_kmeans
    from labelkin.metrics.weighted import (
        WeightedCounts,
        confusion_matrix,
        weighted_accuracy,
        weighted_counts,
        weighted_f1,
        weighted_precision,
        weighted_recall,
    )

_HOMES = {
    "basic": ("accuracy", "mistake_severity", "summary", "top_k_accuracy"),
    "calibration": ("Calibration", "brier_score", "expected_calibration_error"),
    "costs": ("expected_cost", "ordinal_mse"),
    "curves": ("auac", "epochs_saved", "first_epoch_reaching", "share_of_epochs_saved"),
    "hierarchical": ("average_distance", "hierarchical_f1", "hierarchical_precision", "hierarchical_recall"),
    "modules": (
        "Accuracy",
        "AverageDistance",
        "BrierScore",
        "CalibrationError",
        "HierarchicalF1",
        "HierarchicalPrecision",
        "HierarchicalRecall",
        "MistakeSeverity",
        "TopKAccuracy",
        "WeightedAccuracy",
    ),
    "result": ("Metric", "UndefinedMetric"),
    "structure": ("StructureCorrelation", "structure_correlation"),
    "superclasses": ("superclass_accuracy", "superclass_accuracy_by_kmeans"),
    "weighted": (
        "WeightedCounts",
        "confusion_matrix",
        "weighted_accuracy",
        "weighted_counts",
        "weighted_f1",
        "weighted_precision",
        "weighted_recall",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Accuracy",
    "AverageDistance",
    "BrierScore",
    "Calibration",
    "CalibrationError",
    "HierarchicalF1",
    "HierarchicalPrecision",
    "HierarchicalRecall",
    "Metric",
    "MistakeSeverity",
    "StructureCorrelation",
    "TopKAccuracy",
    "UndefinedMetric",
    "WeightedAccuracy",
    "WeightedCounts",
    "accuracy",
    "auac",
    "average_distance",
    "brier_score",
    "confusion_matrix",
    "epochs_saved",
    "expected_calibration_error",
    "expected_cost",
    "first_epoch_reaching",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "mistake_severity",
    "ordinal_mse",
    "share_of_epochs_saved",
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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'labelkin.metrics' has no attribute {name!r}")
    found = getattr(import_module(f"labelkin.metrics.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
