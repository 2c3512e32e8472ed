"""Measure what a network learned: class distances by layer, label vectors, trees, confusions, and why a loss has no effect.

Functions return numbers; `labelkin.report` draws them.
"""

from labelkin.analysis.activity import Activity, Approach, activity_memory, approach, class_activity
from labelkin.analysis.confusions import (
    Confusion,
    Confusions,
    Costliest,
    Disagreement,
    confusion_matrix,
    costliest,
    disagreement,
)
from labelkin.analysis.diagnosis import Diagnosis, diagnose
from labelkin.analysis.findings import CAUSES, Cause, Finding
from labelkin.analysis.labels import (
    Agreement,
    Embedded,
    Nearest,
    Points,
    label_distances,
    mds,
    nearest,
    procrustes,
    tsne,
)
from labelkin.analysis.memory import Memory
from labelkin.analysis.pull import GradientStructure, TargetRows
from labelkin.analysis.room import Mistakes, Spread
from labelkin.analysis.trees import leaf_order, linkage_table, linkage_tree

__all__ = [
    "CAUSES",
    "Activity",
    "Agreement",
    "Approach",
    "Cause",
    "Confusion",
    "Confusions",
    "Costliest",
    "Diagnosis",
    "Disagreement",
    "Embedded",
    "Finding",
    "GradientStructure",
    "Memory",
    "Mistakes",
    "Nearest",
    "Points",
    "Spread",
    "TargetRows",
    "activity_memory",
    "approach",
    "class_activity",
    "confusion_matrix",
    "costliest",
    "diagnose",
    "disagreement",
    "label_distances",
    "leaf_order",
    "linkage_table",
    "linkage_tree",
    "mds",
    "nearest",
    "procrustes",
    "tsne",
]
