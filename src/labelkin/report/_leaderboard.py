"""The verdict and the leaderboard of a report."""

from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import NamedTuple

from labelkin.comparison import UNDEFINED, Comparison, Paired, Row, better_by_chance, comparison_notes, paired
from labelkin.report._page_model import Cell, Leaderboard, Line, Verdict

MANY = 5  # rivals from which on the best of them is worth a word on chance


def verdict(comparison: Comparison) -> Verdict:
    """The winner with n and its interval over the reference, or that no difference is shown, or why nothing can be said."""
    if not comparison.rows:
        return Verdict("nothing", None, "Nothing yet", "No run is finished, so there is nothing to compare")
    top = max(comparison.rows, key=lambda row: row.accuracy)
    reference = next((row for row in comparison.rows if row.label == comparison.reference), None)
    rivals = [row for row in comparison.rows if row is not reference and not isnan(row.difference)]
    if reference is None or not rivals:
        sentence = f"There is nothing to compare with: {_accuracy(top)} without a reference run of the same seed"
        return Verdict("no reference", None, "Add a reference", sentence)
    known = [row for row in rivals if not isnan(row.difference_low)]
    if not known:
        return _one_seed(top, reference)
    details = (_counts(known, reference.label), _mildest(comparison, known, reference))
    return _judged(
        max(known, key=lambda row: row.difference), reference.label, [detail for detail in details if detail]
    )


def _judged(best: Row, reference: str, details: Sequence[str]) -> Verdict:
    size, told = f"{abs(100 * best.difference):.2f} points", tuple(details)
    interval = f"95 % interval {points(best.difference_low)} to {points(best.difference_high)}"
    seeds = f"n = {best.runs} seeds"
    if best.difference_low > 0:
        sentence = f"{best.label} is {size} more accurate than {reference}"
        return Verdict("winner", best.label, f"Use {best.label}", sentence, f"{interval}, {seeds}", told)
    if best.difference_high < 0:
        sentence = f"{best.label}, the best rival, is {size} less accurate than {reference}"
        return Verdict("behind", reference, f"Stay with {reference}", sentence, f"{interval}, {seeds}", told)
    sentence = f"No difference shown between {best.label}, the best rival, and {reference}"
    evidence = f"{points(best.difference)} points, {interval} includes 0, {seeds}"
    return Verdict("tie", None, f"Stay with {reference}", sentence, evidence, told)


def _one_seed(top: Row, reference: Row) -> Verdict:
    others = "" if top is reference else f" against {_percent(reference.accuracy)} of {reference.label}"
    sentence = f"One seed cannot tell a difference from chance: {_accuracy(top)}{others}"
    return Verdict(
        "one seed",
        None,
        "Run more seeds",
        sentence,
        "n = 1 seed",
        ("More of them, as in --seeds 0,1,2,3,4, give an interval.",),
    )


def _counts(rivals: Sequence[Row], reference: str) -> str:
    """How many rivals are shown better and worse, and what chance alone would do."""
    better, worse = (
        sum(test) for test in ([r.difference_low > 0 for r in rivals], [r.difference_high < 0 for r in rivals])
    )
    told = f"Of {len(rivals)} rivals {better} {_are(better)} shown better than {reference} and {worse} worse."
    chance = f" By chance alone about {better_by_chance(len(rivals))} would look better." if len(rivals) >= MANY else ""
    return told + chance


def _mildest(comparison: Comparison, rivals: Sequence[Row], reference: Row) -> str:
    """The mildest in its mistakes of those that are not shown less accurate."""
    level = [row for row in rivals if row.difference_high >= 0 and not isnan(row.severity)]
    if not level or isnan(reference.severity):
        return ""
    row = min(level, key=lambda row: row.severity)
    found = _severities_apart(comparison, row.label, reference.label)
    told = (
        f"severity {row.severity:.2f} against {reference.severity:.2f}, "
        f"95 % interval of the difference {_signed(found.low)} to {_signed(found.high)}"
    )
    if found.high < 0:
        return f"{row.label} makes the mildest mistakes of those not shown less accurate ({told})."
    if isnan(found.low):
        return ""
    return f"Nor are milder mistakes shown at equal accuracy: {row.label} comes nearest ({told})."


def _severities_apart(comparison: Comparison, label: str, reference: str) -> Paired:
    """Of runs with the same seed."""

    def by_seed(name: str) -> dict[int, float]:
        found = {record.seed: (record.final or {}).get("severity", float("nan")) for record in comparison.records[name]}
        return {seed: severity for seed, severity in found.items() if not isnan(severity)}

    ours, theirs = by_seed(label), by_seed(reference)
    return paired([ours[seed] - theirs[seed] for seed in ours if seed in theirs])


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _accuracy(row: Row) -> str:
    return f"{row.label} has the highest accuracy, {_percent(row.accuracy)}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def points(value: float) -> str:
    """Points of accuracy with a sign; a minus sign, not a hyphen, and none before a zero."""
    return _signed(100 * value)


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


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
    return Leaderboard(tuple(columns), lines, scale.place(0.0), tuple(comparison_notes(comparison)[1:]))


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
