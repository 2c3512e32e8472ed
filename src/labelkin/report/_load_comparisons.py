"""Read the comparisons that a report is made of: from a folder of runs, one run, or a plan."""

import os
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from labelkin._checks import InputError
from labelkin.comparison import REFERENCE, Comparison, group_by_setting, summarize
from labelkin.runs import Record, Store, kind_in, kind_name, read_record

PLANS = (".yaml", ".yml")
CLASSIFICATION = "classification"


class Found(NamedTuple):
    """The comparisons of a source, and what could not be read."""

    comparisons: list[Comparison]  # one per setting: data, backbone and training
    problems: list[str]  # runs that cannot be read or are left out


def read_comparisons(
    source: str | os.PathLike[str], *, runs: str | os.PathLike[str] = "runs", reference: str | None = None
) -> Found:
    """Read the comparisons of a folder of runs, of one run's folder, or of a plan whose runs are in the folder `runs`."""
    path = Path(source)
    if path.suffix.lower() in PLANS:
        return _of_plan(path, Path(runs))
    store = Store(path)
    found = _one(path) or store.records()
    records = [record for record in found if kind_in(record.config) == CLASSIFICATION]
    if found and not records:
        raise _not_covered(path)
    if not records:
        told = f" ({store.problems[0]})" if store.problems else ""
        raise InputError(
            f"{path}: holds no readable run{told}; train some with `labelkin compare --out {quote(str(path))}`."
        )
    settings = group_by_setting(records).values()
    named = [summarize(found, reference=reference or REFERENCE) for _, found in settings]
    if reference is not None and all(comparison.reference is None for comparison in named):
        known = ", ".join(sorted({record.label for record in records}))
        raise InputError(f"--reference: there is no finished run of {reference!r}; known: {known}.")
    left_out = [f"{record.path}: is a translation run and is left out." for record in found if record not in records]
    return Found(named, [*store.problems, *left_out])


def check_classifies(*data: str) -> None:
    """Refuse data whose runs a report cannot show. This can be checked before any run is trained."""
    for name in (name for name in data if kind_name(name) != CLASSIFICATION):
        raise _not_covered(name)


def _not_covered(name: str | os.PathLike[str]) -> InputError:
    return InputError(
        f"{os.fspath(name)}: is a translation run; reports cover classification only. Use `labelkin runs compare` for a table "
        "of translation runs."
    )


def _one(path: Path) -> list[Record]:
    record = read_record(path) if path.is_dir() else None
    return [] if record is None else [record]


def _of_plan(path: Path, runs: Path) -> Found:
    from labelkin.comparison import compare_stored_runs, read_plan

    plan = read_plan(path)
    check_classifies(*plan.data)
    found = compare_stored_runs(plan, runs)
    if not found:
        train = f"labelkin compare {quote(str(path))} --out {quote(str(runs))}"
        raise InputError(f"{path}: none of its runs are in {runs}; train them with `{train}`.")
    return Found(found, [])
