"""Metrics of mistakes, with their ranges, directions and undefined cases.

Every metric returns a `Metric` with `mean` and `values`. `confusion_matrix` and `weighted_counts` return counts, and
`summary` the means of several metrics by name. The classes (`Accuracy`, `MistakeSeverity`, ...) accumulate over batches and
need torchmetrics. Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.metrics._basic import accuracy as accuracy
    from labelkin.metrics._basic import balanced_accuracy as balanced_accuracy
    from labelkin.metrics._basic import expected_cost as expected_cost
    from labelkin.metrics._basic import macro_f1 as macro_f1
    from labelkin.metrics._basic import mistake_severity as mistake_severity
    from labelkin.metrics._basic import ordinal_mse as ordinal_mse
    from labelkin.metrics._basic import summary as summary
    from labelkin.metrics._basic import top_k_accuracy as top_k_accuracy
    from labelkin.metrics._calibration import Calibration as Calibration
    from labelkin.metrics._calibration import brier_score as brier_score
    from labelkin.metrics._calibration import expected_calibration_error as expected_calibration_error
    from labelkin.metrics._curves import auac as auac
    from labelkin.metrics._curves import epochs_saved as epochs_saved
    from labelkin.metrics._curves import first_epoch_reaching as first_epoch_reaching
    from labelkin.metrics._curves import share_of_epochs_saved as share_of_epochs_saved
    from labelkin.metrics._hierarchical import average_distance as average_distance
    from labelkin.metrics._hierarchical import hierarchical_f1 as hierarchical_f1
    from labelkin.metrics._hierarchical import hierarchical_precision as hierarchical_precision
    from labelkin.metrics._hierarchical import hierarchical_recall as hierarchical_recall
    from labelkin.metrics._hierarchical import least_average_distance as least_average_distance
    from labelkin.metrics._hops import hops as hops
    from labelkin.metrics._result import Metric as Metric
    from labelkin.metrics._result import UndefinedMetric as UndefinedMetric
    from labelkin.metrics._structure_correlation import StructureCorrelation as StructureCorrelation
    from labelkin.metrics._structure_correlation import structure_correlation as structure_correlation
    from labelkin.metrics._superclasses import superclass_accuracy as superclass_accuracy
    from labelkin.metrics._superclasses import superclass_accuracy_by_kmeans as superclass_accuracy_by_kmeans
    from labelkin.metrics._torchmetrics import Accuracy as Accuracy
    from labelkin.metrics._torchmetrics import BrierScore as BrierScore
    from labelkin.metrics._torchmetrics import CalibrationError as CalibrationError
    from labelkin.metrics._torchmetrics import TopKAccuracy as TopKAccuracy
    from labelkin.metrics._torchmetrics import WeightedAccuracy as WeightedAccuracy
    from labelkin.metrics._torchmetrics_tree import AverageDistance as AverageDistance
    from labelkin.metrics._torchmetrics_tree import HierarchicalF1 as HierarchicalF1
    from labelkin.metrics._torchmetrics_tree import HierarchicalPrecision as HierarchicalPrecision
    from labelkin.metrics._torchmetrics_tree import HierarchicalRecall as HierarchicalRecall
    from labelkin.metrics._torchmetrics_tree import MistakeSeverity as MistakeSeverity
    from labelkin.metrics._validation import check_scores as check_scores
    from labelkin.metrics._weighted import WeightedCounts as WeightedCounts
    from labelkin.metrics._weighted import confusion_matrix as confusion_matrix
    from labelkin.metrics._weighted import weighted_accuracy as weighted_accuracy
    from labelkin.metrics._weighted import weighted_counts as weighted_counts
    from labelkin.metrics._weighted import weighted_f1 as weighted_f1
    from labelkin.metrics._weighted import weighted_precision as weighted_precision
    from labelkin.metrics._weighted import weighted_recall as weighted_recall

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_basic": [
            "balanced_accuracy",
            "macro_f1",
            "accuracy",
            "expected_cost",
            "mistake_severity",
            "ordinal_mse",
            "summary",
            "top_k_accuracy",
        ],
        "_calibration": ["Calibration", "brier_score", "expected_calibration_error"],
        "_curves": ["auac", "epochs_saved"],
        "_hierarchical": [
            "average_distance",
            "hierarchical_f1",
            "hierarchical_precision",
            "hierarchical_recall",
            "least_average_distance",
        ],
        "_hops": ["hops"],
        "_result": ["Metric", "UndefinedMetric"],
        "_structure_correlation": ["StructureCorrelation", "structure_correlation"],
        "_superclasses": ["superclass_accuracy", "superclass_accuracy_by_kmeans"],
        "_torchmetrics": ["Accuracy", "BrierScore", "CalibrationError", "TopKAccuracy", "WeightedAccuracy"],
        "_torchmetrics_tree": [
            "AverageDistance",
            "HierarchicalF1",
            "HierarchicalPrecision",
            "HierarchicalRecall",
            "MistakeSeverity",
        ],
        "_weighted": [
            "WeightedCounts",
            "confusion_matrix",
            "weighted_accuracy",
            "weighted_counts",
            "weighted_f1",
            "weighted_precision",
            "weighted_recall",
        ],
    },
    internal={
        "_curves": ["first_epoch_reaching", "share_of_epochs_saved"],
        "_validation": ["check_scores"],
    },
)
