"""How often a run may lose its process before it counts as failed."""

from collections import Counter

from labelkin.experiments.engines.attempt import Event, Job

MOST = 3


class Retries:
    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def after_death(self, job: Job, how: str) -> Event:
        """A run whose process died is gone on with, unless that has happened too often: then the run is the cause."""
        self.count[str(job.folder)] += 1
        if self.count[str(job.folder)] <= MOST:
            return Event(job, "retried", how)
        return Event(job, "failed", f"{how}, {MOST + 1} times; is memory short?")
