"""The leaderboard: a row an objective, numbers that can be sorted, and the interval of each difference to scale."""

from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import NamedTuple

from labelkin.experiments.comparison import Comparison, Row
from labelkin.experiments.table import UNDEFINED, notes
from labelkin.report.parts import Cell, Leaderboard, Line
from labelkin.report.verdict import points

MARGIN = 0.06  # of the interval column, left free on both sides


class Column(NamedTuple):
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
PLACE_OF_INTERVAL = 1  # after the accuracy


def leaderboard(comparison: Comparison, subjects: Sequence[str]) -> Leaderboard:
    """Rows by accuracy, the highest first; `subjects` are the labels that can be looked into."""
    # The reference saves no epochs over itself.
    rows = [row._replace(epochs_saved=nan) if row.label == comparison.reference else row for row in comparison.rows]
    scale = _Scale(rows)
    ordered = sorted(rows, key=lambda row: -row.accuracy)
    bests = {column.title: _best(column, rows) for column in COLUMNS}
    lines = []
    for row in ordered:
        cells = [_cell(column, row, bests[column.title]) for column in COLUMNS]
        cells.insert(PLACE_OF_INTERVAL, scale.cell(row, comparison.reference))
        place = subjects.index(row.label) if row.label in subjects else None
        lines.append(Line(row.label, _tags(row, comparison), tuple(cells), place))
    columns = [(column.title, column.more_is_better) for column in COLUMNS]
    columns.insert(PLACE_OF_INTERVAL, (f"against {comparison.reference or 'the reference'}", True))
    return Leaderboard(tuple(columns), lines, scale.place(0.0), tuple(notes(comparison)[1:]))


class _Scale:
    """From differences to places in a column as wide as the widest interval."""

    def __init__(self, rows: Sequence[Row]) -> None:
        known = [value for row in rows for value in _interval(row) if not isnan(value)]
        self.low, self.high = min([0.0, *known]), max([0.0, *known])

    def place(self, difference: float) -> float:
        width = (self.high - self.low) or 1.0
        return round(MARGIN + (1 - 2 * MARGIN) * (difference - self.low) / width, 4)

    def cell(self, row: Row, reference: str | None) -> Cell:
        if isnan(row.difference):
            return Cell(UNDEFINED)
        if row.label == reference:
            return Cell("reference", value=0.0)
        low, middle, high = (self.place(value) for value in _interval(row))
        known = not isnan(row.difference_low)
        tone = "better" if row.difference_low > 0 else "worse" if row.difference_high < 0 else ""
        told = f"{points(row.difference_low)} to {points(row.difference_high)}" if known else ""
        return Cell(points(row.difference), told, row.difference, interval=(low, middle, high), tone=tone)


def _interval(row: Row) -> tuple[float, float, float]:
    if isnan(row.difference_low):
        return row.difference, row.difference, row.difference
    return row.difference_low, row.difference, row.difference_high


def _best(column: Column, rows: Sequence[Row]) -> str | None:
    """The best number of a column as it is shown; none where all are alike, and none for costs and counts."""
    shown = {f"{column.scale * column.value(row):.{column.digits}f}" for row in rows if not isnan(column.value(row))}
    if len(shown) < 2 or column.title in ("n", "seconds"):
        return None
    return (max if column.more_is_better else min)(shown, key=float)


def _cell(column: Column, row: Row, best: str | None) -> Cell:
    value = column.value(row)
    if isnan(value):
        return Cell(UNDEFINED)
    text = f"{column.scale * value:.{column.digits}f}"
    spread = column.spread(row)
    told = "" if isnan(spread) else f"{column.scale * spread:.{column.digits}f}"
    return Cell(text, told, value, best=text == best)


def _tags(row: Row, comparison: Comparison) -> tuple[str, ...]:
    tags = ["reference"] if row.label == comparison.reference else []
    return (*tags, *(["Pareto"] if row.on_front and len(comparison.rows) > 1 else []))
