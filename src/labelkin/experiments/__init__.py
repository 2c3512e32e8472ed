"""Plans, runs, the store that keeps them, and their comparison.

Names are imported when they are first used, so that a store can be listed without torch.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelkin.experiments.api import TrainedRun
    from labelkin.experiments.comparison import Comparison, Row, summarise
    from labelkin.experiments.evaluation import Evaluated, evaluate
    from labelkin.experiments.exporting import Exported, export
    from labelkin.experiments.plan import Arm, Plan, execute, read_plan
    from labelkin.experiments.predictions import write_predictions
    from labelkin.experiments.predictor import Prediction, Predictor, load_run, run_spec
    from labelkin.experiments.protocol import compare, compare_plan
    from labelkin.experiments.run import train
    from labelkin.experiments.spec import RunSpec
    from labelkin.experiments.store import Record, Store
    from labelkin.experiments.workspace import DataCache, DataWorkspace

_HOMES = {
    "Arm": "plan",
    "Comparison": "comparison",
    "DataCache": "workspace",
    "DataWorkspace": "workspace",
    "Evaluated": "evaluation",
    "Exported": "exporting",
    "Plan": "plan",
    "Prediction": "predictor",
    "Predictor": "predictor",
    "Record": "store",
    "Row": "comparison",
    "RunSpec": "spec",
    "Store": "store",
    "TrainedRun": "api",
    "compare": "protocol",
    "compare_plan": "protocol",
    "evaluate": "evaluation",
    "execute": "plan",
    "export": "exporting",
    "load_run": "predictor",
    "read_plan": "plan",
    "run_spec": "predictor",
    "summarise": "comparison",
    "train": "run",
    "write_predictions": "predictions",
}
_RENAMED = {"Bench": "DataWorkspace", "load": "load_run"}  # deprecated names
__all__ = [
    "Arm",
    "Comparison",
    "DataCache",
    "DataWorkspace",
    "Evaluated",
    "Exported",
    "Plan",
    "Prediction",
    "Predictor",
    "Record",
    "Row",
    "RunSpec",
    "Store",
    "TrainedRun",
    "compare",
    "compare_plan",
    "evaluate",
    "execute",
    "export",
    "load_run",
    "read_plan",
    "run_spec",
    "summarise",
    "train",
    "write_predictions",
]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(
            f"labelkin.experiments.{name} is deprecated; use labelkin.experiments.{new}.",
            DeprecationWarning,
            stacklevel=2,
        )
        name = new
    if name in _HOMES:
        return getattr(import_module(f"labelkin.experiments.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'labelkin.experiments' has no attribute {name!r}")
