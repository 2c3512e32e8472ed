"""Every objective under one protocol: the main job."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, check_names, plain
from labelkin.experiments.comparison import REFERENCE, Comparison, summarise
from labelkin.experiments.plan import Arm, Plan, Planned, chosen, execute
from labelkin.experiments.plan.execution import raise_failures
from labelkin.experiments.spec import check_chosen
from labelkin.experiments.store import read_record
from labelkin.objectives import OBJECTIVES
from labelkin.training.progress import Progress, Silent


def compare(
    data: str | os.PathLike[str] = "digits",
    *,
    objectives: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
    backbone: str | None = None,
    taxonomy: str | None = None,
    out: str | os.PathLike[str] = "runs",
    data_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    jobs: int = 1,
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent(),
    **settings: Any,
) -> Comparison:
    """Train each objective on the same data, batches and first weights, and put the results side by side.

    `options` maps an objective to its own; `settings` are those of `labelkin.training.Settings`. Runs are kept under
    `out`; those that are finished there with the same configuration are not repeated, and broken ones are gone on with.
    `jobs` runs are trained at once, each in a process of its own.
    """
    plan = plan_for(
        os.fspath(data),
        objectives=objectives,
        seeds=seeds,
        backbone=backbone,
        taxonomy=taxonomy,
        data_options=data_options,
        options=options,
        training=settings,
    )
    return compare_plan(plan, out, jobs=jobs, progress=progress)[0]


def plan_for(
    data: str,
    *,
    objectives: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
    backbone: str | None = None,
    taxonomy: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    grids: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
    training: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of one data set and backbone; `options` and `grids` by objective."""
    chosen_names = OBJECTIVES if objectives is None else objectives
    names = [chosen_names] if isinstance(chosen_names, str) else list(chosen_names)
    if not isinstance(seeds, Iterable):
        raise InputError(f"seeds: expected a list of whole numbers, such as [0, 1, 2], got {seeds!r}.")
    own_seeds = [plain(seed) for seed in seeds]
    if not names or not own_seeds:
        raise InputError("compare: expected at least one objective and one seed.")
    check_names("objectives", names)
    for given in (options or {}, grids or {}):
        check_chosen(given, names)
    _check_either(options or {}, grids or {})
    arms = [
        Arm(
            label=name,
            objective=name,
            options=dict((options or {}).get(name, {})),
            grid=dict((grids or {}).get(name, {})),
        )
        for name in names
    ]
    return Plan(
        data=(data,),
        backbone=(backbone,),
        taxonomy=(taxonomy,),
        data_options=dict(data_options or {}),
        arms=tuple(arms),
        seeds=tuple(own_seeds),
        training=dict(training or {}),
    )


def compare_plan(plan: Plan, out: str | os.PathLike[str] = "runs", **how: Any) -> list[Comparison]:
    """Carry out a plan (`how` as in `execute`) and compare what it gave: one comparison for each data set, backbone, tree."""
    outcome = execute(plan, out, **how)
    raise_failures(outcome)
    return comparisons(plan, Path(out))


def comparisons(plan: Plan, store: Path) -> list[Comparison]:
    """What a store holds of a plan, for each data set, backbone and tree."""
    groups: dict[tuple[str, str | None, str | None], dict[tuple[str, str], Planned]] = {}
    for run in plan.runs():  # under one label each run counts once, however often the plan has it
        group = groups.setdefault((run.spec.data, run.spec.backbone, run.spec.taxonomy), {})
        group.setdefault((run.label, run.id), run)
    found = []
    for group in groups.values():
        runs = list(group.values())
        records = {run.id: record for run in runs if (record := read_record(store / run.name)) is not None}
        if records:
            compared = summarise(chosen(plan, runs, records), reference=plan.reference or REFERENCE)
            found.append(compared._replace(not_begun=[run.name for run in runs if run.id not in records]))
    return found


def _check_either(options: Mapping[str, Mapping[str, Any]], grids: Mapping[str, Mapping[str, Any]]) -> None:
    for objective, grid in grids.items():
        for name in grid:
            if name in options.get(objective, {}):
                raise InputError(f"{objective}.{name}: has a value (--set) and a grid (--grid); leave one of them out.")
