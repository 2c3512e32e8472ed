"""docs/choosing.md: which objective for which problem, as far as the results say."""

from collections.abc import Callable, Sequence
from math import isnan, nan
from statistics import fmean

from labelkin.comparison import REFERENCE, Row
from labelkin.papers._format import UNDEFINED, markdown_table
from labelkin.papers._needs import by_need
from labelkin.papers._settings import SHOWN_BETTER, SHOWN_WORSE, Setting, by_objective, outcome, points, settings_of
from labelkin.runs import Results

INTRODUCTION = """# Which objective for my problem

Written by `make docs` from `results/*.json`; no number here is typed by hand. Differences are in points of test accuracy to
one-hot cross entropy, run by run with the same seed, with the 95 % interval where there are two seeds or more; without an
interval nothing is shown. Severity and AHD@5 (the mean tree distance of the five first guesses) are lower where mistakes are
milder, and compare only on one tree. CRM decides by least expected tree distance at test time and is free: a gain in AHD@5
counts only beyond one-hot with CRM.
"""


def choosing(found: Sequence[Results]) -> str:
    settings = settings_of(found)
    if not settings:
        return (
            f"{INTRODUCTION}\n## Nothing measured yet\n\nThere are no results with one-hot in them under `results/`.\n"
        )
    parts = [
        INTRODUCTION,
        by_need(settings),
        _accuracy(settings),
        _mistakes(settings),
        _cost(settings),
        _measured(settings),
    ]
    return "\n".join(parts)


def _accuracy(settings: Sequence[Setting]) -> str:
    rows = [
        (setting.name, row.label, str(row.runs), f"{100 * row.accuracy:.2f}", points(row), _verdict(row), _settle(row))
        for setting in settings
        for row in setting.rivals
    ]
    headings = ("setting", "objective", "n", "accuracy %", "against one-hot", "says", "seeds that would settle it")
    return f"## Accuracy\n\n{markdown_table(headings, rows)}\n"


def _verdict(row: Row) -> str:
    found = outcome(row)
    return f"shown {found}" if found in (SHOWN_BETTER, SHOWN_WORSE) else found


def _settle(row: Row) -> str:
    return UNDEFINED if row.seeds_to_settle is None else str(row.seeds_to_settle)


def _mistakes(settings: Sequence[Setting]) -> str:
    """Severity, AHD@5 and calibration, one-hot with and without CRM beside."""
    rows = []
    for setting in settings:
        for row in setting.compared.rows:
            values = (row.severity, row.ahd5, row.crm_severity, row.crm_ahd5, row.ece)
            rows.append((setting.name, row.label, str(row.runs), *(_number(value) for value in values)))
    headings = ("setting", "objective", "n", "severity", "AHD@5", "severity, CRM", "AHD@5, CRM", "ECE")
    return f"## Mistakes and calibration\n\n{_beyond(settings)}\n\n{markdown_table(headings, rows)}\n"


def _beyond(settings: Sequence[Setting]) -> str:
    """How often an objective's own AHD@5 is better than what CRM gives one-hot for free."""
    told = [
        (row.label, row.ahd5 < setting.reference.crm_ahd5, row.ahd5 < setting.reference.ahd5)
        for setting in settings
        for row in setting.rivals
        if not isnan(row.ahd5) and not isnan(setting.reference.crm_ahd5)
    ]
    if not told:
        return "No results have AHD@5 both with and without CRM."
    beyond, milder = sum(crm for _, crm, _ in told), sum(plain for _, _, plain in told)
    return (
        f"Of {len(told)} comparisons, {milder} have a lower mean AHD@5 than one-hot, and {beyond} a lower one than one-hot "
        f"with CRM. {_calibrated(settings)}"
    )


def _calibrated(settings: Sequence[Setting]) -> str:
    known = [
        (row.objective, row.ece - setting.reference.ece)
        for setting in settings
        for row in setting.rivals
        if not isnan(row.ece) and not isnan(setting.reference.ece)
    ]
    means = {name: fmean(gap for other, gap in known if other == name) for name in dict.fromkeys(n for n, _ in known)}
    if not means:
        return ""
    best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return (
        f"Against one-hot's, the expected calibration error is lowest with `{best}` ({means[best]:+.3f} on average over its "
        f"settings) and highest with `{worst}` ({means[worst]:+.3f})."
    )


def _cost(settings: Sequence[Setting]) -> str:
    rows = [(name, str(len(found)), _ratio(found), _saved(found)) for name, found in by_objective(settings).items()]
    headings = (
        "objective",
        "comparisons",
        "training time, x one-hot's",
        "reaches one-hot's best, and epochs saved then",
    )
    return f"## Cost\n\n{markdown_table(headings, rows)}\n"


def _ratio(found: Sequence[tuple[Setting, Row]]) -> str:
    return _over(
        found, lambda setting, row: row.seconds / setting.reference.seconds if setting.reference.seconds else nan
    )


def _over(found: Sequence[tuple[Setting, Row]], value: Callable[[Setting, Row], float]) -> str:
    known = [number for setting, row in found if not isnan(number := value(setting, row))]
    if not known:
        return UNDEFINED
    return f"{known[0]:.2f}" if len(known) == 1 else f"{min(known):.2f} to {max(known):.2f}"


def _saved(found: Sequence[tuple[Setting, Row]]) -> str:
    reached = [100 * row.epochs_saved for _, row in found if not isnan(row.epochs_saved)]
    told = f"in {len(reached)} of {len(found)}"
    return f"{told}, {fmean(reached):.0f} % on average" if reached else told


def _measured(settings: Sequence[Setting]) -> str:
    rows = [
        (
            setting.name,
            f"`results/{setting.file}.json`",
            str(setting.reference.runs),
            str(len(setting.rivals)),
            f"{100 * setting.reference.accuracy:.2f}",
        )
        for setting in settings
    ]
    headings = ("setting", "file", f"seeds of {REFERENCE}", "objectives beside it", f"{REFERENCE}'s accuracy %")
    return f"## What was measured\n\n{markdown_table(headings, rows)}\n"


def _number(value: float) -> str:
    return UNDEFINED if isnan(value) else f"{value:.3f}"
