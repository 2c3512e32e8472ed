"""Measure what a network learned: class distances by layer, label vectors, trees, confusions, and why a loss has no effect.

Functions return numbers; `labelkin.report` draws them.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.analysis._activity import Activity as Activity
    from labelkin.analysis._activity import Approach as Approach
    from labelkin.analysis._activity import activity_memory as activity_memory
    from labelkin.analysis._activity import approach as approach
    from labelkin.analysis._activity import class_activity as class_activity
    from labelkin.analysis._confusions import Confusion as Confusion
    from labelkin.analysis._confusions import Confusions as Confusions
    from labelkin.analysis._confusions import Costliest as Costliest
    from labelkin.analysis._confusions import Disagreement as Disagreement
    from labelkin.analysis._confusions import confusion_matrix as confusion_matrix
    from labelkin.analysis._confusions import costliest as costliest
    from labelkin.analysis._confusions import disagreement as disagreement
    from labelkin.analysis._diagnosis import CAUSES as CAUSES
    from labelkin.analysis._diagnosis import Cause as Cause
    from labelkin.analysis._diagnosis import Diagnosis as Diagnosis
    from labelkin.analysis._diagnosis import Finding as Finding
    from labelkin.analysis._diagnosis import diagnose as diagnose
    from labelkin.analysis._gathering import Memory as Memory
    from labelkin.analysis._gradient_structure import GradientStructure as GradientStructure
    from labelkin.analysis._gradient_structure import TargetRows as TargetRows
    from labelkin.analysis._headroom import Mistakes as Mistakes
    from labelkin.analysis._headroom import Spread as Spread
    from labelkin.analysis._labels import Agreement as Agreement
    from labelkin.analysis._labels import Embedded as Embedded
    from labelkin.analysis._labels import Nearest as Nearest
    from labelkin.analysis._labels import Points as Points
    from labelkin.analysis._labels import label_distances as label_distances
    from labelkin.analysis._labels import mds as mds
    from labelkin.analysis._labels import nearest as nearest
    from labelkin.analysis._labels import procrustes as procrustes
    from labelkin.analysis._labels import tsne as tsne
    from labelkin.analysis._linkage import leaf_order as leaf_order
    from labelkin.analysis._linkage import linkage_table as linkage_table
    from labelkin.analysis._linkage import linkage_tree as linkage_tree

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_activity": ["Activity", "Approach", "activity_memory", "approach", "class_activity"],
        "_confusions": [
            "Confusion",
            "Confusions",
            "Costliest",
            "Disagreement",
            "confusion_matrix",
            "costliest",
            "disagreement",
        ],
        "_diagnosis": ["CAUSES", "Cause", "Diagnosis", "Finding", "diagnose"],
        "_gathering": ["Memory"],
        "_gradient_structure": ["GradientStructure", "TargetRows"],
        "_headroom": ["Mistakes", "Spread"],
        "_labels": [
            "Agreement",
            "Embedded",
            "Nearest",
            "Points",
            "label_distances",
            "mds",
            "nearest",
            "procrustes",
            "tsne",
        ],
        "_linkage": ["leaf_order", "linkage_table", "linkage_tree"],
    },
)
