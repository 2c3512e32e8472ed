"""A plan carried out: what is finished is kept, what is broken is gone on with, the rest is trained."""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from labelkin._checks import InputError, check_choice, check_count, listed
from labelkin.experiments.engines import ENGINES, Event, Job, run_here, run_in_processes, run_on_ray
from labelkin.experiments.plan.model import Plan, Planned
from labelkin.experiments.run import Bench, check
from labelkin.experiments.store import read_record
from labelkin.training import Interrupted, RunFolder
from labelkin.training.progress import Progress, Silent

KEPT = ("weights", "results")
PATIENCE = 0.5  # seconds between looks at a run that another process trains


class Outcome(NamedTuple):
    finished: list[Planned]  # now or before
    skipped: list[Planned]  # for want of time
    failed: list[tuple[Planned, str]]
    retries: int
    seconds: float


def outlook(plan: Plan, store: Path) -> str:
    """What the plan stands for, before anything runs."""
    runs = _once(plan.runs())
    done = sum(is_finished(store, run) for run in runs)
    several = {"backbones": plan.backbone, "trees": plan.taxonomy, "objectives": plan.arms, "seeds": plan.seeds}
    shape = " x ".join([", ".join(plan.data), *(f"{len(of)} {name}" for name, of in several.items() if len(of) > 1)])
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
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent(),
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train what is not finished. With a `budget` in seconds no run is begun that would not end in time.

    What is left then is told and in the outcome.

    With `keep="results"` a run that ends keeps its metrics and its outputs on the test set, and no weights.

    Several processes may work on one store: a run that another one trains is waited for. Raises what stops all runs (bad
    input, a full disk, Ctrl-C as `Interrupted`); a run that fails alone is in the outcome.
    """
    check_choice("engine", engine, ENGINES)
    check_count("jobs", jobs)
    check_choice("keep", keep, KEPT)
    folder = Path(store)
    runs = _once(plan.runs())
    waiting = [run for run in runs if not is_finished(folder, run)]
    _try_out(waiting)
    folder.mkdir(parents=True, exist_ok=True)
    say(outlook(plan, folder))
    work = _Work(folder, waiting, budget, say, at_once=jobs, weights=keep == "weights")
    if waiting:
        for event in _events(engine, work, jobs, address, progress):
            work.heard(event)
    skipped = [run for run in runs if run in work.queue or run in work.elsewhere]
    if skipped and budget is not None:
        say(
            f"{len(skipped)} of {len(runs)} runs are left: they would not have ended within the budget of "
            f"{budget:g} s; the same command goes on with them."
        )
    lost = {run.id for run, _ in work.failed}
    finished = [run for run in runs if run not in skipped and run.id not in lost]
    return Outcome(finished, skipped, work.failed, work.retries, monotonic() - work.begun)


def _events(
    engine: str, work: "_Work", jobs: int, address: str | None, progress: Callable[[str, int, int], Progress]
) -> Iterator[Event]:
    if engine == "ray":
        return run_on_ray(work.jobs(), store=work.store, count=jobs if jobs > 1 else None, address=address)
    if address is not None:
        raise InputError("--address: it is Ray's; say `--engine ray` as well.")
    return run_here(work.jobs(), progress=progress) if jobs == 1 else run_in_processes(work.jobs(), count=jobs)


class _Work:
    """The runs to do, handed out while there is time, and what is heard of them."""

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
        """Whether a run as long as the mean of those done would end within the budget."""
        spent = monotonic() - self.begun
        return self.budget is None or spent + self._seconds_a_run() * self.at_once <= self.budget

    def _seconds_a_run(self) -> float:
        return (monotonic() - self.begun) / self.done if self.done else 0.0

    def heard(self, event: Event) -> None:
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
            self.say(f"{run.title}: {event.message}; going on with it")
        elif event.kind == "busy":
            if run not in self.elsewhere:
                self.say(f"{run.title}: another process trains it; waiting")
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
        estimate = f", about {in_words(left * self._seconds_a_run())} left" if left else ""
        self.say(f"[{self.done}/{self.total}] {run.title}{accuracy}{estimate}")


def is_finished(store: Path, run: Planned) -> bool:
    return (store / run.name / "final.json").exists() and (store / run.name / "config.json").exists()


def raise_failures(outcome: Outcome) -> None:
    """Say which runs failed, once all others are done."""
    if outcome.failed:
        run, why = outcome.failed[0]
        others = [other.title for other, _ in outcome.failed[1:]]
        more = f" So did {listed(others)}." if others else ""
        raise InputError(f"{run.title} failed: {why}; the runs that ended are kept.{more}")


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _once(runs: Sequence[Planned]) -> list[Planned]:
    """Each run once: two names of a plan may mean the same."""
    return list({run.id: run for run in reversed(runs)}.values())[::-1]


def _try_out(runs: Sequence[Planned]) -> None:
    """See that data are there and options make sense, before any training."""
    bench: Bench | None = None
    for run in _once_a_seed(runs):
        bench = bench if bench is not None and bench.serves(run.spec) else Bench(run.spec)
        check(run.spec, bench)


def _once_a_seed(runs: Sequence[Planned]) -> list[Planned]:
    """One run of those that differ in the seed alone."""
    return list({dumps(replace(r.spec, settings=replace(r.spec.settings, seed=0)).as_dict()): r for r in runs}.values())
