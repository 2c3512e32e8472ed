"""Limit how often a run is retried after its process died."""

from collections import Counter

from labelkin.experiments.engines.attempt import Event, Job

MOST = 3


class Retries:
    """Counts the processes that each run lost."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def after_death(self, job: Job, how: str) -> Event:
        """Return a "retried" event, or "failed" if the run lost its process too often: then the run is the likely cause."""
        self.count[str(job.folder)] += 1
        if self.count[str(job.folder)] <= MOST:
            return Event(job, "retried", how)
        return Event(job, "failed", f"{how}, {MOST + 1} times; is memory short?")
