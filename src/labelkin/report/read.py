"""What a report is asked of: a folder of runs, one run, or a plan."""

import os
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from labelkin._checks import InputError
from labelkin.data.corpora import is_corpus
from labelkin.experiments.comparison import REFERENCE, Comparison, by_setting, summarise
from labelkin.experiments.store import Record, Store, read_record
from labelkin.experiments.translation import KIND

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
    found = _one(path) or store.records()
    records = [record for record in found if record.config.get("kind") != KIND]
    if found and not records:
        raise _translates(path)
    if not records:
        told = f" ({store.problems[0]})" if store.problems else ""
        raise InputError(
            f"{path}: holds no run that can be read{told}; `labelkin compare --out {quote(str(path))}` makes some."
        )
    settings = by_setting(records).values()
    named = [summarise(found, reference=reference or REFERENCE) for _, found in settings]
    if reference is not None and all(comparison.reference is None for comparison in named):
        known = ", ".join(sorted({record.label for record in records}))
        raise InputError(f"--reference: there is no finished run of {reference!r}; known: {known}.")
    left_out = [f"{record.path}: translates, and is left out." for record in found if record not in records]
    return Found(named, [*store.problems, *left_out])


def check_classifies(*data: str) -> None:
    """Refuse a page on runs on a parallel corpus; may be asked before any of them is trained."""
    for name in filter(is_corpus, data):
        raise _translates(name)


def _translates(name: str | os.PathLike[str]) -> InputError:
    return InputError(
        f"{os.fspath(name)}: translates, and a page is made of classifiers alone; `labelkin runs compare` shows how "
        "translations did."
    )


def _one(path: Path) -> list[Record]:
    record = read_record(path) if path.is_dir() else None
    return [] if record is None else [record]


def _of_plan(path: Path, runs: Path) -> Found:
    from labelkin.experiments.plan import read_plan
    from labelkin.experiments.protocol import comparisons

    plan = read_plan(path)
    check_classifies(*plan.data)
    found = comparisons(plan, runs)
    if not found:
        train = f"labelkin compare {quote(str(path))} --out {quote(str(runs))}"
        raise InputError(f"{path}: none of its runs are in {runs}; `{train}` trains them.")
    return Found(found, [])
