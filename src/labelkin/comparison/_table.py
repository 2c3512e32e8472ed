"""Format a comparison as text, Markdown, CSV, HTML or plain values, and explain its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import isnan
from typing import TYPE_CHECKING, Any

from labelkin._checks import counted
from labelkin._files import csv_text
from labelkin.comparison._cost_verdict import decides_on_cost
from labelkin.comparison._rows import CALIBRATED, NOT_CALIBRATED, UNCALIBRATED, Row

if TYPE_CHECKING:
    from labelkin.comparison._summary import Comparison

UNDEFINED = "–"
BALANCED = (
    "balanced: accuracy averaged over the true classes; F1: averaged over the classes; all classes count the same."
)
Cell = Callable[["Row"], str]


def _percent(value: float, spread: float = float("nan")) -> str:
    return UNDEFINED if isnan(value) else f"{100 * value:.2f}{'' if isnan(spread) else f' ± {100 * spread:.2f}'}"


def _plain(value: float, digits: int = 3) -> str:
    return UNDEFINED if isnan(value) else f"{value:.{digits}f}"


def _points(value: float) -> str:
    """Return percentage points with a sign, without a minus before zero."""
    return f"{round(100 * value, 2) + 0.0:+.2f}"


def _difference(row: Row) -> str:
    if isnan(row.difference):
        return UNDEFINED
    interval = "" if isnan(row.difference_low) else f" [{_points(row.difference_low)}, {_points(row.difference_high)}]"
    return _points(row.difference) + interval


def _change(row: Row) -> str:
    """Return the difference in cost in percent of the reference's cost."""
    if isnan(row.cost_change):
        return UNDEFINED
    middle, low, high = (
        f"{round(100 * value, 1) + 0.0:+.1f}" for value in (row.cost_change, row.cost_change_low, row.cost_change_high)
    )
    return middle if isnan(row.cost_low) else f"{middle} [{low}, {high}]"


def _above(value: float, floor: float) -> str:
    """Return an average distance and how far it is above the least that the tree allows."""
    return _plain(value) + ("" if isnan(value) or isnan(floor) else f" ({round(value - floor, 3) + 0.0:+.3f})")


COLUMNS: dict[str, Cell] = {
    "objective": lambda row: row.label,
    "n": lambda row: str(row.runs),
    "test samples": lambda row: UNDEFINED if row.test_samples is None else f"{row.test_samples:,}",
    "cost": lambda row: _plain(row.cost) + ("" if isnan(row.cost_spread) else f" ± {row.cost_spread:.3f}"),
    "cost against {reference} %": _change,
    "costs are": lambda row: row.basis,
    "decided accuracy %": lambda row: _percent(row.decided_accuracy, row.decided_accuracy_spread),
    "decided balanced %": lambda row: _percent(row.decided_balanced_accuracy),
    "decided F1 %": lambda row: _percent(row.decided_macro_f1),
    "decided severity": lambda row: _plain(row.decided_severity),
    "decided AHD@5": lambda row: _above(row.decided_ahd5, row.ahd5_floor),
    "decided AHD@20": lambda row: _above(row.decided_ahd20, row.ahd20_floor),
    "decided ECE %": lambda row: _percent(row.decided_ece),
    "temperature": lambda row: _plain(row.temperature, 2),
    "argmax cost": lambda row: _plain(row.argmax_cost),
    "accuracy %": lambda row: _percent(row.accuracy, row.accuracy_spread),
    "against {reference}": _difference,
    "balanced %": lambda row: _percent(row.balanced_accuracy),
    "F1 %": lambda row: _percent(row.macro_f1),
    "seeds to settle": lambda row: UNDEFINED if row.seeds_to_settle is None else str(row.seeds_to_settle),
    "BLEU": lambda row: _plain(row.bleu, 2),
    "top-5 %": lambda row: _percent(row.top5),
    "severity": lambda row: _plain(row.severity),
    "AHD@5": lambda row: _plain(row.ahd5),
    "ECE %": lambda row: _percent(row.ece),
    "structure": lambda row: _plain(row.structure),
    "CRM accuracy %": lambda row: _percent(row.crm_accuracy),
    "CRM severity": lambda row: _plain(row.crm_severity),
    "CRM AHD@5": lambda row: _plain(row.crm_ahd5),
    "front": lambda row: "*" if row.on_front else "",
    "epochs to {reference}'s best": lambda row: (
        UNDEFINED if row.epochs_to_reference is None else str(row.epochs_to_reference)
    ),
    "seconds to it": lambda row: _plain(row.seconds_to_reference, 1),
    "seconds": lambda row: _plain(row.seconds, 1),
}
# The columns that fit a terminal. Markdown, CSV and HTML have all columns.
TERMINAL_COLUMNS = (
    "objective",
    "accuracy %",
    "against {reference}",
    "balanced %",
    "F1 %",
    "BLEU",
    "severity",
    "AHD@5",
    "CRM AHD@5",
    "ECE %",
    "front",
    "seconds",
)


# The same where the cost of decisions decides.
COST_COLUMNS = (
    "objective",
    "cost",
    "cost against {reference} %",
    "decided accuracy %",
    "decided balanced %",
    "decided F1 %",
    "decided severity",
    "decided AHD@5",
    "decided AHD@20",
    "decided ECE %",
    "seconds",
)


def terminal_columns(comparison: Comparison) -> list[str]:
    """Return the columns for a terminal that are not empty in all rows."""
    return table_columns(comparison, COST_COLUMNS if decides_on_cost(comparison) else TERMINAL_COLUMNS)


def table_columns(comparison: Comparison, columns: Sequence[str] = tuple(COLUMNS)) -> list[str]:
    """Return the columns that are not empty in all rows."""
    return [c for c in columns if any(COLUMNS[c](row) not in ("", UNDEFINED) for row in comparison.rows)]


def table_headings(comparison: Comparison, columns: Sequence[str]) -> list[str]:
    """Return the headings of columns."""
    return [column.format(reference=comparison.reference or "the reference") for column in columns]


def table_cells(row: Row, columns: Sequence[str]) -> list[str]:
    """Return the cells of a row."""
    return [COLUMNS[column](row) for column in columns]


def comparison_notes(comparison: Comparison, columns: Sequence[str] = tuple(COLUMNS)) -> list[str]:
    """Return the verdict, what the table leaves out, and how to read the columns that it shows."""
    name = comparison.reference or "the reference"
    spread = " ± is the standard deviation over seeds." if any(row.runs > 1 for row in comparison.rows) else ""
    unfinished = len(comparison.unfinished)
    verdict = comparison.verdict
    left_out = []
    if unfinished:
        are = "has not finished and is" if unfinished == 1 else "have not finished and are"
        left_out.append(f"{counted(unfinished, 'run')} {are} left out.")
    if comparison.incomplete:
        left_out.append(f"Left out, because folds are missing: {', '.join(comparison.incomplete)}.")
    explained = {
        "accuracy %": f"accuracy, top-5: on the test set{_size(comparison)}; higher is better.{spread}",
        "against {reference}": f"against {name}: mean difference in percentage points of accuracy between runs with the same "
        f"seed, with its 95 % interval{_interval(comparison)}.",
        "balanced %": BALANCED,
        "severity": "severity: mean height of the lowest common ancestor of truth and prediction, over the mistakes; AHD@5: "
        "mean tree distance of the five best classes to the truth; lower is better. Compare both only on the same tree.",
        "ECE %": "CRM: after choosing the class of least expected tree distance, uncalibrated; ECE: expected calibration "
        "error, the gap between confidence and accuracy; front: no other objective is at least as good in both accuracy and "
        "severity.",
        "seconds": "seconds: training time of one run, without evaluation.",
    }
    costs = _cost_notes(comparison, name, spread) if "cost" in columns else []
    distance = f'Distance: height of the lowest common ancestor (distance="height"). Tree: {comparison.tree}.'
    shown = [note for column, note in explained.items() if column in columns]
    return [" ".join([str(verdict), *verdict.details]), *left_out, *costs, *shown, distance]


def _size(comparison: Comparison) -> str:
    sizes = {row.test_samples for row in comparison.rows if row.test_samples is not None}
    return f" of {counted(max(sizes), 'sample')}" if sizes else ""


def _interval(comparison: Comparison) -> str:
    if any(row.test_samples is not None for row in comparison.rows):
        return (
            " for new seeds and new test samples (variance components, Student's; at least as wide as over seeds alone)"
        )
    return " for new seeds on the same test samples (bootstrap, or Student's if wider)"


def _cost_notes(comparison: Comparison, name: str, spread: str) -> list[str]:
    """Explain the columns about the cost of decisions; empty without costs."""
    if all(isnan(row.cost) for row in comparison.rows):
        return []
    basis = {row.basis for row in comparison.rows if row.basis}
    notes = [
        f"cost: {_what_costs(comparison)}; lower is better. cost against {name}: its mean difference between runs with the "
        f"same seed in percent of {name}'s cost, with the 95 % interval.{spread}"
    ]
    if any(not isnan(row.decided_accuracy) for row in comparison.rows):
        scores = "after the scores are divided by a temperature that is fitted on held-out samples"
        if basis == {NOT_CALIBRATED}:
            scores = "by unscaled scores, because the runs are not calibrated"
        notes.append(
            f"decided: of these decisions, {scores}; on the test set{_size(comparison)}. AHD@5 and AHD@20: mean tree distance "
            "of the five and twenty best classes to the truth, with the distance above the least that the tree allows; ECE: "
            "expected calibration error."
        )
    if any(not isnan(row.decided_macro_f1) for row in comparison.rows):
        notes.append(BALANCED)
    if basis - {CALIBRATED}:
        earlier = "; uncalibrated ones of earlier runs decide no verdict" if UNCALIBRATED in basis else ""
        notes.append(f"Costs are comparable only if they are calibrated{earlier}.")
    return notes


def _what_costs(comparison: Comparison) -> str:
    if comparison.costs is not None:
        return f"mean cost of the decision by {comparison.costs}, which is the class of least expected cost (CRM)"
    return "mean tree distance from the true class to the decision, which is the class of least expected distance (CRM)"


def comparison_as_text(comparison: Comparison) -> str:
    """Return the table as aligned text."""
    shown = terminal_columns(comparison)
    lines = [table_headings(comparison, shown), *(table_cells(row, shown) for row in comparison.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(shown))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def comparison_as_markdown(comparison: Comparison) -> str:
    """Return the table as Markdown."""
    shown = table_columns(comparison)
    lines = [
        table_headings(comparison, shown),
        ["---"] * len(shown),
        *(table_cells(row, shown) for row in comparison.rows),
    ]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def comparison_as_csv(comparison: Comparison) -> str:
    """Return one row per objective with unrounded numbers."""
    return csv_text([{**row._asdict(), "seeds": " ".join(map(str, row.seeds))} for row in comparison.rows])


def comparison_as_html(comparison: Comparison) -> str:
    """Return the table and its notes as HTML."""

    def line(values: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values) + "</tr>"

    said = "".join(f"<p>{escape(note)}</p>" for note in comparison_notes(comparison))
    shown = table_columns(comparison)
    body = "".join(line(table_cells(row, shown), "td") for row in comparison.rows)
    return f"<table>{line(table_headings(comparison, shown), 'th')}{body}</table>{said}"


def comparison_as_dict(comparison: Comparison) -> dict[str, Any]:
    """Return plain values; NaN where a number is undefined."""
    return {
        "folder": str(comparison.folder),
        "data": comparison.data,
        "reference": comparison.reference,
        "tree": comparison.tree,
        "built_tree": comparison.built_tree,
        "costs": comparison.costs,
        "verdict": {**comparison.verdict._asdict(), "details": list(comparison.verdict.details)},
        "rows": [{**row._asdict(), "seeds": list(row.seeds)} for row in comparison.rows],
        "unfinished": [record.path.name for record in comparison.unfinished],
        "incomplete": list(comparison.incomplete),
    }
