"""Benchmarks: this library beside literal forms and other packages, as ratios within one run."""

from labelkin.bench.many_labels import ManyLabels, time_many_labels
from labelkin.bench.metrics import time_metrics
from labelkin.bench.naa import time_naa
from labelkin.bench.result import Benchmark, Row, Slow
from labelkin.bench.timing import Machine, Timing
from labelkin.bench.tree_losses import TreeLosses, time_tree_losses

__all__ = [
    "Benchmark",
    "Machine",
    "ManyLabels",
    "Row",
    "Slow",
    "Timing",
    "TreeLosses",
    "time_many_labels",
    "time_metrics",
    "time_naa",
    "time_tree_losses",
]
