"""The point of a grid that stands for an objective: the best on validation data, over all seeds."""

from collections.abc import Mapping, Sequence
from json import dumps
from statistics import mean

from labelkin._checks import InputError
from labelkin.experiments.plan.model import Plan, Planned
from labelkin.experiments.store import Record, described


def chosen(plan: Plan, runs: Sequence[Planned], records: Mapping[str, Record]) -> list[Record]:
    """The records of a plan's runs, labelled as the plan has it; of each grid, those of the chosen point alone.

    `records` by id. A label is the arm's, with the chosen values of its grid.
    """
    grids = {arm.label: list(arm.grid) for arm in plan.arms}
    found: list[Record] = []
    for label, points in _by_point(runs, records).items():
        best = max(points.values(), key=_validation) if len(points) > 1 else next(iter(points.values()))
        told = described(label, {name: best[0].options[name] for name in grids[label]})
        found.extend(record._replace(label=told) for record in best)
    return found


def _by_point(runs: Sequence[Planned], records: Mapping[str, Record]) -> dict[str, dict[str, list[Record]]]:
    found: dict[str, dict[str, list[Record]]] = {}
    for run in runs:
        if run.id in records:
            point = dumps(dict(run.spec.options), sort_keys=True)
            found.setdefault(run.label, {}).setdefault(point, []).append(records[run.id])
    return found


def _validation(records: Sequence[Record]) -> float:
    """Mean validation accuracy of the epochs that count."""
    found = []
    for record in records:
        if record.final is not None:
            row = record.history()[int(record.final["epoch"]) - 1]
            if "val_accuracy" not in row:
                raise InputError(f"{record.path}: has no validation accuracy to choose by.")
            found.append(row["val_accuracy"])
    return mean(found) if found else -1.0
