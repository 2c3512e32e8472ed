"""Train runs one after another in this process."""

from collections.abc import Callable, Iterator
from functools import partial

from labelkin.experiments.engines.attempt import Event, Job, attempt
from labelkin.experiments.workspace import DataCache
from labelkin.training.progress import Progress


def run_here(jobs: Iterator[Job], *, data: DataCache, progress: Callable[[str, int, int], Progress]) -> Iterator[Event]:
    """Train each job and yield its event. `data` holds the data sets that were read before."""
    for job in jobs:
        yield attempt(job, data, partial(progress, job.title, job.spec.settings.epochs))
