"""Compare objectives from Python: `labelkin.compare`, and plans."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, check_names, plain
from labelkin.comparison._execute import best_grid_points, execute, raise_failures
from labelkin.comparison._plan import Arm, Plan, Planned
from labelkin.comparison._summary import REFERENCE, Comparison, summarize
from labelkin.objectives import OBJECTIVES
from labelkin.runs import (
    NOT_OF_THE_TEST_SET,
    DataCache,
    Record,
    RunSpec,
    check_options_are_used,
    data_id,
    first_choice,
    read_record,
)
from labelkin.training import Progress, Settings, Silent


def compare(
    data: str | os.PathLike[str] = "digits",
    *,
    objectives: Sequence[str] | str | None = None,
    seeds: Sequence[int] = (0,),
    folds: int | None = None,
    backbone: str | None = None,
    taxonomy: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] = "runs",
    data_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    jobs: int = 1,
    fleet: int = 1,
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent(),
    **settings: Any,
) -> Comparison:
    """Train each objective with the same data, batches and initial weights, and compare the results.

    Runs are kept in the folder `out`. Finished runs with the same configuration are not repeated, and interrupted runs resume.

    Args:
        data: A name or path for `labelkin.data.load`, or a parallel corpus.
        objectives: Names in `labelkin.OBJECTIVES`, or "all". None trains four that suit the data: with a taxonomy
            one-hot, label-smoothing, hierarchical-cross-entropy and kin, without one label-embedding and retrospection
            instead of the last two; and those that `options` names.
        seeds: Each objective is trained once per seed.
        folds: The number of folds for cross-validation of data without a test split. None tests on one split, whose seed is
            `data_options={"seed": N}`.
        backbone: A name for `labelkin.models.build`. None chooses one by the shape of the data.
        taxonomy: The name of a shipped tree, a file, or "wordnet". None uses the tree of the data, or builds one from them.
        out: The folder of the runs.
        data_options: Keyword arguments of `labelkin.data.load`.
        options: Keyword arguments of the objectives, such as `{"label-smoothing": {"smoothing": 0.2}}`.
        jobs: The number of runs to train at once, each in its own process.
        fleet: The maximum number of runs to train as one batched model, for small networks; see `labelkin.comparison.execute`.
        progress: Called with a run's title, epochs and steps per epoch; returns the object that shows them.
        **settings: Fields of `labelkin.training.Settings`, such as `epochs` and `lr`.

    Returns:
        The comparison. `print` shows it as a table; `rows` has the numbers.

    Example:
        >>> import labelkin, tempfile
        >>> objectives = ["one-hot", "label-smoothing"]
        >>> compared = labelkin.compare("digits", objectives=objectives, out=tempfile.mkdtemp(), epochs=1)
        >>> [row.label for row in compared.rows]
        ['one-hot', 'label-smoothing']
    """
    sets = DataCache()
    named = RunSpec(data=data, taxonomy=taxonomy)  # type: ignore[arg-type]  # paths become names
    if objectives is None:
        spec = first_spec(
            named.data, taxonomy=named.taxonomy, data_options=data_options, folds=folds, training=settings
        )
        objectives = list(dict.fromkeys([*first_choice(spec, sets).compared, *(options or {})]))
    plan = plan_for(
        named.data,
        objectives=None if objectives == "all" else objectives,
        seeds=seeds,
        folds=folds,
        backbone=backbone,
        taxonomy=named.taxonomy,
        data_options=data_options,
        options=options,
        training=settings,
    )
    return compare_plan(plan, out, jobs=jobs, fleet=fleet, data=sets, progress=progress)[0]


def first_spec(
    data: str,
    *,
    taxonomy: str | None,
    data_options: Mapping[str, Any] | None,
    folds: int | None,
    training: Mapping[str, Any],
) -> RunSpec:
    """Return a run with the data of a comparison, to choose its objectives by."""
    fold = {} if folds is None else {"folds": folds, "fold": 0}
    settings = Settings.of(**training)
    return RunSpec(data=data, taxonomy=taxonomy, data_options={**(data_options or {}), **fold}, settings=settings)


def plan_for(
    data: str,
    *,
    objectives: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
    folds: int | None = None,
    backbone: str | None = None,
    taxonomy: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    grids: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
    training: Mapping[str, Any] | None = None,
) -> Plan:
    """Build the plan for one data set and backbone, by default of all objectives. `options` and `grids` are by objective."""
    chosen_names = OBJECTIVES if objectives is None else objectives
    names = [chosen_names] if isinstance(chosen_names, str) else list(chosen_names)
    if not isinstance(seeds, Iterable):
        raise InputError(f"seeds: expected a list of whole numbers, such as [0, 1, 2], got {seeds!r}.")
    own_seeds = [plain(seed) for seed in seeds]
    if not names or not own_seeds:
        raise InputError("objectives and seeds: expected at least one of each.")
    check_names("objectives", names)
    for given in (options or {}, grids or {}):
        check_options_are_used(given, names)
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
        folds=folds,
        training=dict(training or {}),
    )


def compare_plan(plan: Plan, out: str | os.PathLike[str] = "runs", **how: Any) -> list[Comparison]:
    """Train the runs of a plan and compare them.

    Args:
        plan: The plan.
        out: The folder of the runs.
        **how: Keyword arguments of `execute`, such as `jobs`.

    Returns:
        One comparison per data set, backbone and taxonomy.

    Example:
        >>> import tempfile
        >>> from labelkin.comparison import Plan, compare_plan
        >>> plan = Plan.from_dict({"objectives": ["one-hot", "label-smoothing"], "training": {"epochs": 1}})
        >>> [[row.label for row in compared.rows] for compared in compare_plan(plan, tempfile.mkdtemp())]
        [['one-hot', 'label-smoothing']]
    """
    outcome = execute(plan, out, **how)
    raise_failures(outcome)
    return compare_stored_runs(plan, Path(out))


def compare_stored_runs(plan: Plan, store: Path) -> list[Comparison]:
    """Compare the runs of a plan that are in a store: one comparison per data set, backbone and taxonomy."""
    groups: dict[tuple[str, str | None, str | None], dict[tuple[str, str], Planned]] = {}
    for run in plan.runs():  # a run counts once per label, even if the plan lists it twice
        group = groups.setdefault((run.spec.data, run.spec.backbone, run.spec.taxonomy), {})
        group.setdefault((run.label, run.id), run)
    found = []
    for group in groups.values():
        runs = list(group.values())
        records = {run.id: record for run in runs if (record := _record(store, run)) is not None}
        if records:
            compared = summarize(best_grid_points(runs, records), reference=plan.reference or REFERENCE)
            found.append(compared._replace(not_begun=[run.name for run in runs if run.id not in records]))
    return found


def _record(store: Path, run: Planned) -> Record | None:
    """Read a run of a plan. If it has no `data_id`, its id shows that it was trained on these data."""
    record = read_record(store / run.name)
    if record is None or "data_id" in record.config:
        return record
    return record._replace(config={**record.config, "data_id": data_id(run.spec, without=NOT_OF_THE_TEST_SET)})


def _check_either(options: Mapping[str, Mapping[str, Any]], grids: Mapping[str, Mapping[str, Any]]) -> None:
    for objective, grid in grids.items():
        for name in grid:
            if name in options.get(objective, {}):
                raise InputError(f"{objective}.{name}: got a value (--set) and a grid (--grid); give only one of them.")
