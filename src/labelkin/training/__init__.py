"""Models, and the loop that trains them."""

from labelkin.training.folder import RunFolder
from labelkin.training.interrupt import Diverged, Interrupted
from labelkin.training.loop import Trained, Trainer
from labelkin.training.model import Model
from labelkin.training.settings import Settings
from labelkin.training.task import Classify, Place, Task

__all__ = [
    "Classify",
    "Diverged",
    "Interrupted",
    "Model",
    "Place",
    "RunFolder",
    "Settings",
    "Task",
    "Trained",
    "Trainer",
]
