"""Generate docs/choosing.md: which objective to choose for which problem, according to the results."""

from collections.abc import Sequence
from math import isnan
from statistics import fmean

from labelkin._checks import counted
from labelkin.comparison import Row
from labelkin.papers._decision_table import decision_table
from labelkin.papers._format import UNDEFINED, markdown_table
from labelkin.papers._needs import ACCURACY, accuracy, by_need, linked
from labelkin.papers._settings import Setting, by_objective, settings_of
from labelkin.runs import Results

INTRODUCTION = """# Which objective to choose

What to do, what each objective showed, and what may serve a need, from every measured comparison. The
[leaderboard](leaderboard.md) ranks objectives by the cost of their decisions, and [all tables](results.md) has every number.
`make docs` generates this page from `results/*.json`.
"""
READING = """A comparison is one data set, network and training, against one-hot cross entropy with the same seeds. "More
accurate" and "less accurate" count the comparisons whose 95 % interval excludes zero, with the range of these differences in
percentage points of test accuracy. One seed shows nothing. "Cost of decisions lower" counts mean costs below one-hot's, both
decided by the least expected tree distance (CRM). "Epochs saved" is a mean over the comparisons in which an objective reaches
one-hot's best accuracy, with their number; [measured](measured.md) has the time and the memory of training.
"""


def choosing_page(found: Sequence[Results]) -> str:
    """Return the text of docs/choosing.md."""
    settings = settings_of(found)
    if not settings:
        return f"{INTRODUCTION}\n## No results yet\n\nThere are no results that include one-hot in `results/`.\n"
    return "\n".join(
        [INTRODUCTION, decision_table(settings), _objectives(settings), by_need(settings), _mistakes(settings)]
    )


def _objectives(settings: Sequence[Setting]) -> str:
    """Return one table with a line for each objective: how often it is shown to differ, and the epochs that it saves."""
    found = sorted(by_objective(settings).items())
    rows = [(linked(name), *accuracy(compared), _saved(compared)) for name, compared in found]
    return f"## What each objective showed\n\n{READING}\n{markdown_table(('objective', *ACCURACY, 'epochs saved'), rows)}\n"


def _mistakes(settings: Sequence[Setting]) -> str:
    """Say what the choice of an objective does to the five best answers and to calibration."""
    return f"## Lists of answers and calibration\n\n{_beyond(settings)}\n"


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
        "AHD@5 is the mean tree distance of the five best classes to the truth. It is below that of one-hot in "
        f"{without} of {counted(len(compared), 'comparison')}; with CRM for both, which is uncalibrated here, in {with_crm}. "
        f"{_calibrated(settings)}"
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


def _saved(found: Sequence[tuple[Setting, Row]]) -> str:
    reached = [100 * row.epochs_saved for _, row in found if not isnan(row.epochs_saved)]
    return f"{fmean(reached):.0f} % in {len(reached)}" if reached else UNDEFINED
