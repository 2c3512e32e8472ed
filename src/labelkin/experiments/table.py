"""A comparison as text, Markdown, CSV, HTML and plain values, with what its columns mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import isnan
from typing import TYPE_CHECKING, Any

from labelkin._files import csv_text
from labelkin.experiments.statistics import better_by_chance

if TYPE_CHECKING:
    from labelkin.experiments.comparison import Comparison, Row

UNDEFINED = "–"
Cell = Callable[["Row"], str]


def _percent(value: float, spread: float = float("nan")) -> str:
    return UNDEFINED if isnan(value) else f"{100 * value:.2f}{'' if isnan(spread) else f' ± {100 * spread:.2f}'}"


def _plain(value: float, digits: int = 3) -> str:
    return UNDEFINED if isnan(value) else f"{value:.{digits}f}"


def _points(value: float) -> str:
    """Points of accuracy with a sign, and no minus before a zero."""
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
# What fits a terminal; Markdown, CSV and HTML have all columns.
SHORT = (
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


def columns_of(comparison: Comparison, columns: Sequence[str] = tuple(COLUMNS)) -> list[str]:
    """The columns in which any row has something to say."""
    return [c for c in columns if any(COLUMNS[c](row) not in ("", UNDEFINED) for row in comparison.rows)]


def headings(comparison: Comparison, columns: Sequence[str]) -> list[str]:
    return [column.format(reference=comparison.reference or "the reference") for column in columns]


def cells(row: Row, columns: Sequence[str]) -> list[str]:
    return [COLUMNS[column](row) for column in columns]


def verdict(comparison: Comparison) -> str:
    """What may be said of the differences to the reference."""
    reference = comparison.reference
    others = [row for row in comparison.rows if row.label != reference]
    rivals = [row for row in others if not isnan(row.difference)]
    if reference is None:
        return "Without a reference among the objectives there is nothing to compare with."
    if not others:
        return f"{reference} is alone here; name others beside it (--objectives) to compare it with."
    if not rivals:
        return f"No other objective has a seed in common with {reference}, so there is nothing to compare."
    if all(isnan(row.difference_low) for row in rivals):
        return "One seed cannot tell a difference from chance; `labelkin compare --seeds 0,1,2` says more."
    better = [row.label for row in rivals if row.difference_low > 0]
    worse = [row.label for row in rivals if row.difference_high < 0]
    found = [
        f"{word} than {reference}: {', '.join(names)}."
        for word, names in (("Better", better), ("Worse", worse))
        if names
    ]
    rest = f"No difference to {reference} is shown" + (" for the others." if found else ".")
    if len(better) + len(worse) == len(rivals):
        rest = ""
    seeds = f"({max(row.runs for row in rivals)} seeds, 95 % intervals of the paired differences)"
    return " ".join(part for part in (*found, rest, seeds) if part) + _advice(rivals)


def _advice(rivals: Sequence[Row]) -> str:
    """How many seeds the largest difference that is not shown would take."""
    open_rows = [
        row for row in rivals if row.difference_low <= 0 <= row.difference_high and row.seeds_to_settle is not None
    ]
    if not open_rows:
        return ""
    nearest = min(open_rows, key=lambda row: row.seeds_to_settle or 0)
    if (nearest.seeds_to_settle or 0) <= nearest.runs:
        return ""
    return f" About {nearest.seeds_to_settle} seeds would settle {nearest.label}, if it is as far off as it seems."


def notes(comparison: Comparison) -> list[str]:
    """What the table says, and how its columns read, a sentence each."""
    name = comparison.reference or "the reference"
    spread = " ± is the standard deviation over seeds." if any(row.runs > 1 for row in comparison.rows) else ""
    unfinished = len(comparison.unfinished)
    rivals = sum(row.label != comparison.reference for row in comparison.rows)
    return [
        verdict(comparison),
        *([f"{unfinished} of the runs have not ended and are left out."] if unfinished else []),
        f"accuracy, top-5: of the test set, higher is better.{spread}",
        f"against {name}: points of accuracy, run by run with the same seed, with the 95 % interval of their mean (bootstrap, "
        f"never narrower than Student's). Of {rivals} objectives about {better_by_chance(rivals)} look better by chance alone.",
        "severity: how far up the tree truth and prediction meet, over the mistakes alone; AHD@5: how far the five best "
        "classes lie from the truth; lower is better, and both compare only on one tree and one distance. Distance: height of "
        f'the lowest common ancestor (distance="height"). The tree here: {comparison.tree}.',
        "CRM: after deciding by least expected distance in the tree, which costs nothing; ECE: how far confidence and accuracy "
        "lie apart. front: no other is both as accurate and as mild.",
        "seconds: spent training one run, without measuring.",
    ]


def as_text(comparison: Comparison) -> str:
    shown = columns_of(comparison, SHORT)
    lines = [headings(comparison, shown), *(cells(row, shown) for row in comparison.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(shown))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def as_markdown(comparison: Comparison) -> str:
    shown = columns_of(comparison)
    lines = [headings(comparison, shown), ["---"] * len(shown), *(cells(row, shown) for row in comparison.rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def as_csv(comparison: Comparison) -> str:
    """One row an objective, numbers in full."""
    return csv_text([{**row._asdict(), "seeds": " ".join(map(str, row.seeds))} for row in comparison.rows])


def as_html(comparison: Comparison) -> str:
    def line(values: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values) + "</tr>"

    said = "".join(f"<p>{escape(note)}</p>" for note in notes(comparison))
    shown = columns_of(comparison)
    body = "".join(line(cells(row, shown), "td") for row in comparison.rows)
    return f"<table>{line(headings(comparison, shown), 'th')}{body}</table>{said}"


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Plain values; NaN where a number is undefined."""
    return {
        "folder": str(comparison.folder),
        "data": comparison.data,
        "reference": comparison.reference,
        "tree": comparison.tree,
        "rows": [{**row._asdict(), "seeds": list(row.seeds)} for row in comparison.rows],
        "unfinished": [record.path.name for record in comparison.unfinished],
    }
