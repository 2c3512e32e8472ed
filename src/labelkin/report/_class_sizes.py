"""The cost of decisions by the size of the true class."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from labelkin._checks import InputError, counted
from labelkin.comparison import Comparison
from labelkin.report import figures
from labelkin.report._inspect_run import RunData
from labelkin.report._page_model import Panel, Table
from labelkin.runs import Record

GROUPS = 3
UNEVEN = 2.0  # ratio of the largest to the smallest class from which sizes matter


class SizeGroup(NamedTuple):
    """Classes of similar size: their positions, and the numbers of training samples from the smallest to the largest."""

    classes: npt.NDArray[np.int64]
    least: int
    most: int

    @property
    def name(self) -> str:
        least = "" if self.least == self.most else f"{self.least:,} to "
        return f"{least}{counted(self.most, 'sample')}"


def size_groups(counts: npt.NDArray[np.int64]) -> list[SizeGroup]:
    """Divide the classes into at most three groups of equally many classes by their number of training samples."""
    order = np.argsort(counts, kind="stable")
    parts = [part for part in np.array_split(order, min(GROUPS, len(order))) if len(part)]
    return [SizeGroup(part, int(counts[part].min()), int(counts[part].max())) for part in parts]


def class_size_panel(comparison: Comparison, data: RunData | None) -> tuple[Panel, ...]:
    """Return a panel with the mean cost of decisions on rare and frequent classes; empty if classes have similar sizes."""
    if data is None:
        return ()
    try:
        dataset = data.dataset
    except InputError:  # the page says elsewhere that the data changed or are gone
        return ()
    counts = torch.bincount(dataset.train.targets, minlength=len(dataset.classes)).numpy()
    if counts.max() < UNEVEN * max(1, counts.min()):
        return ()
    groups = size_groups(counts)
    costs = {label: _costs(records, groups) for label, records in comparison.records.items()}
    known = {label: found for label, found in costs.items() if found is not None}
    if not known:
        return ()
    names = [group.name for group in groups]
    lines = {label: found.tolist() for label, found in known.items()}
    rows = [(label, *(None if np.isnan(v) else round(float(v), 4) for v in found)) for label, found in known.items()]
    return (
        Panel(
            "sizes",
            "Cost by class size",
            "Mean cost of a decision on test samples of rare classes (left) to frequent ones (right), a third of the classes "
            "each, by their number of training samples. Lower is better.",
            {"": figures.cost_by_class_size(names, lines, reference=comparison.reference)},
            Table(("objective", *names), rows),
        ),
    )


def _costs(records: Sequence[Record], groups: list[SizeGroup]) -> npt.NDArray[np.float64] | None:
    """Return the mean cost on each group of classes, averaged over runs; None if a run stored no costs."""
    found = []
    for record in records:
        decisions = record.decisions()
        if decisions is None or np.isnan(decisions.cost).any():
            return None
        within = [np.isin(decisions.target, group.classes) for group in groups]
        found.append([float(decisions.cost[rows].mean()) if rows.any() else np.nan for rows in within])
    return np.array(found).mean(axis=0) if found else None
