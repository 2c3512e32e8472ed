"""Objectives: each is one method with its head, its loss, its predictions and its label vectors."""

from labelkin.objectives._adaptive import AdaptiveLabels
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._bilt import BiLT
from labelkin.objectives._conditional import ConditionalSoftmax, HierarchicalCrossEntropy
from labelkin.objectives._context import RELATIONS as RELATIONS
from labelkin.objectives._context import Context
from labelkin.objectives._flat import ConfidencePenalty, LabelSmoothing, OneHot
from labelkin.objectives._haframe import HAFrame
from labelkin.objectives._hier_cos import HierCOS
from labelkin.objectives._hierarchical import ConvexHierarchical, Hierarchical
from labelkin.objectives._hierarchical_ensemble import HierarchicalEnsemble
from labelkin.objectives._kin import Kin
from labelkin.objectives._label_embedding import CompressedLabelEmbedding, LabelEmbedding
from labelkin.objectives._label_embedding_closed import TwoHeads
from labelkin.objectives._mixed import MixedCrossEntropy
from labelkin.objectives._online_smoothing import OnlineLabelSmoothing
from labelkin.objectives._pretrained_embedding import PretrainedLabelEmbedding
from labelkin.objectives._registry import OBJECTIVES
from labelkin.objectives._retrospection import Retrospection
from labelkin.objectives._semantic_smoothing import SemanticSmoothing
from labelkin.objectives._static import StaticLabels
from labelkin.objectives._tree import TreeObjective as TreeObjective
from labelkin.objectives._tree_buffers import in_class_order as in_class_order
from labelkin.objectives._tree_soft_labels import TreeSoftLabels
from labelkin.objectives._unit_sphere import UnitSphere

__all__ = [
    "OBJECTIVES",
    "AdaptiveLabels",
    "Batch",
    "BiLT",
    "CompressedLabelEmbedding",
    "ConditionalSoftmax",
    "ConfidencePenalty",
    "Context",
    "ConvexHierarchical",
    "HAFrame",
    "HierCOS",
    "Hierarchical",
    "HierarchicalCrossEntropy",
    "HierarchicalEnsemble",
    "Kin",
    "LabelEmbedding",
    "LabelSmoothing",
    "Loss",
    "MixedCrossEntropy",
    "Objective",
    "OneHot",
    "OnlineLabelSmoothing",
    "PretrainedLabelEmbedding",
    "Retrospection",
    "SemanticSmoothing",
    "StaticLabels",
    "TreeSoftLabels",
    "TwoHeads",
    "UnitSphere",
]
