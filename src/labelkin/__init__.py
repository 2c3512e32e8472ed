"""Train classifiers that know which classes are kin, so that when they miss, they miss close.

Names are imported when they are first used (PEP 562), so that `labelkin --help` needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelkin._version import __version__

if TYPE_CHECKING:
    from labelkin import (
        analysis,
        audit,
        bench,
        data,
        decide,
        experiments,
        functional,
        metrics,
        models,
        objectives,
        relations,
        report,
        structure,
        training,
    )
    from labelkin._checks import InputError
    from labelkin.estimator import KinClassifier
    from labelkin.experiments import compare, load
    from labelkin.objectives import (
        OBJECTIVES,
        AdaptiveLabels,
        CompressedLabelEmbedding,
        ConditionalSoftmax,
        ConfidencePenalty,
        Context,
        ConvexHierarchical,
        Hierarchical,
        HierarchicalCrossEntropy,
        LabelEmbedding,
        LabelSmoothing,
        MixedCrossEntropy,
        Objective,
        OneHot,
        PretrainedLabelEmbedding,
        Retrospection,
        SemanticSmoothing,
        StaticLabels,
    )
    from labelkin.structure import Taxonomy
    from labelkin.training import Model

_ROOMS = (
    "analysis",
    "audit",
    "bench",
    "data",
    "decide",
    "experiments",
    "functional",
    "metrics",
    "models",
    "objectives",
    "relations",
    "report",
    "structure",
    "training",
)
__all__ = [
    "OBJECTIVES",
    "AdaptiveLabels",
    "CompressedLabelEmbedding",
    "ConditionalSoftmax",
    "ConfidencePenalty",
    "Context",
    "ConvexHierarchical",
    "Hierarchical",
    "HierarchicalCrossEntropy",
    "InputError",
    "KinClassifier",
    "LabelEmbedding",
    "LabelSmoothing",
    "MixedCrossEntropy",
    "Model",
    "Objective",
    "OneHot",
    "PretrainedLabelEmbedding",
    "Retrospection",
    "SemanticSmoothing",
    "StaticLabels",
    "Taxonomy",
    "__version__",
    "analysis",
    "audit",
    "bench",
    "compare",
    "data",
    "decide",
    "experiments",
    "functional",
    "load",
    "metrics",
    "models",
    "objectives",
    "relations",
    "report",
    "structure",
    "training",
]

# Where the names live that are no objectives.
_HOMES = {
    "InputError": "labelkin._checks",
    "KinClassifier": "labelkin.estimator",
    "Model": "labelkin.training",
    "Taxonomy": "labelkin.structure",
    "compare": "labelkin.experiments",
    "load": "labelkin.experiments",
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"labelkin.{name}")
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "labelkin.objectives")), name)
    raise AttributeError(f"module 'labelkin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
