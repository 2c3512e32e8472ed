"""Run a recipe and compare the results with the paper."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from labelkin._checks import InputError, check_choice, check_count, check_number, listed, near
from labelkin.comparison import PROTOCOLS, Plan, best_grid_points, execute
from labelkin.papers._assess import NOT_REQUESTED, Conditions, Reproduction, assess
from labelkin.papers._claim_checks import embedding_of
from labelkin.papers._extra_metrics import extra_measures, time_hierarchical
from labelkin.papers._measured import Run
from labelkin.papers._published import Table
from labelkin.papers._recipe import Part, Recipe, available_data, merged, recipe
from labelkin.runs import Record, read_record
from labelkin.training import Progress, Silent


class Wanted(NamedTuple):
    """The arguments of `reproduce` that choose and change the runs of a recipe."""

    seeds: int | None = None  # the number of seeds; None for at most three of the recipe's
    scale: float = 1.0
    subset: float | None = None
    protocol: str = "clean"
    columns: Sequence[str] | None = None  # those whose names contain one of these words
    rows: Sequence[str] | None = None
    precision: str = "32-true"
    backbone: str | None = None  # instead of the paper's
    from_scratch: bool = False  # random weights where the paper's are pretrained


def plan_for(recipe: Recipe, part: Part, wanted: Wanted, *, backbone: str) -> Plan | None:
    """Return the plan for a part of a recipe, or None if none of its rows is requested."""
    added = recipe.as_published if wanted.protocol == "as-published" else {}
    held = {"calibration": 0.0}  # the papers hold out no samples for calibration
    values = merged(part.plan, {"training": {**held, **added.get("training", {}), "precision": wanted.precision}})
    values["training"] = scaled(values["training"], wanted.scale)
    known = values["objectives"]
    rows = {label: given for label, given in known.items() if is_requested(label, wanted.rows, known)}
    if not rows:
        return None
    values["objectives"] = {label: {**given, **added.get(given["objective"], {})} for label, given in rows.items()}
    if values["reference"] not in rows:
        del values["reference"]
    if wanted.subset is not None:
        values["data_options"] = {**values.get("data_options", {}), "subset": wanted.subset}
    chosen = {"backbone": backbone, "seeds": list(seeds_of(recipe, wanted.seeds)), "protocol": wanted.protocol}
    return Plan.from_dict({**values, **chosen})


def is_requested(name: str, words: Sequence[str] | None, names: Collection[str]) -> bool:
    """Return whether one of the words selects the name.

    A word selects the name that is equal to it; if there is no such name, all names that contain it. So "CIFAR-10" does not
    select CIFAR-100.
    """
    return words is None or any(word == name or (word in name and word not in names) for word in words)


def seeds_of(recipe: Recipe, count: int | None) -> tuple[int, ...]:
    """Return `count` seeds: the paper's first, then further ones from 0 on."""
    if count is None:
        return recipe.seeds[:3]
    further = [seed for seed in range(count + len(recipe.seeds)) if seed not in recipe.seeds]
    return (*recipe.seeds, *further)[:count]


def scaled(training: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """Multiply epochs and milestones by `scale`. At least one epoch is left; milestones at or after the end are dropped."""
    if scale == 1.0:
        return dict(training)
    epochs = max(1, round(scale * training["epochs"]))
    changed = {**training, "epochs": epochs}
    if "milestones" in training:
        places = {max(1, round(scale * epoch)) for epoch in training["milestones"]}
        changed["milestones"] = sorted(place for place in places if place < epochs)
    return changed


def backbone_for(part: Part, wanted: Wanted) -> tuple[str | None, str | None]:
    """Return the backbone to train, and how it differs from the paper's; or None and the reason why there is none."""
    name = str(part.plan["backbone"])
    if wanted.backbone not in (None, name):
        return wanted.backbone, f"{wanted.backbone} instead of {name}"
    if wanted.from_scratch and part.untrained_backbone is not None:
        return part.untrained_backbone, "random initial weights instead of ImageNet's"
    if not name.startswith("timm:") or find_spec("timm") is not None:
        return name, part.unlike
    if part.substitute is None:
        return None, f"{name} needs timm, which is not installed"
    return part.substitute, f"{part.substitute} from scratch instead of {name} with ImageNet weights"


class Engine(NamedTuple):
    """Where runs are trained and for how long."""

    store: Path
    jobs: int = 1
    fleet: int = 1
    mps: bool = False
    engine: str = "local"
    address: str | None = None
    budget: float | None = None  # seconds
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent()
    say: Callable[[str], None] = lambda line: None


def reproduce(
    wanted: str,
    *,
    seeds: int | None = None,
    scale: float = 1.0,
    subset: float | None = None,
    budget: float | None = None,
    protocol: str = "clean",
    columns: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    precision: str = "32-true",
    backbone: str | None = None,
    from_scratch: bool = False,
    jobs: int = 1,
    fleet: int = 1,
    mps: bool = False,
    engine: str = "local",
    address: str | None = None,
    store: str | os.PathLike[str] = "runs",
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent(),
    say: Callable[[str], None] = lambda line: None,
) -> Reproduction:
    """Reproduce a table or figure of a paper and compare it with the published numbers, cell by cell.

    Columns whose data are not available are not run. Runs are kept in `store`, and finished runs are not repeated. With
    `scale`, `subset`, `backbone` or `from_scratch`, only directions are compared.

    Args:
        wanted: The id of a table or figure, such as "003-table2".
        seeds: The number of seeds. None uses the paper's, at most three.
        scale: The share of the paper's epochs.
        subset: The share of each class's training samples.
        budget: Seconds. No run begins that would not finish in time.
        protocol: "clean" or "as-published"; see `labelkin.comparison.Plan`.
        columns: Words; only columns whose names contain one of them are run.
        rows: Words; only rows whose names contain one of them are run.
        precision: The precision of training, such as "bf16-mixed".
        backbone: A backbone to train instead of the paper's.
        from_scratch: Whether to start networks from random weights where the paper starts from pretrained ones.
        jobs: The number of runs to train at once.
        fleet: The maximum number of runs to train as one batched model.
        mps: Whether the processes of `jobs` share a GPU through CUDA MPS.
        engine: "local" or "ray".
        address: The address of a Ray cluster.
        store: The folder of the runs.
        progress: Called with a run's title, epochs and steps per epoch; returns the object that shows them.
        say: Called with each line of status.

    Returns:
        The recipe, the conditions of the runs, and a verdict on each cell and claim.

    Example:
        >>> from labelkin.papers import reproduce
        >>> reproduce("004-table2").cells[0].verdict.words[:24]
        'not run: ILSVRC 2015 is '
    """
    found = recipe(wanted)
    check_number("scale", scale, low=0, high=1, open_low=True)
    check_choice("protocol", protocol, PROTOCOLS)
    if seeds is not None:
        check_count("seeds", seeds)
    if subset is not None:
        check_number("subset", subset, low=0, high=1, open_low=True)
    if budget is not None:
        check_number("budget", budget, low=0, open_low=True)
    _check_words("columns", columns, [part.column for part in found.parts])
    _check_words("rows", rows, [row for part in found.parts for row in part.plan.get("objectives", {})])
    wish = Wanted(seeds, scale, subset, protocol, columns, rows, precision, backbone, from_scratch)
    return _Work(found, wish, Engine(Path(store), jobs, fleet, mps, engine, address, budget, progress, say)).result()


def _check_words(argument: str, words: Sequence[str] | None, names: Sequence[str]) -> None:
    known = list(dict.fromkeys(names))
    for word in words or ():
        if not any(word in name for name in known):
            raise InputError(
                f"{argument}: no name contains {word!r}; the names are {listed(known, limit=20)}.{near(word, known)}"
            )


class _Work:
    """Run the parts of a recipe together, within one time budget."""

    def __init__(self, found: Recipe, wanted: Wanted, engine: Engine) -> None:
        self.recipe, self.wanted, self.engine = found, wanted, engine
        self.begun = monotonic()
        self.runs: dict[str, dict[str, list[Run]]] = {}
        self.other: dict[str, str] = {}
        self.not_run: dict[str, str] = {}

    def result(self) -> Reproduction:
        published = self.recipe.published
        if self.recipe.timing is not None and isinstance(published, Table):
            self.runs = time_hierarchical(published)
        parts = self.recipe.parts
        self._run([(part.column, plan) for part in parts if (plan := self._plan_of(part)) is not None])
        self._run([(part.column, plan) for part in parts if (plan := self._reusing(part)) is not None])
        wanted = self.wanted
        conditions = Conditions(wanted.protocol, wanted.scale, wanted.subset, self.other, self.not_run)
        return assess(self.recipe, self.runs, conditions)

    def _plan_of(self, part: Part) -> Plan | None:
        """Return the plan of a part, or None if it is not run; note why, and how its backbone differs from the paper's."""
        reason = self._reason_not_to(part)
        if reason is not None:
            self.not_run[part.column] = reason
            return None
        if not part.plan:
            return None
        backbone, other = backbone_for(part, self.wanted)
        if backbone is None:
            self.not_run[part.column] = str(other)
            return None
        if other is not None:
            self.other[part.column] = other
        plan = plan_for(self.recipe, part, self.wanted, backbone=backbone)
        labels = [] if plan is None else [arm.label for arm in plan.arms]
        self.not_run |= {
            f"{part.column} / {row}": NOT_REQUESTED for row in part.plan["objectives"] if row not in labels
        }
        if plan is not None:
            self.engine.say(f"{part.column}: {other or backbone}")
        return plan

    def _reason_not_to(self, part: Part) -> str | None:
        if part.not_run is not None:
            return part.not_run
        if not is_requested(part.column, self.wanted.columns, [other.column for other in self.recipe.parts]):
            return NOT_REQUESTED
        available = available_data()
        missing = [name for name in part.needs if name not in available]
        return f"needs {', '.join(missing)}, which is not available" if missing else None

    def _run(self, plans: Sequence[tuple[str, Plan]]) -> None:
        """Train the runs of the plans of several columns together, and collect the results. A column may have several."""
        engine = self.engine
        named = _named(plans)
        left = None if engine.budget is None else max(0.0, engine.budget - (monotonic() - self.begun))
        if plans and left != 0.0:
            outcome = execute(
                {name: plan for name, (_, plan) in named.items()},
                engine.store,
                jobs=engine.jobs,
                fleet=engine.fleet,
                mps=engine.mps,
                engine=engine.engine,
                address=engine.address,
                budget=left,
                progress=engine.progress,
                say=engine.say,
            )
            for run, why in outcome.failed:
                self.not_run[f"{named[run.part][0]} / {run.label}"] = f"failed: {why}"
        for column, plan in plans:
            if left is not None:
                self.not_run.setdefault(column, "the time budget was used up")
            for record in self._records(plan):
                found = self._measured(record)
                self.runs.setdefault(column, {}).setdefault(record.label, []).append(found)

    def _records(self, plan: Plan) -> Iterator[Record]:
        """Yield the finished runs of a plan under the labels of its arms; for a grid, those of the best point."""
        planned = plan.runs()
        folders = {run.id: self.engine.store / run.name for run in planned}
        finished = {name: record for name, path in folders.items() if (record := _finished(path)) is not None}
        arms = sorted((arm.label for arm in plan.arms), key=len, reverse=True)
        for record in best_grid_points(planned, finished):
            yield record._replace(label=next(label for label in arms if record.label.startswith(label)))

    def _measured(self, record: Record) -> Run:
        history = record.history()
        published = self.recipe.published
        wanted = [*published.measures] if isinstance(published, Table) else []
        wanted += [str(claim["measure"]) for claim in self.recipe.claims if "measure" in claim]
        final = {**(record.final or {}), **extra_measures(record, wanted)}
        return Run(
            label=record.label,
            seed=record.seed,
            final=final,
            curve=tuple(row["test_accuracy"] for row in history),
            losses=tuple(row["loss"] for row in history),
            seconds=record.seconds,
            record=record,
        )

    def _reusing(self, part: Part) -> Plan | None:
        """Return the plan of the row that uses the embedding which another row's first seed learned."""
        reuse = self.recipe.reuse.get(part.column)
        learned = self.runs.get(part.column, {}).get(reuse["learned_by"]) if reuse is not None else None
        if reuse is None or not learned:
            return None
        row = {"objective": "pretrained-label-embedding", "embedding": embedding_of(learned[0])}
        part = part._replace(plan={**part.plan, "objectives": {reuse["row"]: row}, "reference": reuse["row"]})
        backbone, _ = backbone_for(part, self.wanted)
        return None if backbone is None else plan_for(self.recipe, part, self.wanted, backbone=backbone)


def _named(plans: Sequence[tuple[str, Plan]]) -> dict[str, tuple[str, Plan]]:
    """Name each plan by its column, and also by its backbone if the column has several plans."""
    columns = [column for column, _ in plans]
    return {
        column if columns.count(column) == 1 else f"{column}, {plan.backbone[0]}": (column, plan)
        for column, plan in plans
    }


def _finished(path: Path) -> Record | None:
    record = read_record(path) if path.is_dir() else None
    return record if record is not None and record.final is not None else None
