"""A comparison as text, as HTML and as plain values, with what its columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isnan, sqrt
from typing import TYPE_CHECKING, Any

from scipy.special import stdtrit

if TYPE_CHECKING:
    from labelkin.experiments.comparison import Comparison, Row

HEADINGS = ("objective", "accuracy %", "against one-hot", "top-5 %", "severity", "epochs to one-hot's best", "seconds")
UNDEFINED = "–"


def cells(row: Row) -> tuple[str, ...]:
    return (
        row.objective,
        f"{100 * row.accuracy:.2f}{_spread(row.accuracy_spread)}",
        UNDEFINED
        if isnan(row.difference)
        else f"{round(100 * row.difference, 2) + 0.0:+.2f}{_spread(row.difference_spread)}",
        UNDEFINED if isnan(row.top5) else f"{100 * row.top5:.2f}",
        UNDEFINED if isnan(row.severity) else f"{row.severity:.3f}",
        UNDEFINED if row.epochs_to_reference is None else str(row.epochs_to_reference),
        f"{row.seconds:.1f}",
    )


def _spread(value: float) -> str:
    return "" if isnan(value) else f" ± {100 * value:.2f}"


def verdict(comparison: Comparison) -> str:
    """Which objectives help, as far as the seeds can tell: 95 % intervals of the paired differences to one-hot."""
    rivals = [row for row in comparison.rows if not isnan(row.difference) and row.objective != "one-hot"]
    if not rivals:
        return "Without one-hot among the objectives there is nothing to compare with."
    runs = rivals[0].runs
    if runs < 2:
        return "One seed cannot tell a difference from chance; `labelkin compare --seeds 0,1,2` says more."
    reach = float(stdtrit(runs - 1, 0.975)) / sqrt(runs)
    better = [row.objective for row in rivals if row.difference > reach * row.difference_spread]
    worse = [row.objective for row in rivals if -row.difference > reach * row.difference_spread]
    found = [
        f"{word} than one-hot: {', '.join(names)}." for word, names in (("Better", better), ("Worse", worse)) if names
    ]
    rest = "No difference to one-hot is shown" + (" for the others." if found else ".")
    return " ".join([*found, rest]) + f" ({runs} seeds, 95 % intervals of the paired differences)"


def notes(comparison: Comparison) -> list[str]:
    """What the table says, and how its columns read, a sentence each."""
    seeds = " ± is the standard deviation over seeds." if any(row.runs > 1 for row in comparison.rows) else ""
    return [
        verdict(comparison),
        f"accuracy, top-5: of the test set, higher is better.{seeds}",
        "against one-hot: points of accuracy, run by run with the same seed.",
        "severity: how far up the tree truth and prediction meet, over the mistakes alone; lower is better, and it "
        f"compares only on one tree. The tree here: {comparison.tree}.",
        "epochs to one-hot's best: when the test accuracy first reaches the best that one-hot ever has; "
        f"{UNDEFINED} where it never does.",
        "seconds: spent training one run, without measuring.",
    ]


def as_text(comparison: Comparison) -> str:
    table = [HEADINGS, *map(cells, comparison.rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in table)


def as_markdown(comparison: Comparison) -> str:
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *map(cells, comparison.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_html(comparison: Comparison) -> str:
    def line(values: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(value)}</{tag}>" for value in values) + "</tr>"

    said = "".join(f"<p>{escape(note)}</p>" for note in notes(comparison))
    return f"<table>{line(HEADINGS, 'th')}{''.join(line(cells(row), 'td') for row in comparison.rows)}</table>{said}"


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Plain values; NaN where a number is undefined."""
    return {
        "folder": str(comparison.folder),
        "tree": comparison.tree,
        "rows": [row._asdict() for row in comparison.rows],
    }
