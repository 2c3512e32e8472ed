"""Every objective on digits: what a newcomer sees first."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labelkin.experiments.comparison import Comparison
from labelkin.experiments.protocol import compare, plan_for
from labelkin.training.progress import Progress

# Half a minute of one core altogether. Shifts by a pixel bring the tree objectives within two points of one-hot.
SETTINGS: dict[str, Any] = {
    "epochs": 15,
    "batch_size": 64,
    "lr": 5e-3,
    "schedule": "cosine",
    "augment": ("shift:0.125",),
}


def demo(
    out: str | os.PathLike[str] = "runs/demo", *, fresh: bool = False, progress: Callable[[str, int, int], Progress]
) -> Comparison:
    """Compare all objectives on digits; runs that are finished under `out` are kept, or removed first with `fresh`."""
    if fresh:
        _forget(Path(out))
    return compare("digits", out=out, progress=progress, **SETTINGS)


def _forget(folder: Path) -> None:
    """Remove the demo's runs and nothing else."""
    for run in plan_for("digits", training=SETTINGS).runs():
        if (folder / run.name).exists():
            shutil.rmtree(folder / run.name)
