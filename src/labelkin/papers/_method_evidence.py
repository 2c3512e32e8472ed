"""The evidence on each objective as Markdown tables, from the results files in results/."""

import os

from labelkin.comparison import DECIDING, REFERENCE, Row, decides_on_cost
from labelkin.papers._format import UNDEFINED, markdown_table
from labelkin.papers._leaderboard import percent, shown
from labelkin.papers._settings import Setting, by_objective, outcome, points, settings_of
from labelkin.runs import read_results

HEADINGS = (
    *("setting", "options", "n", f"accuracy against {REFERENCE}, points", "accuracy is"),
    *(f"cost of decisions against {REFERENCE} %", "cost is"),
)


def method_evidence(results: str | os.PathLike[str]) -> dict[str, str]:
    """Return a table of the results of each objective that was compared with one-hot, by the name of the objective.

    Args:
        results: The folder of the results files.
    """
    found = by_objective(settings_of(read_results(results)))
    return {name: markdown_table(HEADINGS, [_line(*pair) for pair in pairs]) for name, pairs in found.items()}


def _line(setting: Setting, row: Row) -> tuple[str, ...]:
    by_cost = decides_on_cost(setting.compared) and row.basis in DECIDING
    cost = percent(row.cost_change, row.cost_change_low, row.cost_change_high) if by_cost else UNDEFINED
    options = row.label.removeprefix(row.objective).strip()
    verdict = shown(row) if by_cost else UNDEFINED
    return (setting.name, options or "default", str(row.runs), points(row), outcome(row), cost, verdict)
