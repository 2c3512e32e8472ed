"""Generate docs/leaderboard.md: objectives by the cost of their calibrated decisions, over all data sets.

The page of each objective takes its own rows from here.
"""

import os
from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean
from typing import NamedTuple

from labelkin._checks import counted
from labelkin.comparison import DECIDING, REFERENCE, Row, decides_on_cost, paired
from labelkin.papers._evidence import without_published
from labelkin.papers._format import UNDEFINED, markdown_table
from labelkin.papers._settings import Setting, by_objective, outcome, points, settings_of
from labelkin.runs import Results, read_results

INTRODUCTION = """# Leaderboard

`make docs` generates this page from `results/*.json`.

- Each objective and one-hot are decided alike: a temperature is fitted on held-out samples, and the decision is the class of
  least expected tree distance (CRM). "cost" is the mean tree distance from the true class to the decision; lower is better.
- Costs are compared with one-hot's seed by seed and sample by sample, in percent of one-hot's cost. The 95 % interval of a
  setting covers new seeds and new test samples. A setting is lower or higher if the interval excludes 0, else undecided.
- Over data sets, each set counts once: the mean over its settings. The interval is Student's over data sets, for a new set.
  With one data set it is that of its setting, and says nothing about other sets.
- Results without calibrated decisions on each test sample, those on a tree that was built from the data, those in which
  objectives use different labels, those planned after results on the same data had been seen, and those that repeat a paper's
  table with its settings are listed at the end and decide nothing.
"""


class Pooled(NamedTuple):
    """The cost of an objective relative to one-hot's, pooled over data sets."""

    label: str
    sets: int
    change: float  # mean over data sets, as a share of one-hot's cost
    low: float  # 95 % interval over data sets; that of the setting if there is only one
    high: float
    lower: int  # settings in which the cost is shown to be lower
    undecided: int
    higher: int
    accuracy: float  # mean difference in accuracy of the decisions, over the same seeds; each data set counts once


def deciding_settings(settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings whose costs decide a verdict."""
    alike = [one for one in settings if not (one.follow_up or one.has_coarse_labels or one.reproduces)]
    return [setting for setting in alike if decides_on_cost(setting.compared)]


def pooled_costs(settings: Sequence[Setting]) -> list[Pooled]:
    """Return the objectives of the deciding settings: those on most data sets first, then by the pooled difference."""
    found: dict[str, list[tuple[Setting, Row]]] = {}
    for setting in deciding_settings(settings):
        for row in setting.rivals:
            if row.basis in DECIDING and not isnan(row.cost_change):
                found.setdefault(row.label, []).append((setting, row))
    return sorted(
        (_pool(label, rows) for label, rows in found.items()), key=lambda pooled: (-pooled.sets, pooled.change)
    )


def _pool(label: str, rows: Sequence[tuple[Setting, Row]]) -> Pooled:
    by_set: dict[str, list[Row]] = {}
    for setting, row in rows:
        by_set.setdefault(setting.compared.data, []).append(row)
    over_sets = paired([fmean(row.cost_change for row in own) for own in by_set.values()])
    low, high = (
        (over_sets.low, over_sets.high) if len(rows) > 1 else (rows[0][1].cost_change_low, rows[0][1].cost_change_high)
    )
    lower, higher = (sum(shown(row) == word for _, row in rows) for word in ("lower", "higher"))
    return Pooled(
        label=label,
        sets=len(by_set),
        change=over_sets.mean,
        low=low,
        high=high,
        lower=lower,
        undecided=len(rows) - lower - higher,
        higher=higher,
        accuracy=fmean(fmean(row.decided_accuracy_change for row in own) for own in by_set.values()),
    )


def shown(row: Row) -> str:
    """Return whether the cost of a row is shown to be lower or higher than one-hot's."""
    if row.cost_high < 0:
        return "lower"
    return "higher" if row.cost_low > 0 else "undecided"


def percent(middle: float, low: float = nan, high: float = nan) -> str:
    """Return a change in percent with its interval, such as `"-9.1 [-12.0, -6.2]"`."""
    if isnan(middle):
        return UNDEFINED
    interval = "" if isnan(low) else f" [{_signed(low)}, {_signed(high)}]"
    return _signed(middle) + interval


def _signed(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"


def leaderboard_page(found: Sequence[Results]) -> str:
    """Return the text of docs/leaderboard.md."""
    settings = settings_of(found)
    deciding = deciding_settings(settings)
    parts = [INTRODUCTION, _over_sets(settings), *(_section(setting) for setting in deciding), _left_out(settings)]
    return "\n".join(part for part in parts if part)


def _over_sets(settings: Sequence[Setting]) -> str:
    ranked = pooled_costs(settings)
    if not ranked:
        return "## Over all data sets\n\nNo results have calibrated decisions yet.\n"
    rows = [
        (
            one.label,
            str(one.sets),
            percent(one.change, one.low, one.high),
            f"{one.lower} / {one.undecided} / {one.higher}",
            f"{100 * one.accuracy:+.2f}",
        )
        for one in ranked
    ]
    headings = (
        "objective",
        "data sets",
        f"cost against {REFERENCE} %",
        "settings lower / undecided / higher",
        "accuracy points",
    )
    return f"## Over all data sets\n\n{markdown_table(headings, rows)}\n"


def _section(setting: Setting) -> str:
    """Return the table of a setting, cheapest first."""
    rows = [
        (
            row.label,
            str(row.runs),
            _number(row.cost),
            "" if row.label == REFERENCE else percent(row.cost_change, row.cost_change_low, row.cost_change_high),
            "" if row.label == REFERENCE or row.basis not in DECIDING else shown(row),
            f"{100 * row.decided_accuracy:.2f}",
            _number(row.decided_severity),
            _number(row.decided_ahd5 - row.ahd5_floor),
            _number(row.decided_ahd20 - row.ahd20_floor),
            f"{100 * row.decided_ece:.2f}",
            row.basis,
        )
        for row in sorted(setting.compared.rows, key=lambda row: (isnan(row.cost), row.cost))
        if not isnan(row.cost)
    ]
    headings = (
        *("objective", "n", "cost", f"against {REFERENCE} %", "cost is", "accuracy %", "severity"),
        *("AHD@5 above floor", "AHD@20 above floor", "ECE %", "costs are"),
    )
    verdict = setting.compared.verdict
    size = counted(setting.reference.test_samples or 0, "test sample")
    return (
        f"## {setting.name}\n\n`results/{setting.file}.json`, {size}; tree: {setting.compared.tree}. "
        f"{' '.join([str(verdict), *verdict.details])}\n\n{markdown_table(headings, rows)}\n"
    )


def _number(value: float) -> str:
    return UNDEFINED if isnan(value) else f"{round(value, 3) + 0.0:.3f}"


def _left_out(settings: Sequence[Setting]) -> str:
    """List the settings that decide nothing, with the reason."""
    deciding = deciding_settings(settings)
    rows = [
        (setting.name, f"`results/{setting.file}.json`", _reason(setting))
        for setting in settings
        if setting not in deciding
    ]
    return f"## Results that decide nothing\n\n{markdown_table(('setting', 'file', 'reason'), rows)}\n" if rows else ""


def _reason(setting: Setting) -> str:
    if isnan(setting.reference.cost):
        return "no tree"
    if setting.compared.built_tree:
        return "the tree was built from the data"
    if setting.has_coarse_labels:
        return "objectives use different labels"
    if setting.follow_up:
        return "planned after results on the same data had been seen"
    if setting.reproduces and decides_on_cost(setting.compared):
        return "repeats a paper's table with its settings"
    return setting.reference.basis


HEADINGS = (
    *("setting", "options", "n", f"accuracy against {REFERENCE}, points", "accuracy is"),
    *(f"cost of decisions against {REFERENCE} %", "cost is"),
)


def method_evidence(results: str | os.PathLike[str]) -> dict[str, str]:
    """Return a table of the results of each objective that was compared with one-hot, by the name of the objective.

    Args:
        results: The folder of the results files.
    """
    found = by_objective(settings_of(without_published(read_results(results))))
    return {name: markdown_table(HEADINGS, [_line(*pair) for pair in pairs]) for name, pairs in found.items()}


def _line(setting: Setting, row: Row) -> tuple[str, ...]:
    by_cost = decides_on_cost(setting.compared) and row.basis in DECIDING
    cost = percent(row.cost_change, row.cost_change_low, row.cost_change_high) if by_cost else UNDEFINED
    options = row.label.removeprefix(row.objective).strip()
    verdict = shown(row) if by_cost else UNDEFINED
    return (setting.name, options or "default", str(row.runs), points(row), outcome(row), cost, verdict)
