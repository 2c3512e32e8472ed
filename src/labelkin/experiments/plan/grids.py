"""Choose the best point of each grid on validation data, over all seeds."""

from collections.abc import Mapping, Sequence
from statistics import mean

from labelkin._checks import InputError
from labelkin.experiments.plan.model import Planned
from labelkin.experiments.store import Record


def chosen(runs: Sequence[Planned], records: Mapping[str, Record]) -> list[Record]:
    """Return the records of a plan's runs under the plan's labels; for each grid, those of the best point.

    `records` are by id. The label of a chosen point has its values.
    """
    found: list[Record] = []
    for points in _by_point(runs, records).values():
        best = max(points, key=lambda label: _validation(points[label])) if len(points) > 1 else next(iter(points))
        found.extend(record._replace(label=best) for record in points[best])
    return found


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
                raise InputError(f"{record.path}: has no validation accuracy to choose by.")
            found.append(row["val_accuracy"])
    return mean(found) if found else -1.0
