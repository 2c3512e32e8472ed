"""Train runs in fleets: those that share data, network and settings but the seed are one batched model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from json import dumps
from typing import NamedTuple

import torch

from labelkin._checks import counted
from labelkin.runs._classification import train_fleet
from labelkin.runs._engines.attempt import Event, Job, event_after, train_job
from labelkin.runs._kinds import kind_name
from labelkin.runs._run_files import read_json
from labelkin.runs._train import check_folder
from labelkin.runs._workspace import DataCache
from labelkin.training import NotBatched, Progress, reason_against

ALONE = "no other run of the plan has the same data, network and settings"


class FleetJobs(NamedTuple):
    """Runs to train as one batched model, or one by one if there is a reason; an empty reason is not reported."""

    jobs: list[Job]
    reason: str | None


def fleets_of(jobs: Sequence[Job], most: int, data: DataCache) -> list[FleetJobs]:
    """Group runs into fleets of at most `most` members.

    Members share data, tree, network and settings but the seed, and the step that they were interrupted at. Those with the
    same objective are neighbors.

    Args:
        jobs: The runs.
        most: The maximum number of members of a fleet.
        data: Data sets that are already loaded; newly loaded ones are added.
    """
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(_shared(job), []).append(job)
    fleets = []
    for group in groups.values():
        reason = _reason(group[0], data)
        ordered = sorted(group, key=lambda job: objective_kind(job))
        parts = [ordered] if reason is not None else _evenly(ordered, -(-len(ordered) // most))
        fleets += [FleetJobs(part, reason or (ALONE if len(part) == 1 else None)) for part in parts]
    return fleets


def objective_kind(job: Job) -> str:
    """Return what the objective of a run depends on besides the data and the seed."""
    return dumps([job.spec.objective, job.spec.options], sort_keys=True, default=str)


def _shared(job: Job) -> str:
    """Return what the members of a fleet have in common."""
    settings = replace(job.spec.settings, seed=0)
    values = replace(job.spec, settings=settings, objective="one-hot", options={}).as_dict()
    state = read_json(job.folder / "state.json") or {}
    return dumps([values, state.get("epoch", 0), state.get("step", 0)], sort_keys=True)


def _reason(job: Job, data: DataCache) -> str | None:
    """Return why a run and those like it are trained one by one, or None."""
    if kind_name(job.spec.data) != "classification":
        return "they translate"
    return reason_against(job.spec.settings, data.workspace(job.spec).dataset)


def _evenly(jobs: list[Job], parts: int) -> list[list[Job]]:
    """Split a list into parts whose lengths differ by at most one."""
    ends = [len(jobs) * part // parts for part in range(parts + 1)]
    return [jobs[start:end] for start, end in pairwise(ends)]


def run_in_fleets(
    fleets: Iterator[FleetJobs],
    *,
    data: DataCache,
    progress: Callable[[str, int, int], Progress],
    say: Callable[[str], None],
    begins: Callable[[Job], bool] = lambda job: True,
) -> Iterator[Event]:
    """Train fleets one after another in this process, and yield an event for each run that began.

    Args:
        fleets: The fleets.
        data: Data sets that are already loaded; newly loaded ones are added.
        progress: Called with a title, the epochs and the steps per epoch; returns the object that shows them.
        say: Called with each line of status.
        begins: Called before a run that trains alone; returns whether it may begin.
    """
    for fleet in fleets:
        alone, together = ([fleet], []) if fleet.reason is not None else ([], fleet.jobs)
        while together:
            found = _train_together(together, data, progress)
            if not isinstance(found, FleetJobs):
                yield from found
                break
            alone.append(found)
            together = [job for job in together if job not in found.jobs]
        for jobs, reason in alone:
            if reason:
                say(_not_together(jobs, reason))
            for job in filter(begins, jobs):
                yield train_job(job, data, partial(progress, job.title, job.spec.settings.epochs))


def _not_together(jobs: list[Job], reason: str) -> str:
    which = (
        jobs[0].title if len(jobs) == 1 else f"{counted(len(jobs), 'run')}, from {jobs[0].title} to {jobs[-1].title}"
    )
    return f"{which}: not in a fleet, because {reason}"


def _train_together(
    jobs: list[Job], data: DataCache, progress: Callable[[str, int, int], Progress]
) -> list[Event] | FleetJobs:
    """Return the event of each run of a fleet, or the runs that cannot be trained with others and the reason."""
    try:
        for job in jobs:
            check_folder(job.folder, job.spec, resume=True)
        results = train_fleet(
            [job.spec for job in jobs],
            [job.folder for job in jobs],
            [objective_kind(job) for job in jobs],
            workspace=data.workspace(jobs[0].spec),
            progress=partial(progress, f"fleet of {len(jobs)}", jobs[0].spec.settings.epochs),
        )
    except NotBatched as error:
        return FleetJobs(jobs if error.rows is None else [jobs[row] for row in error.rows], str(error))
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return FleetJobs(jobs, "the GPU has too little memory for all of them; choose a smaller --fleet")
    except (Exception, KeyboardInterrupt) as error:  # one failed fleet must not stop the others
        return [event_after(job, error) for job in jobs]
    ends = [result if isinstance(result, Exception) else None for result in results]
    return [event_after(job, end) for job, end in zip(jobs, ends, strict=True)]
