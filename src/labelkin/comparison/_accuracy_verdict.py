"""The verdict on accuracy, where costs cannot decide: without a tree, on a tree built from the data, and for earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import TYPE_CHECKING

from labelkin._checks import counted
from labelkin.comparison._rows import Row
from labelkin.comparison._statistics import Paired, paired
from labelkin.comparison._verdict import Verdict, count_sentence, percent, settle_advice, signed

if TYPE_CHECKING:
    from labelkin.comparison._summary import Comparison


def judge_accuracy(comparison: Comparison, reference: Row | None) -> Verdict:
    """Return the verdict on the accuracy of the objectives; there is at least one row."""
    top = max(comparison.rows, key=lambda row: row.accuracy)
    rivals = [row for row in comparison.rows if row is not reference and not isnan(row.difference)]
    if reference is None or not rivals:
        return _not_comparable(comparison, top, reference)
    known = [row for row in rivals if not isnan(row.difference_low)]
    if not known:
        return _one_seed(top, reference)
    shown_better = [row for row in known if row.difference_low > 0]
    best = max(shown_better or known, key=lambda row: row.difference)
    better = [row.label for row in known if row.difference_low > 0]
    worse = [row.label for row in known if row.difference_high < 0]
    undecided = [
        (row.label, row.runs, row.seeds_to_settle, row.samples_to_settle)
        for row in sorted(known, key=lambda row: -row.difference)
        if row.difference_low <= 0 <= row.difference_high and (row.difference > 0 or best.difference <= 0)
    ]
    details = (
        count_sentence(len(known), better, worse, f"be more accurate than {reference.label}", "be less accurate"),
        _severity(comparison, known, reference),
        "" if shown_better else settle_advice(undecided, by_sample=best.test_samples is not None),
    )
    return _judged(best, reference.label, len(known), tuple(detail for detail in details if detail))


def _judged(best: Row, reference: str, count: int, details: tuple[str, ...]) -> Verdict:
    """Return the verdict on the best of `count` objectives."""
    size = f"{abs(100 * best.difference):.2f} percentage points"
    interval = f"95 % interval {points(best.difference_low)} to {points(best.difference_high)}"
    samples = "" if best.test_samples is None else f" x {counted(best.test_samples, 'test sample')}"
    seeds = f"n = {counted(best.runs, 'seed')}{samples}"
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
        sentence = f"{top.label} is the only objective with finished runs; its accuracy is {percent(top.accuracy)}"
        return Verdict("no reference", None, "Add objectives", sentence)
    sentence = (
        f"No objective has a run with the same seed as {reference.label}, so no differences are known; {_accuracy(top)}"
    )
    return Verdict("no reference", None, "Use the same seeds", sentence)


def _one_seed(top: Row, reference: Row) -> Verdict:
    other = "" if top is reference else f", {reference.label} has {percent(reference.accuracy)}"
    return Verdict(
        "one seed",
        None,
        "Run more seeds",
        f"One seed cannot show whether a difference is due to chance; {_accuracy(top)}{other}",
        "n = 1 seed",
        ("Run several, as in --seeds 0,1,2,3,4, to get a confidence interval.",),
    )


def _severity(comparison: Comparison, rivals: Sequence[Row], reference: Row) -> str:
    """Return a sentence on whether an objective that is not shown to be less accurate makes less severe mistakes."""
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
        f"95 % interval of the difference {signed(found.low)} to {signed(found.high)}"
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
        runs = comparison.records.get(name, [])
        found = {record.seed: (record.final or {}).get("severity", nan) for record in runs}
        return {seed: severity for seed, severity in found.items() if not isnan(severity)}

    ours, theirs = by_seed(label), by_seed(reference)
    return paired([ours[seed] - theirs[seed] for seed in ours if seed in theirs])


def _accuracy(row: Row) -> str:
    return f"{row.label} has the highest accuracy with {percent(row.accuracy)}"


def points(value: float) -> str:
    """Return percentage points with a sign."""
    return signed(100 * value)
