"""Execute a plan: keep finished runs, resume interrupted ones, train the rest."""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from statistics import mean
from time import monotonic, sleep
from typing import NamedTuple

from labelkin._checks import InputError, check_choice, check_count, listed
from labelkin.comparison._plan import Plan, Planned
from labelkin.runs import (
    ENGINES,
    DataCache,
    Event,
    Job,
    Record,
    RunFolder,
    check_run,
    is_finished_run,
    read_record,
    run_here,
    run_in_processes,
    run_on_ray,
)
from labelkin.training import Interrupted, Progress, Silent

KEPT = ("weights", "results")
PATIENCE = 0.5  # seconds between checks of a run that another process trains


def best_grid_points(runs: Sequence[Planned], records: Mapping[str, Record]) -> list[Record]:
    """Return the records of a plan's runs under the plan's labels; for each grid, those of the best point.

    Args:
        runs: The runs of the plan.
        records: The records of the runs in the store, by id.

    Returns:
        The records. The label of the best point of a grid includes its values.
    """
    best_records: list[Record] = []
    for points in _by_point(runs, records).values():
        best = max(points, key=lambda label: _validation(points[label])) if len(points) > 1 else next(iter(points))
        best_records.extend(record._replace(label=best) for record in points[best])
    return best_records


def _by_point(runs: Sequence[Planned], records: Mapping[str, Record]) -> dict[str, dict[str, list[Record]]]:
    """Group the records by the plan's label, then by the label with the values of the grid."""
    found: dict[str, dict[str, list[Record]]] = {}
    for run in runs:
        if run.id in records:
            found.setdefault(run.label, {}).setdefault(run.point, []).append(records[run.id])
    return found


def _validation(records: Sequence[Record]) -> float:
    """Return the mean validation accuracy of the reported epochs."""
    found = []
    for record in records:
        if record.final is not None:
            row = record.history()[int(record.final["epoch"]) - 1]
            if "val_accuracy" not in row:
                raise InputError(f"{record.path}: the run has no validation accuracy to choose a value by.")
            found.append(row["val_accuracy"])
    return mean(found) if found else -1.0


class Outcome(NamedTuple):
    """The outcome of the runs of a plan.

    Args:
        finished: The finished runs, including those that had finished before.
        skipped: The runs that were not started, because the time budget was used up.
        failed: The runs that failed, each with the reason.
        retries: How often a run lost its process and was resumed.
        seconds: The time that the execution took.

    Example:
        >>> import tempfile
        >>> from labelkin.comparison import Plan, execute
        >>> plan = Plan.from_dict({"objectives": ["one-hot"], "training": {"epochs": 1}})
        >>> outcome = execute(plan, tempfile.mkdtemp())
        >>> len(outcome.finished), len(outcome.failed)
        (1, 0)
    """

    finished: list[Planned]
    skipped: list[Planned]
    failed: list[tuple[Planned, str]]
    retries: int
    seconds: float


def describe_plan(plan: Plan, store: Path) -> str:
    """Describe the runs of a plan in one line."""
    runs = _once(plan.runs())
    done = sum(is_finished(store, run) for run in runs)
    several = {
        "backbones": len(plan.backbone),
        "trees": len(plan.taxonomy),
        "objectives": len(plan.arms),
        "seeds": len(plan.seeds),
        "folds": plan.folds or 1,
    }
    shape = " x ".join([", ".join(plan.data), *(f"{count} {name}" for name, count in several.items() if count > 1)])
    return f"{shape}: {len(runs)} runs, {done} finished, {len(runs) - done} to do in {store}."


def execute(
    plan: Plan,
    store: str | os.PathLike[str] = "runs",
    *,
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
    budget: float | None = None,
    keep: str = "weights",
    data: DataCache | None = None,
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent(),
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train the runs of a plan that are not finished.

    Several processes may work on one store: if another process trains a run, this one waits for it.

    Args:
        plan: The plan.
        store: The folder of the runs.
        jobs: The number of runs to train at once.
        engine: "local" or "ray".
        address: The address of a Ray cluster.
        budget: Seconds. No run begins that would not finish in time; the others are `skipped` in the outcome.
        keep: "weights", or "results" to keep the metrics and the outputs on the test set of a finished run, but no weights.
        data: Data sets that were read before. New ones are added, so that the report does not read them again.
        progress: Called with a run's title, epochs and steps per epoch; returns the object that shows them.
        say: Called with each line of status.

    Returns:
        The outcome, including runs that failed. Errors that stop all runs are raised: bad input, a full disk, and Ctrl-C as
        `Interrupted`.

    Example:
        >>> import tempfile
        >>> from labelkin.comparison import Plan, execute
        >>> plan = Plan.from_dict({"objectives": ["one-hot"], "seeds": [0, 1], "training": {"epochs": 1}})
        >>> [run.title for run in execute(plan, tempfile.mkdtemp()).finished]
        ['one-hot seed 0', 'one-hot seed 1']
    """
    folder = Path(store)
    check_how(folder, jobs=jobs, engine=engine, keep=keep)
    runs = _once(plan.runs())
    waiting = [run for run in runs if not is_finished(folder, run)]
    cache = DataCache() if data is None else data
    check_runs(waiting, cache)
    folder.mkdir(parents=True, exist_ok=True)
    say(describe_plan(plan, folder))
    work = _Work(folder, waiting, budget, say, at_once=jobs, weights=keep == "weights")
    if waiting:
        for event in _events(engine, work, jobs, address, cache, progress):
            work.handle(event)
    skipped = [run for run in runs if run in work.queue or run in work.elsewhere]
    if skipped and budget is not None:
        say(
            f"{len(skipped)} of {len(runs)} runs were skipped, because they would not have finished within the budget of "
            f"{budget:g} s; run the same command again to train them."
        )
    lost = {run.id for run, _ in work.failed}
    finished = [run for run in runs if run not in skipped and run.id not in lost]
    return Outcome(finished, skipped, work.failed, work.retries, monotonic() - work.begun)


def check_how(store: Path, *, jobs: int, engine: str, keep: str) -> None:
    """Check the arguments of `execute` that say how and where to train."""
    check_choice("engine", engine, ENGINES)
    check_count("jobs", jobs)
    check_choice("keep", keep, KEPT)
    above = next(folder for folder in (store, *store.parents) if folder.exists())
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(store))


def _events(
    engine: str,
    work: "_Work",
    jobs: int,
    address: str | None,
    data: DataCache,
    progress: Callable[[str, int, int], Progress],
) -> Iterator[Event]:
    if engine == "ray":
        return run_on_ray(work.jobs(), store=work.store, count=jobs if jobs > 1 else None, address=address)
    if address is not None:
        raise InputError("--address: expected `--engine ray` with it.")
    if jobs > 1:
        return run_in_processes(work.jobs(), count=jobs, progress=progress)
    return run_here(work.jobs(), data=data, progress=progress)


class _Work:
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
        self.queue = deque(runs)
        self.total, self.done, self.retries = len(runs), 0, 0
        self.failed: list[tuple[Planned, str]] = []
        self.elsewhere: deque[Planned] = deque()  # trained by other processes
        self.handed = dict[Path, Planned]()
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

    def _job(self, run: Planned) -> Job:
        folder = self.store / run.name
        self.handed[folder] = run
        return Job(run.title, run.spec, folder)

    def _has_time(self) -> bool:
        """Return whether a run of average length would finish within the budget."""
        spent = monotonic() - self.begun
        return self.budget is None or spent + self._seconds_per_run() * self.at_once <= self.budget

    def _seconds_per_run(self) -> float:
        return (monotonic() - self.begun) / self.done if self.done else 0.0

    def handle(self, event: Event) -> None:
        if event.kind == "stopped":
            raise Interrupted
        if event.kind == "full":
            raise OSError(errno.ENOSPC, event.message)
        if event.kind == "refused":
            raise InputError(event.message)
        run = self.handed[event.job.folder]
        if event.kind == "finished":
            self._finished(run)
        elif event.kind == "retried":
            self.retries += 1
            self.say(f"{run.title}: {event.message}; resuming it")
        elif event.kind == "busy":
            if run not in self.elsewhere:
                self.say(f"{run.title}: another process is training it; waiting")
            self.elsewhere.append(run)
        else:
            self.failed.append((run, event.message))
            self.say(f"{run.title}: failed: {event.message}")

    def _finished(self, run: Planned) -> None:
        self.done += 1
        if not self.weights:
            RunFolder(self.store / run.name).drop_weights()
        left = self.total - self.done - len(self.failed)
        record = read_record(self.store / run.name)
        accuracy = "" if record is None or record.final is None else f"  {100 * record.final['accuracy']:.2f} %"
        estimate = f", about {in_words(left * self._seconds_per_run())} left" if left else ""
        self.say(f"[{self.done}/{self.total}] {run.title}{accuracy}{estimate}")


def is_finished(store: Path, run: Planned) -> bool:
    """Return whether the store contains the results of a run."""
    return is_finished_run(store / run.name)


def raise_failures(outcome: Outcome) -> None:
    """Raise an error that names the failed runs."""
    if outcome.failed:
        run, why = outcome.failed[0]
        others = [other.title for other, _ in outcome.failed[1:]]
        more = f" Also failed: {listed(others)}." if others else ""
        raise InputError(f"{run.title} failed: {why.removesuffix('.')}; the finished runs are kept.{more}")


def in_words(seconds: float) -> str:
    """Return a duration such as `"12 s"`, `"5 min"` or `"1.5 h"`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _once(runs: Sequence[Planned]) -> list[Planned]:
    """Remove duplicates: two labels of a plan may have the same run."""
    return list({run.id: run for run in reversed(runs)}.values())[::-1]


def check_runs(runs: Sequence[Planned], data: DataCache) -> None:
    """Check data, options and the machine for all runs before any training."""
    for run in _one_seed_each(runs):
        check_run(run.spec, data.workspace(run.spec))


def _one_seed_each(runs: Sequence[Planned]) -> list[Planned]:
    """Return one of the runs that differ only in the seed."""
    return list({dumps(replace(r.spec, settings=replace(r.spec.settings, seed=0)).as_dict()): r for r in runs}.values())
