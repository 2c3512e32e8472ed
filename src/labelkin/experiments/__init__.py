"""Runs and their comparison."""

from labelkin.experiments.comparison import Comparison, Row, compare
from labelkin.experiments.evaluation import Evaluated, evaluate
from labelkin.experiments.exporting import Exported, export
from labelkin.experiments.predictions import write_predictions
from labelkin.experiments.predictor import Prediction, Predictor, load, run_spec
from labelkin.experiments.run import Bench, train
from labelkin.experiments.spec import RunSpec

__all__ = [
    "Bench",
    "Comparison",
    "Evaluated",
    "Exported",
    "Prediction",
    "Predictor",
    "Row",
    "RunSpec",
    "compare",
    "evaluate",
    "export",
    "load",
    "run_spec",
    "train",
    "write_predictions",
]
