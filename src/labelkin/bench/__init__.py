"""Benchmarks: this library compared with literal implementations and other packages, as ratios within one run."""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.bench._analysis import time_analysis as time_analysis
    from labelkin.bench._fleet import FleetTimes as FleetTimes
    from labelkin.bench._fleet import fleet_times_as_dict as fleet_times_as_dict
    from labelkin.bench._fleet import time_fleet as time_fleet
    from labelkin.bench._fleet import train_gray_fleet as train_gray_fleet
    from labelkin.bench._growth import Compared as Compared
    from labelkin.bench._growth import Comparison as Comparison
    from labelkin.bench._growth import Growth as Growth
    from labelkin.bench._growth import Measure as Measure
    from labelkin.bench._growth import comparison_as_dict as comparison_as_dict
    from labelkin.bench._linear import time_linear as time_linear
    from labelkin.bench._loading import time_loading as time_loading
    from labelkin.bench._losses import LossTimes as LossTimes
    from labelkin.bench._losses import loss_times_as_dict as loss_times_as_dict
    from labelkin.bench._losses import time_losses as time_losses
    from labelkin.bench._many_labels import ManyLabels as ManyLabels
    from labelkin.bench._many_labels import many_labels_as_dict as many_labels_as_dict
    from labelkin.bench._many_labels import time_many_labels as time_many_labels
    from labelkin.bench._measure import Machine as Machine
    from labelkin.bench._measure import Timing as Timing
    from labelkin.bench._metrics import time_metrics as time_metrics
    from labelkin.bench._naa import time_naa as time_naa
    from labelkin.bench._peers import missing as missing
    from labelkin.bench._result import Benchmark as Benchmark
    from labelkin.bench._result import Row as Row
    from labelkin.bench._result import Slow as Slow
    from labelkin.bench._result import as_dict as as_dict
    from labelkin.bench._training import TRAINING_WAYS as TRAINING_WAYS
    from labelkin.bench._training import EpochTimes as EpochTimes
    from labelkin.bench._training import TrainingTimes as TrainingTimes
    from labelkin.bench._training import time_training as time_training
    from labelkin.bench._training import training_times_as_dict as training_times_as_dict
    from labelkin.bench._tree_losses import TreeLosses as TreeLosses
    from labelkin.bench._tree_losses import time_tree_losses as time_tree_losses
    from labelkin.bench._tree_losses import tree_losses_as_dict as tree_losses_as_dict

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_analysis": ["time_analysis"],
        "_fleet": ["FleetTimes", "time_fleet"],
        "_growth": ["Compared", "Comparison", "Growth", "Measure"],
        "_linear": ["time_linear"],
        "_loading": ["time_loading"],
        "_many_labels": ["ManyLabels", "time_many_labels"],
        "_measure": ["Machine", "Timing"],
        "_metrics": ["time_metrics"],
        "_naa": ["time_naa"],
        "_result": ["Benchmark", "Row", "Slow"],
        "_training": ["EpochTimes", "TrainingTimes", "time_training"],
        "_tree_losses": ["TreeLosses", "time_tree_losses"],
    },
    internal={
        "_fleet": ["fleet_times_as_dict", "train_gray_fleet"],
        "_growth": ["comparison_as_dict"],
        "_losses": ["LossTimes", "loss_times_as_dict", "time_losses"],
        "_many_labels": ["many_labels_as_dict"],
        "_peers": ["missing"],
        "_result": ["as_dict"],
        "_training": ["TRAINING_WAYS", "training_times_as_dict"],
        "_tree_losses": ["tree_losses_as_dict"],
    },
)
