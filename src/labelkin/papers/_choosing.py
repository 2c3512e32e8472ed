"""Generate docs/choosing.md: which objective to choose for which problem, according to the results."""

from collections.abc import Callable, Sequence
from math import isnan, nan
from statistics import fmean

from labelkin._checks import counted
from labelkin.comparison import REFERENCE, Row
from labelkin.papers._decision_table import decision_table
from labelkin.papers._format import UNDEFINED, markdown_table
from labelkin.papers._needs import by_need
from labelkin.papers._settings import SHOWN_BETTER, SHOWN_WORSE, Setting, by_objective, outcome, points, settings_of
from labelkin.runs import Results

INTRODUCTION = """# Which objective to choose

`make docs` generates this page from `results/*.json`. The table says what to do; the lists behind it have all results.
"""
READING = """## How to read the lists

- Differences are in percentage points of test accuracy to one-hot cross entropy, paired by seed, with the 95 % interval if
  there are at least two seeds. A difference is significant if the interval excludes zero; one seed shows nothing.
- Severity and AHD@5 (the mean tree distance of the five best classes to the truth) are lower if mistakes are milder. Compare
  them only on the same tree.
- CRM chooses the class of least expected tree distance at test time and needs no training. An objective and one-hot are
  compared with the same rule: both after CRM, or both without.
"""


def choosing_page(found: Sequence[Results]) -> str:
    """Return the text of docs/choosing.md."""
    settings = settings_of(found)
    if not settings:
        return f"{INTRODUCTION}\n## No results yet\n\nThere are no results that include one-hot in `results/`.\n"
    parts = [
        INTRODUCTION,
        decision_table(settings),
        READING,
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
    headings = ("setting", "objective", "n", "accuracy %", "against one-hot", "verdict", "seeds needed")
    return f"## Accuracy\n\n{markdown_table(headings, rows)}\n"


def _verdict(row: Row) -> str:
    verdict = outcome(row)
    return f"significantly {verdict}" if verdict in (SHOWN_BETTER, SHOWN_WORSE) else verdict


def _settle(row: Row) -> str:
    return UNDEFINED if row.seeds_to_settle is None else str(row.seeds_to_settle)


def _mistakes(settings: Sequence[Setting]) -> str:
    """Return the table of severity, AHD@5 and calibration, with and without CRM."""
    rows = []
    for setting in settings:
        for row in setting.compared.rows:
            values = (row.severity, row.ahd5, row.crm_severity, row.crm_ahd5, row.ece)
            rows.append((setting.name, row.label, str(row.runs), *(_number(value) for value in values)))
    headings = ("setting", "objective", "n", "severity", "AHD@5", "severity, CRM", "AHD@5, CRM", "ECE")
    return f"## Mistakes and calibration\n\n{_beyond(settings)}\n\n{markdown_table(headings, rows)}\n"


def _beyond(settings: Sequence[Setting]) -> str:
    """Say how often the AHD@5 of an objective is below that of one-hot, with the same rule for both."""
    compared = [
        (row.crm_ahd5 < setting.reference.crm_ahd5, row.ahd5 < setting.reference.ahd5)
        for setting in settings
        for row in setting.rivals
        if not any(map(isnan, (row.ahd5, row.crm_ahd5, setting.reference.ahd5, setting.reference.crm_ahd5)))
    ]
    if not compared:
        return "No results have AHD@5 both with and without CRM."
    with_crm, without = sum(crm for crm, _ in compared), sum(plain for _, plain in compared)
    return (
        f"The mean AHD@5 is below that of one-hot in {without} of {counted(len(compared), 'comparison')}; with "
        f"CRM for both, which is "
        f"uncalibrated here, in {with_crm}. {_calibrated(settings)}"
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
        f"Compared with one-hot, the expected calibration error is lowest with `{best}` ({means[best]:+.3f} on average over "
        f"its settings) and highest with `{worst}` ({means[worst]:+.3f})."
    )


def _cost(settings: Sequence[Setting]) -> str:
    rows = [(name, str(len(found)), _ratio(found), _saved(found)) for name, found in by_objective(settings).items()]
    headings = (
        "objective",
        "comparisons",
        "training time relative to one-hot",
        "reaches one-hot's best accuracy, epochs saved",
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
    count = f"in {len(reached)} of {len(found)}"
    return f"{count}, {fmean(reached):.0f} % on average" if reached else count


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
    headings = ("setting", "file", f"seeds of {REFERENCE}", "other objectives", f"{REFERENCE}'s accuracy %")
    return f"## Measured settings\n\n{markdown_table(headings, rows)}\n"


def _number(value: float) -> str:
    return UNDEFINED if isnan(value) else f"{value:.3f}"
