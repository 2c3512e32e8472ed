"""The objectives by name."""

from labelkin.objectives._adaptive import AdaptiveLabels
from labelkin.objectives._base import Objective
from labelkin.objectives._bilt import BiLT
from labelkin.objectives._conditional import ConditionalSoftmax, HierarchicalCrossEntropy
from labelkin.objectives._flat import ConfidencePenalty, LabelSmoothing, OneHot
from labelkin.objectives._haframe import HAFrame
from labelkin.objectives._hier_cos import HierCOS
from labelkin.objectives._hierarchical import ConvexHierarchical, Hierarchical
from labelkin.objectives._hierarchical_ensemble import HierarchicalEnsemble
from labelkin.objectives._kin import Kin
from labelkin.objectives._label_embedding import CompressedLabelEmbedding, LabelEmbedding
from labelkin.objectives._mixed import MixedCrossEntropy
from labelkin.objectives._online_smoothing import OnlineLabelSmoothing
from labelkin.objectives._pretrained_embedding import PretrainedLabelEmbedding
from labelkin.objectives._retrospection import Retrospection
from labelkin.objectives._semantic_smoothing import SemanticSmoothing
from labelkin.objectives._static import StaticLabels
from labelkin.objectives._tree_soft_labels import TreeSoftLabels
from labelkin.objectives._unit_sphere import UnitSphere

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
    "kin": Kin,
    "label-embedding": LabelEmbedding,
    "compressed-label-embedding": CompressedLabelEmbedding,
    "pretrained-label-embedding": PretrainedLabelEmbedding,
    "adaptive-labels": AdaptiveLabels,
    "retrospection": Retrospection,
    "static-labels": StaticLabels,
    "haframe": HAFrame,
    "bilt": BiLT,
    "tree-soft-labels": TreeSoftLabels,
    "hier-cos": HierCOS,
    "hierarchical-ensemble": HierarchicalEnsemble,
    "online-label-smoothing": OnlineLabelSmoothing,
    "unit-sphere": UnitSphere,
}
