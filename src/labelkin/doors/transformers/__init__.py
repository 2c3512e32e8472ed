"""Train Hugging Face models with labelkin's objectives.

Names are imported when they are first used. `KinTrainer` needs accelerate, as every `transformers.Trainer` does.
"""

from typing import TYPE_CHECKING

from labelkin._lazy import lazy_exports

if TYPE_CHECKING:
    from labelkin.doors.transformers._metrics import compute_metrics_for as compute_metrics_for
    from labelkin.doors.transformers._model import KinModel as KinModel
    from labelkin.doors.transformers._trainer import KinTrainer as KinTrainer

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_metrics": ["compute_metrics_for"],
        "_model": ["KinModel"],
        "_trainer": ["KinTrainer"],
    },
)
