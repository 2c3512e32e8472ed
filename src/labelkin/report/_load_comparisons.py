"""Read the comparisons of a report from a folder of runs, one run, or a plan."""

import os
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from labelkin._checks import InputError
from labelkin.comparison import REFERENCE, Comparison, group_by_setting, summarize
from labelkin.runs import Record, Store, kind_in, kind_name, read_record

PLANS = (".yaml", ".yml")
CLASSIFICATION = "classification"


class LoadedComparisons(NamedTuple):
    """The comparisons of a source.

    Attributes:
        comparisons: One comparison per setting, which is data, backbone and training.
        problems: Runs that cannot be read or are left out, with the reason.
    """

    comparisons: list[Comparison]
    problems: list[str]


def read_comparisons(
    source: str | os.PathLike[str], *, runs: str | os.PathLike[str] = "runs", reference: str | None = None
) -> LoadedComparisons:
    """Read the comparisons of a folder of runs, of one run, or of a plan.

    Args:
        source: A folder of runs, the folder of one run, or a plan (`.yaml`).
        runs: The folder with the runs of a plan.
        reference: The objective that the others are compared with; by default one-hot, or the reference of the plan.

    Returns:
        The comparisons, and the runs that could not be read.

    Example:
        >>> import tempfile
        >>> import labelkin
        >>> from labelkin.report import read_comparisons
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = labelkin.compare("digits", objectives=["one-hot"], out=folder, epochs=1)
        ...     found = read_comparisons(folder)
        >>> [row.label for row in found.comparisons[0].rows], found.problems
        (['one-hot'], [])
    """
    path = Path(source)
    if path.suffix.lower() in PLANS:
        return _of_plan(path, Path(runs))
    store = Store(path)
    all_records = _one(path) or store.readable()
    records = [record for record in all_records if kind_in(record.config) == CLASSIFICATION]
    if all_records and not records:
        raise _not_covered(path)
    if not records:
        problem = f" ({store.problems[0]})" if store.problems else ""
        raise InputError(
            f"{path}: the folder has no readable run{problem}; train some with `labelkin compare --out {quote(str(path))}`."
        )
    settings = group_by_setting(records).values()
    compared = [summarize(members, reference=reference or REFERENCE) for _, members in settings]
    if reference is not None and all(comparison.reference is None for comparison in compared):
        known = ", ".join(sorted({record.label for record in records}))
        raise InputError(f"--reference: no run of {reference!r} has finished; the folder has {known}.")
    left_out = [
        f"{record.path}: is a translation run and is left out." for record in all_records if record not in records
    ]
    return LoadedComparisons(compared, [*store.problems, *left_out])


def check_classifies(*data: str) -> None:
    """Raise `InputError` if a report cannot show runs on these data, which can be checked before training.

    Args:
        data: Names of data sets.

    Returns:
        None.

    Example:
        >>> from labelkin.report import check_classifies
        >>> check_classifies("digits")
    """
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


def _of_plan(path: Path, runs: Path) -> LoadedComparisons:
    from labelkin.comparison import compare_stored_runs, read_plan

    plan = read_plan(path)
    check_classifies(*plan.data)
    found = compare_stored_runs(plan, runs)
    if not found:
        train = f"labelkin compare {quote(str(path))} --out {quote(str(runs))}"
        raise InputError(f"{path}: none of its runs are in {runs}; train them with `{train}`.")
    return LoadedComparisons(found, [])
