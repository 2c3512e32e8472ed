"""The demo: every objective on digits."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labelkin._files import contains_run, remove_run
from labelkin.experiments.comparison import Comparison
from labelkin.experiments.plan import Plan
from labelkin.experiments.protocol import compare_plan, plan_for
from labelkin.experiments.workspace import DataCache
from labelkin.training.progress import Progress

# With shifts by one pixel the tree objectives come within two points of one-hot.
SETTINGS: dict[str, Any] = {
    "epochs": 15,
    "batch_size": 64,
    "lr": 5e-3,
    "schedule": "cosine",
    "augment": ("shift:0.125",),
}
SEEDS = (0, 1, 2)  # the smallest number that can show a difference
JOBS = 2


def demo(
    out: str | os.PathLike[str] = "runs/demo",
    *,
    fresh: bool = False,
    data: DataCache | None = None,
    progress: Callable[[str, int, int], Progress],
    say: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Compare all objectives on digits. Finished runs in `out` are kept, or removed first if `fresh`."""
    plan = plan_for("digits", seeds=SEEDS, training=SETTINGS)
    if fresh:
        _remove_runs(plan, Path(out))
    return compare_plan(plan, out, jobs=min(JOBS, os.cpu_count() or 1), data=data, progress=progress, say=say)[0]


def _remove_runs(plan: Plan, folder: Path) -> None:
    """Remove the files of the demo's runs. Files that labelkin did not write are kept."""
    for run in plan.runs():
        if contains_run(folder / run.name):
            remove_run(folder / run.name)
