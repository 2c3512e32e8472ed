"""The leaderboard of a report: by the cost of decisions where it decides, else by accuracy."""

from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import NamedTuple

from labelkin.comparison import UNDEFINED, Comparison, Row, comparison_notes, decides_on_cost, rows_of_decisions, signed
from labelkin.report._page_model import Cell, Leaderboard, Line

MARGIN = 0.06  # of the interval column, left free on both sides


class Column(NamedTuple):
    """A column of numbers in the leaderboard."""

    title: str
    value: Callable[[Row], float]
    digits: int
    more_is_better: bool
    spread: Callable[[Row], float] = lambda row: float("nan")
    scale: float = 1.0


COLUMNS = (
    Column("accuracy %", lambda row: row.accuracy, 2, True, lambda row: row.accuracy_spread, 100),
    Column("top-5 %", lambda row: row.top5, 2, True, scale=100),
    Column("severity", lambda row: row.severity, 3, False, lambda row: row.severity_spread),
    Column("AHD@5", lambda row: row.ahd5, 3, False, lambda row: row.ahd5_spread),
    Column("ECE %", lambda row: row.ece, 2, False, scale=100),
    Column("epochs saved %", lambda row: row.epochs_saved, 0, True, scale=100),
    Column("seconds", lambda row: row.seconds, 1, False),
    Column("n", lambda row: float(row.runs), 0, True),
)
# Of decisions by the least expected cost. AHD@k is shown as its distance above the least that the tree allows.
COST_COLUMNS = (
    Column("cost", lambda row: row.cost, 3, False, lambda row: row.cost_spread),
    Column("accuracy %", lambda row: row.decided_accuracy, 2, True, lambda row: row.decided_accuracy_spread, 100),
    Column("severity", lambda row: row.decided_severity, 3, False, lambda row: row.decided_severity_spread),
    Column("AHD@5 above floor", lambda row: row.decided_ahd5 - row.ahd5_floor, 3, False),
    Column("AHD@20 above floor", lambda row: row.decided_ahd20 - row.ahd20_floor, 3, False),
    Column("ECE %", lambda row: row.decided_ece, 2, False, scale=100),
    Column("argmax accuracy %", lambda row: row.accuracy, 2, True, lambda row: row.accuracy_spread, 100),
    Column("seconds", lambda row: row.seconds, 1, False),
    Column("n", lambda row: float(row.runs), 0, True),
)
PLACE_OF_INTERVAL = 1  # after the cost or the accuracy


def leaderboard(comparison: Comparison, subjects: Sequence[str]) -> Leaderboard:
    """Return the leaderboard, best first; `subjects` are the labels that have details on the page."""
    # "Epochs saved" is relative to the reference, so it is undefined for the reference.
    rows = [row._replace(epochs_saved=nan) if row.label == comparison.reference else row for row in comparison.rows]
    by_cost = decides_on_cost(comparison)
    shown = [
        c for c in (COST_COLUMNS if by_cost else COLUMNS) if not (by_cost and all(isnan(c.value(r)) for r in rows))
    ]
    scale = _Scale(rows, _cost_difference if by_cost else _accuracy_difference)
    bests = {column.title: _best(column, rows) for column in shown}
    decided = {row.label: row.on_front for row in rows_of_decisions(rows)} if by_cost else {}
    leads = {row.label: decided.get(row.label, False) if by_cost else row.on_front for row in rows}
    lines = []
    for row in ranked(comparison._replace(rows=rows)):
        cells = [_cell(column, row, bests[column.title]) for column in shown]
        cells.insert(PLACE_OF_INTERVAL, scale.cell(row, comparison.reference))
        place = subjects.index(row.label) if row.label in subjects else None
        lines.append(Line(row.label, _tags(row, comparison, leads[row.label]), tuple(cells), place))
    columns = [(column.title, column.more_is_better) for column in shown]
    against = f"against {comparison.reference or 'the reference'}{' %' if by_cost else ''}"
    columns.insert(PLACE_OF_INTERVAL, (against, not by_cost))
    return Leaderboard(tuple(columns), lines, scale.place(0.0), tuple(comparison_notes(comparison)[1:]))


def ranked(comparison: Comparison) -> list[Row]:
    """Return the rows, best first: by the cost of decisions where it decides, else by accuracy."""
    if decides_on_cost(comparison):
        return sorted(comparison.rows, key=lambda row: (isnan(row.cost), row.cost, -row.accuracy))
    return sorted(comparison.rows, key=lambda row: -row.accuracy)


class Interval(NamedTuple):
    """A difference from the reference with its interval, and whether larger is better."""

    low: float
    middle: float
    high: float
    more_is_better: bool
    digits: int

    @property
    def tone(self) -> str:
        """Whether the difference is shown to be better or worse."""
        if self.low > 0 or self.high < 0:
            return "better" if (self.low > 0) == self.more_is_better else "worse"
        return ""


def _accuracy_difference(row: Row) -> Interval:
    low, middle, high = (100 * value for value in (row.difference_low, row.difference, row.difference_high))
    return Interval(low, middle, high, more_is_better=True, digits=2)


def _cost_difference(row: Row) -> Interval:
    low, middle, high = (100 * value for value in (row.cost_change_low, row.cost_change, row.cost_change_high))
    return Interval(low, middle, high, more_is_better=False, digits=1)


class _Scale:
    """Map differences to positions in a column that fits all intervals."""

    def __init__(self, rows: Sequence[Row], difference: Callable[[Row], Interval]) -> None:
        self.difference = difference
        found = [difference(row) for row in rows]
        known = [value for each in found for value in each[:3] if not isnan(value)]
        self.low, self.high = min([0.0, *known]), max([0.0, *known])

    def place(self, difference: float) -> float:
        """Return the position of a difference as a share of the column's width."""
        width = (self.high - self.low) or 1.0
        return round(MARGIN + (1 - 2 * MARGIN) * (difference - self.low) / width, 4)

    def cell(self, row: Row, reference: str | None) -> Cell:
        """Return the cell with the difference and its interval."""
        found = self.difference(row)
        if isnan(found.middle):
            return Cell(UNDEFINED)
        if row.label == reference:
            return Cell("reference", value=0.0)
        known = not isnan(found.low)
        low, middle, high = (self.place(v) for v in (found[:3] if known else (found.middle,) * 3))
        words = f"{signed(found.low, found.digits)} to {signed(found.high, found.digits)}" if known else ""
        text = signed(found.middle, found.digits)
        return Cell(text, words, found.middle / 100, interval=(low, middle, high), tone=found.tone)


def _best(column: Column, rows: Sequence[Row]) -> str | None:
    """Return the best number of a column as shown; None if all are equal, and for columns that are not results."""
    shown = {f"{column.scale * column.value(row):.{column.digits}f}" for row in rows if not isnan(column.value(row))}
    if len(shown) < 2 or column.title in ("n", "seconds"):
        return None
    return (max if column.more_is_better else min)(shown, key=float)


def _cell(column: Column, row: Row, best: str | None) -> Cell:
    value = column.value(row)
    if isnan(value):
        return Cell(UNDEFINED)
    text = f"{round(column.scale * value, column.digits) + 0.0:.{column.digits}f}"
    spread = column.spread(row)
    deviation = "" if isnan(spread) else f"{column.scale * spread:.{column.digits}f}"
    return Cell(text, deviation, value, best=text == best)


def _tags(row: Row, comparison: Comparison, on_front: bool) -> tuple[str, ...]:
    tags = ["reference"] if row.label == comparison.reference else []
    return (*tags, *(["Pareto"] if on_front and len(comparison.rows) > 1 else []))
