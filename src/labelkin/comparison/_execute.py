"""Execute a plan: keep finished runs, resume interrupted ones, train the rest."""

import errno
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from json import dumps
from pathlib import Path
from statistics import mean
from time import monotonic
from typing import NamedTuple

from labelkin._checks import InputError, check_choice, check_count, counted, listed
from labelkin.comparison._plan import Plan, Planned
from labelkin.comparison._work import Work, is_finished
from labelkin.runs import (
    ENGINES,
    DataCache,
    Event,
    Record,
    RunFolder,
    check_contents,
    check_run,
    cuda_mps,
    drop_lost_tokens,
    run_here,
    run_in_fleets,
    run_in_processes,
    run_on_ray,
)
from labelkin.training import Progress, Silent

KEPT = ("weights", "results")


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
    return f"{shape}: {counted(len(runs), 'run')}, {done} finished, {len(runs) - done} to do in {store}."


def execute(
    plan: Plan | Mapping[str, Plan],
    store: str | os.PathLike[str] = "runs",
    *,
    jobs: int = 1,
    fleet: int = 1,
    mps: bool = False,
    engine: str = "local",
    address: str | None = None,
    budget: float | None = None,
    keep: str = "weights",
    data: DataCache | None = None,
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent(),
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train the runs of a plan, or of several, that are not finished.

    Several processes may work on one store: if another process trains a run, this one waits for it.

    Args:
        plan: The plan, or several plans by name. The runs of several plans share the processes of `jobs`, so that no plan has
            to wait for the last run of another.
        store: The folder of the runs.
        jobs: The number of runs to train at once, each in its own process.
        fleet: The maximum number of runs to train as one batched model. Runs can be trained together if they differ only in the
            seed and in the objective; the others are trained one by one. For small networks.
        mps: Whether the processes of `jobs` share a GPU through CUDA MPS, which lets their kernels run at the same time.
        engine: "local" or "ray".
        address: The address of a Ray cluster.
        budget: Seconds. No run begins that would not finish in time; the others are `skipped` in the outcome.
        keep: "weights", or "results" to keep the metrics and the outputs on the test set of a finished run, but no weights.
        data: Data sets that are already loaded; newly loaded ones are added, so that the report does not read them again.
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
    check_how(folder, jobs=jobs, fleet=fleet, mps=mps, engine=engine, keep=keep)
    plans = plan if isinstance(plan, Mapping) else {"": plan}
    runs = _once([replace(run, part=name) for name, one in plans.items() for run in one.runs()])
    waiting = [run for run in runs if not is_finished(folder, run)]
    check_contents([folder / run.name for run in runs if is_finished(folder, run)])
    for run in runs:
        if run not in waiting and any((folder / run.name).glob("state*")):
            RunFolder(folder / run.name).drop_states()  # of a run that was killed while it deleted them
    cache = DataCache() if data is None else data
    check_runs(waiting, cache)
    folder.mkdir(parents=True, exist_ok=True)
    drop_lost_tokens(folder)
    for name, one in plans.items():
        say(f"{name}: {describe_plan(one, folder)}" if name else describe_plan(one, folder))
    work = Work(folder, waiting, budget, say, at_once=jobs, weights=keep == "weights")
    if waiting:
        with _environment(mps=mps) as environment:
            how = _How(engine, jobs, fleet, address, environment)
            with closing(_events(how, work, cache, progress)) as events:  # processes end before their daemon
                for event in events:
                    work.handle(event)
    skipped = [run for run in runs if run in work.queue or run in work.elsewhere]
    if skipped and budget is not None:
        were, they, them = ("was", "it", "it") if len(skipped) == 1 else ("were", "they", "them")
        say(
            f"{len(skipped)} of {counted(len(runs), 'run')} {were} skipped, because {they} would not have finished within the "
            f"budget of {budget:g} s; run the same command again to train {them}."
        )
    lost = {run.id for run, _ in work.failed}
    finished = [run for run in runs if run not in skipped and run.id not in lost]
    return Outcome(finished, skipped, work.failed, work.retries, monotonic() - work.begun)


class _How(NamedTuple):
    """How runs are trained."""

    engine: str
    jobs: int
    fleet: int
    address: str | None
    environment: Mapping[str, str]  # variables of the processes


def _environment(*, mps: bool) -> AbstractContextManager[dict[str, str]]:
    """Return a context manager with the environment variables of the processes, which are valid inside it."""
    return cuda_mps() if mps else nullcontext({})


def check_how(store: Path, *, jobs: int, fleet: int, mps: bool, engine: str, keep: str) -> None:
    """Check the arguments of `execute` that say how and where to train."""
    check_choice("engine", engine, ENGINES)
    check_count("jobs", jobs)
    check_count("fleet", fleet)
    _check_together(jobs=jobs, fleet=fleet, mps=mps, engine=engine)
    check_choice("keep", keep, KEPT)
    above = next(folder for folder in (store, *store.parents) if folder.exists())
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(store))


def _check_together(*, jobs: int, fleet: int, mps: bool, engine: str) -> None:
    """Refuse engines that exclude each other."""
    if fleet > 1 and (jobs > 1 or engine != "local"):
        other = "--jobs" if jobs > 1 else f"--engine {engine}"
        raise InputError(f"--fleet: trains runs in one process, so it cannot be combined with {other}; leave one out.")
    if mps and (jobs == 1 or engine != "local"):
        raise InputError(
            "--mps: is for several processes that share a GPU on this machine; add --jobs N with N > 1, without --engine."
        )


def _events(how: _How, work: Work, data: DataCache, progress: Callable[[str, int, int], Progress]) -> Generator[Event]:
    if how.engine == "ray":
        count = how.jobs if how.jobs > 1 else None
        yield from run_on_ray(work.jobs(), store=work.store, count=count, address=how.address)
    elif how.address is not None:
        raise InputError("--address: expected `--engine ray` with it.")
    elif how.jobs > 1:
        yield from run_in_processes(work.jobs(), count=how.jobs, environment=how.environment, progress=progress)
    elif how.fleet > 1:
        fleets = work.fleets(how.fleet, data)
        yield from run_in_fleets(fleets, data=data, progress=progress, say=work.say, begins=work.begins)
    else:
        yield from run_here(work.jobs(), data=data, progress=progress)


def raise_failures(outcome: Outcome) -> None:
    """Raise an error that names the failed runs."""
    if outcome.failed:
        run, why = outcome.failed[0]
        others = [other.title for other, _ in outcome.failed[1:]]
        more = f" Also failed: {listed(others)}." if others else ""
        raise InputError(f"{run.title} failed: {why.removesuffix('.')}; the finished runs are kept.{more}")


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
