"""Train classifiers that know which classes are related, so that their mistakes are close to the true class.

Names are imported when they are first used (PEP 562), so that `labelkin --help` needs no torch.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelkin._version import __version__

if TYPE_CHECKING:
    from labelkin import (
        analysis,
        audit,
        bench,
        comparison,
        data,
        decide,
        doors,
        functional,
        metrics,
        models,
        objectives,
        papers,
        relations,
        report,
        runs,
        serve,
        structure,
        training,
        translate,
    )
    from labelkin._checks import InputError
    from labelkin.audit import audit as audit_predictions
    from labelkin.comparison import compare
    from labelkin.doors import KinClassifier
    from labelkin.objectives import (
        OBJECTIVES,
        AdaptiveLabels,
        BiLT,
        CompressedLabelEmbedding,
        ConditionalSoftmax,
        ConfidencePenalty,
        Context,
        ConvexHierarchical,
        HAFrame,
        Hierarchical,
        HierarchicalCrossEntropy,
        HierarchicalEnsemble,
        HierCOS,
        Kin,
        LabelEmbedding,
        LabelSmoothing,
        MixedCrossEntropy,
        Objective,
        OneHot,
        OnlineLabelSmoothing,
        PretrainedLabelEmbedding,
        Retrospection,
        SemanticSmoothing,
        StaticLabels,
        TreeSoftLabels,
        UnitSphere,
    )
    from labelkin.runs import evaluate, load_run, train
    from labelkin.structure import Taxonomy
    from labelkin.training import Model

_ROOMS = (
    "analysis",
    "audit",
    "bench",
    "comparison",
    "data",
    "decide",
    "doors",
    "functional",
    "metrics",
    "models",
    "objectives",
    "papers",
    "relations",
    "report",
    "runs",
    "serve",
    "structure",
    "training",
    "translate",
)
__all__ = [
    "OBJECTIVES",
    "AdaptiveLabels",
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
    "InputError",
    "Kin",
    "KinClassifier",
    "LabelEmbedding",
    "LabelSmoothing",
    "MixedCrossEntropy",
    "Model",
    "Objective",
    "OneHot",
    "OnlineLabelSmoothing",
    "PretrainedLabelEmbedding",
    "Retrospection",
    "SemanticSmoothing",
    "StaticLabels",
    "Taxonomy",
    "TreeSoftLabels",
    "UnitSphere",
    "__version__",
    "analysis",
    "audit",
    "audit_predictions",
    "bench",
    "compare",
    "comparison",
    "data",
    "decide",
    "doors",
    "evaluate",
    "functional",
    "load_run",
    "metrics",
    "models",
    "objectives",
    "papers",
    "relations",
    "report",
    "runs",
    "serve",
    "structure",
    "train",
    "training",
    "translate",
]

# The module of each name, and its name there; all other names are objectives.
_HOMES = {
    "InputError": ("labelkin._checks", "InputError"),
    "KinClassifier": ("labelkin.doors", "KinClassifier"),
    "Model": ("labelkin.training", "Model"),
    "Taxonomy": ("labelkin.structure", "Taxonomy"),
    "audit_predictions": ("labelkin.audit", "audit"),
    "compare": ("labelkin.comparison", "compare"),
    "evaluate": ("labelkin.runs", "evaluate"),
    "load_run": ("labelkin.runs", "load_run"),
    "train": ("labelkin.runs", "train"),
}
_RENAMED = {"load": "load_run"}  # deprecated names


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"labelkin.{name}")
    if name in _RENAMED:
        warnings.warn(
            f"labelkin.{name} is deprecated; use labelkin.{_RENAMED[name]}.", DeprecationWarning, stacklevel=2
        )
        name = _RENAMED[name]
    if name in __all__:
        home, own = _HOMES.get(name, ("labelkin.objectives", name))
        return getattr(import_module(home), own)
    raise AttributeError(f"module 'labelkin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
