"""Format a comparison as text, Markdown, CSV, HTML or plain values, and explain its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import isnan
from typing import TYPE_CHECKING, Any

from labelkin._files import csv_text
from labelkin.comparison._statistics import better_by_chance

if TYPE_CHECKING:
    from labelkin.comparison._summary import Comparison, Row

UNDEFINED = "–"
MANY = 5  # with fewer objectives, the number that looks better by chance rounds to 0
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


COLUMNS: dict[str, Cell] = {
    "objective": lambda row: row.label,
    "n": lambda row: str(row.runs),
    "accuracy %": lambda row: _percent(row.accuracy, row.accuracy_spread),
    "against {reference}": _difference,
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
    "BLEU",
    "severity",
    "AHD@5",
    "CRM AHD@5",
    "ECE %",
    "front",
    "seconds",
)


def table_columns(comparison: Comparison, columns: Sequence[str] = tuple(COLUMNS)) -> list[str]:
    """Return the columns that are not empty in all rows."""
    return [c for c in columns if any(COLUMNS[c](row) not in ("", UNDEFINED) for row in comparison.rows)]


def table_headings(comparison: Comparison, columns: Sequence[str]) -> list[str]:
    """Return the headings of columns."""
    return [column.format(reference=comparison.reference or "the reference") for column in columns]


def table_cells(row: Row, columns: Sequence[str]) -> list[str]:
    """Return the cells of a row."""
    return [COLUMNS[column](row) for column in columns]


def comparison_verdict(comparison: Comparison) -> str:
    """Return one sentence on the differences to the reference."""
    reference = comparison.reference
    others = [row for row in comparison.rows if row.label != reference]
    rivals = [row for row in others if not isnan(row.difference)]
    if reference is None:
        return "There is no run of the reference, so nothing can be compared."
    if not others:
        return f"{reference} is the only objective; name others (--objectives) to compare it with."
    if not rivals:
        return f"No other objective shares a seed with {reference}, so nothing can be compared."
    if all(isnan(row.difference_low) for row in rivals):
        return "One seed cannot separate a difference from chance; use more, as in `labelkin compare --seeds 0,1,2`."
    better = [row.label for row in rivals if row.difference_low > 0]
    worse = [row.label for row in rivals if row.difference_high < 0]
    found = [
        f"{word} than {reference}: {', '.join(names)}."
        for word, names in (("Better", better), ("Worse", worse))
        if names
    ]
    rest = f"No significant difference to {reference}" + (" for the others." if found else ".")
    if len(better) + len(worse) == len(rivals):
        rest = ""
    seeds = f"({max(row.runs for row in rivals)} seeds, 95 % intervals of the paired differences)"
    return " ".join(part for part in (*found, rest, seeds) if part) + _advice(rivals)


def _advice(rivals: Sequence[Row]) -> str:
    """Say how many seeds would show the largest difference that is not significant."""
    open_rows = [
        row for row in rivals if row.difference_low <= 0 <= row.difference_high and row.seeds_to_settle is not None
    ]
    if not open_rows:
        return ""
    nearest = min(open_rows, key=lambda row: row.seeds_to_settle or 0)
    if (nearest.seeds_to_settle or 0) <= nearest.runs:
        return ""
    return f" About {nearest.seeds_to_settle} seeds would show the difference of {nearest.label} if it is this large."


def comparison_notes(comparison: Comparison) -> list[str]:
    """Return what the table shows and how to read its columns, one sentence each."""
    name = comparison.reference or "the reference"
    spread = " ± is the standard deviation over seeds." if any(row.runs > 1 for row in comparison.rows) else ""
    unfinished = len(comparison.unfinished)
    rivals = sum(row.label != comparison.reference for row in comparison.rows)
    chance = (
        f" Of {rivals} objectives, about {better_by_chance(rivals)} look better by chance alone."
        if rivals >= MANY
        else ""
    )
    return [
        comparison_verdict(comparison),
        *([f"{unfinished} of the runs have not finished and are left out."] if unfinished else []),
        f"accuracy, top-5: on the test set; higher is better.{spread}",
        f"against {name}: mean difference in percentage points of accuracy between runs with the same seed, with its 95 % "
        f"interval (bootstrap, or Student's if wider).{chance}",
        "severity: mean height of the lowest common ancestor of truth and prediction, over the mistakes; AHD@5: mean tree "
        "distance of the five best classes to the truth; lower is better. Compare both only on the same tree and "
        f'distance. Distance: height of the lowest common ancestor (distance="height"). Tree: {comparison.tree}.',
        "CRM: after choosing the class of least expected tree distance; ECE: expected calibration error, the gap between "
        "confidence and accuracy; front: no other objective is at least as good in both accuracy and severity.",
        "seconds: training time of one run, without evaluation.",
    ]


def comparison_as_text(comparison: Comparison) -> str:
    """Return the table as aligned text."""
    shown = table_columns(comparison, TERMINAL_COLUMNS)
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
        "rows": [{**row._asdict(), "seeds": list(row.seeds)} for row in comparison.rows],
        "unfinished": [record.path.name for record in comparison.unfinished],
    }
