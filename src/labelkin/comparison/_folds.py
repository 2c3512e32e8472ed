"""Pool the runs of a cross-validation: each sample is tested once for every seed."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from math import isnan, nan
from statistics import mean
from typing import NamedTuple

import numpy as np

from labelkin._checks import counted
from labelkin.runs import Outcomes, Record

# Means over the mistakes alone are pooled by the number of mistakes; other means by the number of test samples.
OVER_MISTAKES = {"severity": "accuracy", "crm_severity": "crm_accuracy", "decided_severity": "decided_accuracy"}


def fold_of(record: Record) -> int | None:
    """Return the fold of a run; None if it is not part of a cross-validation."""
    fold = record.config["data_options"].get("fold") if "data_options" in record.config else None
    return None if fold is None else int(fold)


class PooledRecord(Record):
    """The folds of one objective and seed as one run: those of a cross-validation, with the configuration of the first."""

    parts: tuple[Record, ...]

    def history(self) -> list[dict[str, float]]:
        epochs = zip(*(part.history() for part in self.parts), strict=False)
        return [{name: mean(row.get(name, nan) for row in rows) for name in rows[0]} for rows in epochs]

    def outcomes(self) -> Outcomes | None:
        found = [part.outcomes() for part in self.parts]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        return Outcomes(
            cost=np.concatenate([each.cost for each in known]),
            correct=np.concatenate([each.correct for each in known]),
            samples=sha256(" ".join(each.samples for each in known).encode()).hexdigest()[:16],
            calibration_samples=min(each.calibration_samples for each in known),
        )


class Pooled(NamedTuple):
    """Runs with their folds pooled, and in words the seeds that were left out because folds are missing."""

    records: list[Record]
    incomplete: list[str]


def pool_folds(records: Iterable[Record]) -> Pooled:
    """Pool the folds of each label and seed. Runs without folds are returned unchanged."""
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record.label, record.seed), []).append(record)
    pooled: list[Record] = []
    incomplete = []
    for (label, seed), parts in groups.items():
        if fold_of(parts[0]) is None:
            pooled.extend(parts)
            continue
        wanted = int(parts[0].config["data_options"]["folds"])
        if len(parts) == wanted:
            pooled.append(_pool(sorted(parts, key=lambda part: fold_of(part) or 0)))
        else:
            incomplete.append(f"{label} seed {seed} ({len(parts)} of {counted(wanted, 'fold')})")
    return Pooled(pooled, incomplete)


def _pool(parts: Sequence[Record]) -> PooledRecord:
    first = parts[0]
    finals = [part.final or {} for part in parts]
    sizes = [1 if (found := part.outcomes()) is None else len(found.cost) for part in parts]
    names = [name for name in finals[0] if all(name in final for final in finals)]
    final = {name: _pooled_mean(name, finals, sizes) for name in names}
    seconds = [part.seconds for part in parts if part.seconds is not None]
    record = PooledRecord(first.id, first.path, first.label, first.config, final, sum(seconds) if seconds else None)
    record.parts = tuple(parts)
    return record


def _pooled_mean(name: str, finals: Sequence[dict[str, float]], sizes: Sequence[int]) -> float:
    """Return the mean of a metric over all test samples of the folds in which it is defined."""
    accuracy = OVER_MISTAKES.get(name)
    weights = [
        size * (1 - final.get(accuracy, nan)) if accuracy else float(size)
        for final, size in zip(finals, sizes, strict=True)
    ]
    known = [(final[name], w) for final, w in zip(finals, weights, strict=True) if not isnan(final[name]) and w > 0]
    return sum(value * w for value, w in known) / sum(w for _, w in known) if known else nan
