"""`Model`, tasks, and the training loop."""

from labelkin.training.checkpoint import Checkpoint, State
from labelkin.training.folder import RunFolder
from labelkin.training.interrupt import Diverged, Interrupted
from labelkin.training.loop import Trained, Trainer
from labelkin.training.model import Model
from labelkin.training.settings import Settings
from labelkin.training.task import Classify, Place, Task

__all__ = [
    "Checkpoint",
    "Classify",
    "Diverged",
    "Interrupted",
    "Model",
    "Place",
    "RunFolder",
    "Settings",
    "State",
    "Task",
    "Trained",
    "Trainer",
]
