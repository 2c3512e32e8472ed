"""The verdict and the leaderboard of a report."""

from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import NamedTuple

from labelkin._checks import counted
from labelkin.comparison import UNDEFINED, Comparison, Paired, Row, better_by_chance, comparison_notes, paired
from labelkin.report._page_model import Cell, Leaderboard, Line, Verdict

MANY = 5  # minimum number of objectives for a note on how many would look better by chance
MARGIN = 0.06  # of the interval column, left free on both sides


def verdict(comparison: Comparison) -> Verdict:
    """Return the first sentence of the page: the best objective, or that none is shown to be better, or why it is unknown."""
    if not comparison.rows:
        return Verdict("nothing", None, "No results yet", "No run has finished, so there is nothing to compare")
    top = max(comparison.rows, key=lambda row: row.accuracy)
    reference = next((row for row in comparison.rows if row.label == comparison.reference), None)
    rivals = [row for row in comparison.rows if row is not reference and not isnan(row.difference)]
    if reference is None or not rivals:
        return _not_comparable(comparison, top, reference)
    known = [row for row in rivals if not isnan(row.difference_low)]
    if not known:
        return _one_seed(top, reference)
    shown_better = [row for row in known if row.difference_low > 0]
    best = max(shown_better or known, key=lambda row: row.difference)
    details = (_counts(known, reference.label), _severity(comparison, known, reference))
    return _judged(best, reference.label, len(known), tuple(detail for detail in details if detail))


def _judged(best: Row, reference: str, count: int, details: tuple[str, ...]) -> Verdict:
    """Return the verdict on the best of `count` objectives."""
    size = f"{abs(100 * best.difference):.2f} percentage points"
    interval = f"95 % interval {points(best.difference_low)} to {points(best.difference_high)}"
    seeds = f"n = {counted(best.runs, 'seed')}"
    if best.difference_low > 0:
        sentence = f"{best.label} is {size} more accurate than {reference}"
        return Verdict("winner", best.label, f"Use {best.label}", sentence, f"{interval}, {seeds}", details)
    name = best.label if count == 1 else f"{best.label}, the best other objective,"
    if best.difference_high < 0:
        sentence = f"{name} is {size} less accurate than {reference}"
        return Verdict("behind", reference, f"Keep {reference}", sentence, f"{interval}, {seeds}", details)
    subject = best.label if count == 1 else "No objective"
    sentence = f"{subject} is {'not ' if count == 1 else ''}shown to be more accurate than {reference}"
    best_one = "" if count == 1 else f"best: {best.label}, "
    evidence = f"{best_one}{points(best.difference)} percentage points, {interval} includes 0, {seeds}"
    return Verdict("tie", None, f"Keep {reference}", sentence, evidence, details)


def _not_comparable(comparison: Comparison, top: Row, reference: Row | None) -> Verdict:
    """Return the verdict if no objective can be compared with the reference."""
    if reference is None:
        sentence = f"No run of the reference has finished, so no differences are known; {_accuracy(top)}"
        return Verdict("no reference", None, "Add a reference", sentence)
    if len(comparison.rows) == 1:
        sentence = f"{top.label} is the only objective with finished runs; its accuracy is {_percent(top.accuracy)}"
        return Verdict("no reference", None, "Add objectives", sentence)
    sentence = (
        f"No objective has a run with the same seed as {reference.label}, so no differences are known; {_accuracy(top)}"
    )
    return Verdict("no reference", None, "Use the same seeds", sentence)


def _one_seed(top: Row, reference: Row) -> Verdict:
    other = "" if top is reference else f", {reference.label} has {_percent(reference.accuracy)}"
    return Verdict(
        "one seed",
        None,
        "Run more seeds",
        f"One seed cannot show whether a difference is due to chance; {_accuracy(top)}{other}",
        "n = 1 seed",
        ("Run several, as in --seeds 0,1,2,3,4, to get a confidence interval.",),
    )


def _counts(rivals: Sequence[Row], reference: str) -> str:
    """Return how many objectives are shown to be better and worse, and how many would look better by chance."""
    if len(rivals) == 1:
        return ""
    better, worse = sum(row.difference_low > 0 for row in rivals), sum(row.difference_high < 0 for row in rivals)
    counts = (
        f"Of {len(rivals)} objectives, {better} {_are(better)} shown to be more accurate than {reference} and {worse} "
        f"{_are(worse)} shown to be less accurate."
    )
    by_chance = f" By chance alone, about {better_by_chance(len(rivals))} would look better."
    return counts + (by_chance if len(rivals) >= MANY else "")


def _severity(comparison: Comparison, rivals: Sequence[Row], reference: Row) -> str:
    """Return whether an objective that is not shown to be less accurate makes less severe mistakes."""
    candidates = [row for row in rivals if row.difference_high >= 0 and not isnan(row.severity)]
    if not candidates or isnan(reference.severity):
        return ""
    differences = {row.label: _severity_difference(comparison, row.label, reference.label) for row in candidates}
    shown = [row for row in candidates if differences[row.label].high < 0]
    row = min(shown or candidates, key=lambda row: row.severity)
    found = differences[row.label]
    if isnan(found.low):
        return ""
    evidence = (
        f"severity {row.severity:.2f} against {reference.severity:.2f}, "
        f"95 % interval of the difference {_signed(found.low)} to {_signed(found.high)}"
    )
    if shown:
        return f"{row.label} makes less severe mistakes than {reference.label} and is not shown less accurate ({evidence})."
    subject = f"{row.label} is not" if len(candidates) == 1 else "No objective is"
    best = "" if len(candidates) == 1 else f"best: {row.label}, "
    return (
        f"{subject} shown to make less severe mistakes than {reference.label} at similar accuracy ({best}{evidence})."
    )


def _severity_difference(comparison: Comparison, label: str, reference: str) -> Paired:
    """Return the difference in severity between runs with the same seed."""

    def by_seed(name: str) -> dict[int, float]:
        found = {record.seed: (record.final or {}).get("severity", float("nan")) for record in comparison.records[name]}
        return {seed: severity for seed, severity in found.items() if not isnan(severity)}

    ours, theirs = by_seed(label), by_seed(reference)
    return paired([ours[seed] - theirs[seed] for seed in ours if seed in theirs])


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _accuracy(row: Row) -> str:
    return f"{row.label} has the highest accuracy with {_percent(row.accuracy)}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def points(value: float) -> str:
    """Return percentage points with a sign: a minus sign instead of a hyphen, and none before a zero."""
    return _signed(100 * value)


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


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
PLACE_OF_INTERVAL = 1  # after the accuracy


def leaderboard(comparison: Comparison, subjects: Sequence[str]) -> Leaderboard:
    """Return the leaderboard, most accurate first; `subjects` are the labels that have details on the page."""
    # "Epochs saved" is relative to the reference, so it is undefined for the reference.
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
    return Leaderboard(tuple(columns), lines, scale.place(0.0), tuple(comparison_notes(comparison)[1:]))


class _Scale:
    """Map differences to positions in a column that fits all intervals."""

    def __init__(self, rows: Sequence[Row]) -> None:
        known = [value for row in rows for value in _interval(row) if not isnan(value)]
        self.low, self.high = min([0.0, *known]), max([0.0, *known])

    def place(self, difference: float) -> float:
        """Return the position of a difference as a share of the column's width."""
        width = (self.high - self.low) or 1.0
        return round(MARGIN + (1 - 2 * MARGIN) * (difference - self.low) / width, 4)

    def cell(self, row: Row, reference: str | None) -> Cell:
        """Return the cell with the difference and its interval."""
        if isnan(row.difference):
            return Cell(UNDEFINED)
        if row.label == reference:
            return Cell("reference", value=0.0)
        low, middle, high = (self.place(value) for value in _interval(row))
        known = not isnan(row.difference_low)
        tone = "better" if row.difference_low > 0 else "worse" if row.difference_high < 0 else ""
        interval = f"{points(row.difference_low)} to {points(row.difference_high)}" if known else ""
        return Cell(points(row.difference), interval, row.difference, interval=(low, middle, high), tone=tone)


def _interval(row: Row) -> tuple[float, float, float]:
    if isnan(row.difference_low):
        return row.difference, row.difference, row.difference
    return row.difference_low, row.difference, row.difference_high


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
    text = f"{column.scale * value:.{column.digits}f}"
    spread = column.spread(row)
    deviation = "" if isnan(spread) else f"{column.scale * spread:.{column.digits}f}"
    return Cell(text, deviation, value, best=text == best)


def _tags(row: Row, comparison: Comparison) -> tuple[str, ...]:
    tags = ["reference"] if row.label == comparison.reference else []
    return (*tags, *(["Pareto"] if row.on_front and len(comparison.rows) > 1 else []))
