"""The runs of a plan that remain to be trained: handed out while there is time, with the outcome of each."""

import errno
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from time import monotonic, sleep

from labelkin._checks import InputError
from labelkin.comparison._plan import Planned
from labelkin.runs import DataCache, Event, FleetJobs, Job, RunFolder, fleets_of, is_finished_run, read_record
from labelkin.training import Interrupted

PATIENCE = 0.5  # seconds between checks of a run that another process trains


class Work:
    """The runs to train: hands them out while there is time, and keeps track of their events."""

    def __init__(
        self,
        store: Path,
        runs: Sequence[Planned],
        budget: float | None,
        say: Callable[[str], None],
        *,
        at_once: int,
        weights: bool,
    ) -> None:
        self.store, self.budget, self.say, self.at_once = store, budget, say, at_once
        self.weights = weights
        self.members = 1  # of the fleet that is trained
        self.queue = deque(runs)
        self.total, self.done, self.retries = len(runs), 0, 0
        self.failed: list[tuple[Planned, str]] = []
        self.elsewhere: deque[Planned] = deque()  # trained by other processes
        self.announced = set[str]()  # those of them that were reported
        self.handed = dict[Path, Planned]()
        self.started = dict[Path, float]()
        self.durations: list[float] = []  # of the finished runs; members of a fleet have a share of its time each
        self.together = set[Path]()  # members of a fleet, whose outcomes come at once
        self.begun = monotonic()

    def jobs(self) -> Iterator[Job]:
        while self.queue and self._has_time():
            yield self._job(self.queue.popleft())
        while self.elsewhere and self._has_time():
            run = self.elsewhere.popleft()
            if is_finished(self.store, run):
                self._finished(run)
                continue
            sleep(PATIENCE)
            yield self._job(run)

    def fleets(self, most: int, data: DataCache) -> Iterator[FleetJobs]:
        """Hand out the runs in fleets of at most `most` members."""
        for fleet in fleets_of([self._job(run) for run in self.queue], most, data):
            self.members = len(fleet.jobs) if fleet.reason is None else 1
            if not self._has_time():
                return
            for job in fleet.jobs:
                self.queue.remove(self.handed[job.folder])
                self.started[job.folder] = monotonic()
            self.together = {job.folder for job in fleet.jobs} if fleet.reason is None else set()
            yield fleet
        self.together, self.members = set(), 1
        yield from (FleetJobs([job], "") for job in self.jobs())

    def begins(self, job: Job) -> bool:
        """Return whether there is time for a run that was handed out with others and trains alone; if not, it is skipped."""
        self.members = 1
        self.together.discard(job.folder)
        self.started[job.folder] = monotonic()
        if self._has_time():
            return True
        self.queue.append(self.handed[job.folder])
        return False

    def _job(self, run: Planned) -> Job:
        folder = self.store / run.name
        self.handed[folder], self.started[folder] = run, monotonic()
        return Job(run.title, run.spec, folder)

    def _has_time(self) -> bool:
        """Return whether another run of average length, or a fleet, would finish within the budget."""
        spent = monotonic() - self.begun
        return self.budget is None or spent + self._duration() * self.members <= self.budget

    def _duration(self) -> float:
        """Return the mean duration of a finished run; 0 if there is none."""
        return fmean(self.durations) if self.durations else 0.0

    def _seconds_left(self, runs: int) -> float:
        """Return the estimated time for some more runs: those that train at once count as one."""
        return self._duration() * (runs if self.members > 1 else -(-runs // self.at_once))

    def handle(self, event: Event) -> None:
        if event.kind == "stopped":
            raise Interrupted
        if event.kind == "full":
            raise OSError(errno.ENOSPC, event.message)
        if event.kind == "refused":
            raise InputError(event.message)
        run = self.handed[event.job.folder]
        self.together.discard(event.job.folder)
        if event.kind == "finished":
            self._finished(run)
        elif event.kind == "retried":
            self.retries += 1
            self.say(f"{run.title}: {event.message}; resuming it")
        elif event.kind == "busy":
            if run.name not in self.announced:
                self.announced.add(run.name)
                self.say(f"{run.title}: another process is training it; waiting")
            self.elsewhere.append(run)
        else:
            self.failed.append((run, event.message))
            self.say(f"{run.title}: failed: {event.message}")

    def _finished(self, run: Planned) -> None:
        self.done += 1
        started = self.started.pop(self.store / run.name, None)
        if started is not None:
            self.durations.append((monotonic() - started) / self.members)
        if not self.weights:
            RunFolder(self.store / run.name).drop_weights()
        left = self.total - self.done - len(self.failed)
        record = read_record(self.store / run.name)
        accuracy = "" if record is None or record.final is None else f"  {100 * record.final['accuracy']:.2f} %"
        estimate = f", about {in_words(self._seconds_left(left))} left" if left and not self.together else ""
        self.say(f"[{self.done}/{self.total}] {run.title}{accuracy}{estimate}")


def is_finished(store: Path, run: Planned) -> bool:
    """Return whether the store contains the results of a run."""
    return is_finished_run(store / run.name)


def in_words(seconds: float) -> str:
    """Return a duration such as `"12 s"`, `"5 min"` or `"1.5 h"`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
