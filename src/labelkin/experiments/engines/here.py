"""Run after run in this process."""

from collections.abc import Callable, Iterator
from functools import partial

from labelkin.experiments.engines.attempt import Event, Job, attempt
from labelkin.experiments.run import Bench
from labelkin.training.progress import Progress


def run_here(jobs: Iterator[Job], *, progress: Callable[[str, int, int], Progress]) -> Iterator[Event]:
    bench: Bench | None = None
    for job in jobs:
        bench = bench if bench is not None and bench.serves(job.spec) else Bench(job.spec)
        yield attempt(job, bench, partial(progress, job.title, job.spec.settings.epochs))
