"""The first sentence of a report: what may be said of the winner, and no more."""

from collections.abc import Sequence
from math import isnan

from labelkin.experiments.comparison import Comparison, Row
from labelkin.experiments.statistics import Paired, better_by_chance, paired
from labelkin.report.parts import Verdict

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
