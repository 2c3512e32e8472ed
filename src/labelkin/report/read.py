"""What a report is asked of: a folder of runs, one run, or a plan."""

import os
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError
from labelkin.experiments.comparison import REFERENCE, Comparison, by_setting, summarise
from labelkin.experiments.store import Record, Store, read_record

PLANS = (".yaml", ".yml")


class Found(NamedTuple):
    comparisons: list[Comparison]  # one for each setting: data, backbone and training
    problems: list[str]  # of runs that cannot be read


def read_comparisons(
    source: str | os.PathLike[str], *, runs: str | os.PathLike[str] = "runs", reference: str | None = None
) -> Found:
    """The comparisons of a folder of runs, of one run's folder, or of a plan whose runs are kept in `runs`."""
    path = Path(source)
    if path.suffix.lower() in PLANS:
        return _of_plan(path, Path(runs))
    store = Store(path)
    records = _one(path) or store.records()
    if not records:
        told = f" ({store.problems[0]})" if store.problems else ""
        raise InputError(f"{path}: holds no run that can be read{told}; `labelkin compare --out {path}` makes some.")
    settings = by_setting(records).values()
    named = [summarise(found, reference=reference or REFERENCE) for _, found in settings]
    if reference is not None and all(comparison.reference is None for comparison in named):
        known = ", ".join(sorted({record.label for record in records}))
        raise InputError(f"--reference: there is no finished run of {reference!r}; known: {known}.")
    return Found(named, store.problems)


def _one(path: Path) -> list[Record]:
    record = read_record(path) if path.is_dir() else None
    return [] if record is None else [record]


def _of_plan(path: Path, runs: Path) -> Found:
    from labelkin.experiments.plan import read_plan
    from labelkin.experiments.protocol import comparisons

    found = comparisons(read_plan(path), runs)
    if not found:
        raise InputError(f"{path}: none of its runs are in {runs}; `labelkin compare {path} --out {runs}` trains them.")
    return Found(found, [])
