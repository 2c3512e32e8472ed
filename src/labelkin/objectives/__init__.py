"""Objectives: each is one method with its head, its loss, its predictions and its label vectors."""

from labelkin.objectives.adaptive import AdaptiveLabels
from labelkin.objectives.base import Objective
from labelkin.objectives.batch import Batch, Loss
from labelkin.objectives.conditional import ConditionalSoftmax, HierarchicalCrossEntropy
from labelkin.objectives.context import Context
from labelkin.objectives.flat import ConfidencePenalty, LabelSmoothing, OneHot
from labelkin.objectives.hierarchical import ConvexHierarchical, Hierarchical
from labelkin.objectives.label_embedding import CompressedLabelEmbedding, LabelEmbedding, TwoHeads
from labelkin.objectives.mixed import MixedCrossEntropy
from labelkin.objectives.pretrained_embedding import PretrainedLabelEmbedding
from labelkin.objectives.retrospection import Retrospection
from labelkin.objectives.semantic_smoothing import SemanticSmoothing
from labelkin.objectives.static import StaticLabels

# All objectives by the name that plans and the command line use.
OBJECTIVES: dict[str, type[Objective]] = {
    "one-hot": OneHot,
    "label-smoothing": LabelSmoothing,
    "confidence-penalty": ConfidencePenalty,
    "semantic-smoothing": SemanticSmoothing,
    "mixed-cross-entropy": MixedCrossEntropy,
    "hierarchical": Hierarchical,
    "convex-hierarchical": ConvexHierarchical,
    "conditional-softmax": ConditionalSoftmax,
    "hierarchical-cross-entropy": HierarchicalCrossEntropy,
    "label-embedding": LabelEmbedding,
    "compressed-label-embedding": CompressedLabelEmbedding,
    "pretrained-label-embedding": PretrainedLabelEmbedding,
    "adaptive-labels": AdaptiveLabels,
    "retrospection": Retrospection,
    "static-labels": StaticLabels,
}

__all__ = [
    "OBJECTIVES",
    "AdaptiveLabels",
    "Batch",
    "CompressedLabelEmbedding",
    "ConditionalSoftmax",
    "ConfidencePenalty",
    "Context",
    "ConvexHierarchical",
    "Hierarchical",
    "HierarchicalCrossEntropy",
    "LabelEmbedding",
    "LabelSmoothing",
    "Loss",
    "MixedCrossEntropy",
    "Objective",
    "OneHot",
    "PretrainedLabelEmbedding",
    "Retrospection",
    "SemanticSmoothing",
    "StaticLabels",
    "TwoHeads",
]
