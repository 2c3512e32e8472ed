"""Numbers, differences and tables as text."""

from collections.abc import Sequence
from math import isnan

from labelkin.audit.findings import Difference

UNDEFINED = "undefined"
FEW = 10  # samples that differ, below which the normal distribution promises too much


def percent(value: float) -> str:
    return UNDEFINED if isnan(value) else f"{100 * value:.2f} %"


def number(value: float, form: str = ".3f") -> str:
    return UNDEFINED if isnan(value) else f"{value:{form}}"


def change(found: Difference, form: str) -> str:
    """`0.91 to 0.92 (+0.01; -0.01 to +0.03)`: before and after, the change and its interval."""
    shown = f"{number(found.before, form)} to {number(found.after, form)}"
    if isnan(found.low):
        return shown
    moved, low, high = (f"{value + 0.0:+{form}}" for value in (found.change, found.low, found.high))
    return f"{shown} ({moved}; {low} to {high})"


def verdict(difference: Difference) -> str:
    """Whether the interval leaves 0 out, and rests on enough samples to mean it."""
    if difference.differ < FEW:
        return "too few differ to tell" if difference.differ else "the same"
    if isnan(difference.low):
        return UNDEFINED
    return "shown" if difference.low > 0 or difference.high < 0 else "may be noise"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
