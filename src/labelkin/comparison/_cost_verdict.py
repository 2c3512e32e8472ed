"""The verdict on the mean cost of a decision: which objective decides at the least cost, by how much, at what accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from labelkin._checks import counted
from labelkin.comparison._accuracy_verdict import judge_accuracy
from labelkin.comparison._rows import CALIBRATED, DECIDING, SEEDS_ONLY, UNCALIBRATED, Row
from labelkin.comparison._verdict import Verdict, count_sentence, percent, settle_advice, signed

if TYPE_CHECKING:
    from labelkin.comparison._summary import Comparison

LARGE_SHARE = 0.5  # of a difference that is due to one test sample


def judge(comparison: Comparison) -> Verdict:
    """Return the verdict: on the mean cost of a decision if it may decide, else on the accuracy."""
    if not comparison.rows:
        return Verdict("nothing", None, "No results yet", "No run has finished, so there is nothing to compare")
    reference = next((row for row in comparison.rows if row.label == comparison.reference), None)
    if reference is None or not decides_on_cost(comparison):
        found = judge_accuracy(comparison, reference)
        return found._replace(details=(*found.details, *_why_not_cost(comparison)))
    rivals = [row for row in comparison.rows if row is not reference and _is_decided(row)]
    known = [row for row in rivals if not isnan(row.cost_low)]
    left_out = _left_out([row for row in comparison.rows if row is not reference and row not in rivals])
    if not known:
        found = _one_seed(rivals, reference)
        return found._replace(details=(*found.details, *left_out))
    shown_cheaper = [row for row in known if row.cost_high < 0]
    best = min(shown_cheaper or known, key=lambda row: row.cost_difference)
    undecided = [
        (row.label, row.runs, row.cost_seeds_to_settle, row.cost_samples_to_settle)
        for row in sorted(known, key=lambda row: row.cost_difference)
        if row.cost_low <= 0 <= row.cost_high and (row.cost_difference < 0 or best.cost_difference >= 0)
    ]
    details = (
        _counts(known, reference.label),
        _influence(best),
        "" if shown_cheaper else settle_advice(undecided, by_sample=True),
        *left_out,
        _not_calibrated([reference, *known]),
    )
    return _judged(best, reference, len(known), tuple(detail for detail in details if detail))


def decides_on_cost(comparison: Comparison) -> bool:
    """Return whether the mean cost of a decision decides: it does not on a tree that was built from the data."""
    reference = next((row for row in comparison.rows if row.label == comparison.reference), None)
    if reference is None or comparison.built_tree or reference.basis not in DECIDING:
        return False
    return any(row is not reference and _is_decided(row) for row in comparison.rows)


def _is_decided(row: Row) -> bool:
    return row.basis in DECIDING and not isnan(row.cost_difference)


def _judged(best: Row, reference: Row, count: int, details: tuple[str, ...]) -> Verdict:
    """Return the verdict on the cheapest of `count` objectives."""
    size = f"n = {counted(best.runs, 'seed')} x {counted(best.test_samples or 0, 'test sample')}"
    paired = best.decided_accuracy - best.decided_accuracy_change  # the reference on the seeds that both have
    other = reference.decided_accuracy if isnan(paired) else paired
    accuracy = f"at an accuracy of {percent(best.decided_accuracy)} against {percent(other)}"
    middle, low, high = change(best)
    interval = f"95 % interval {low} to {high}"
    if best.cost_high < 0:
        sentence = f"Decisions by {best.label} cost {_size(best)} less than those by {reference.label}, {accuracy}"
        return Verdict("winner", best.label, f"Use {best.label}", sentence, f"{interval}, {size}", details)
    if best.cost_low > 0:
        name = best.label if count == 1 else f"{best.label}, the cheapest other objective,"
        sentence = f"Decisions by {name} cost {_size(best)} more than those by {reference.label}, {accuracy}"
        return Verdict("behind", reference.label, f"Keep {reference.label}", sentence, f"{interval}, {size}", details)
    subject = f"Decisions by {best.label} are not" if count == 1 else "No objective's decisions are"
    sentence = f"{subject} shown to cost less than those by {reference.label}"
    best_one = "" if count == 1 else f"cheapest: {best.label}, "
    return Verdict("tie", None, f"Keep {reference.label}", sentence, f"{best_one}{middle}, {interval}, {size}", details)


def _one_seed(rivals: Sequence[Row], reference: Row) -> Verdict:
    best = min([*rivals, reference], key=lambda row: row.cost)
    other = "" if best is reference else f", those by {reference.label} {reference.cost:.3f}"
    return Verdict(
        "one seed",
        None,
        "Run more seeds",
        f"One seed cannot show whether a difference is due to chance; decisions by {best.label} cost least, "
        f"{best.cost:.3f} on average{other}",
        f"n = 1 seed x {counted(best.test_samples or 0, 'test sample')}",
        ("Run several, as in --seeds 0,1,2,3,4, to get a confidence interval.",),
    )


def _counts(rivals: Sequence[Row], reference: str) -> str:
    """Return which objectives are shown to cost less and more, and how many would look cheaper by chance."""
    cheaper = [row.label for row in rivals if row.cost_high < 0]
    dearer = [row.label for row in rivals if row.cost_low > 0]
    return count_sentence(len(rivals), cheaper, dearer, f"cost less than {reference}", "cost more")


def _influence(best: Row) -> str:
    if isnan(best.cost_largest_share) or best.cost_largest_share < LARGE_SHARE:
        return ""
    return (
        f"One test sample makes up {100 * best.cost_largest_share:.0f} % of the difference of {best.label}; test on more "
        "samples, or on all of them with --folds."
    )


def _not_calibrated(rows: Sequence[Row]) -> str:
    if all(row.basis == CALIBRATED for row in rows):
        return ""
    return (
        "The probabilities are not calibrated, because no samples or too few were held out for it; see --calibration and "
        "--validation."
    )


def _left_out(rows: Sequence[Row]) -> list[str]:
    """Say which objectives the verdict leaves out, by reason."""
    earlier = [row.label for row in rows if row.basis in (UNCALIBRATED, SEEDS_ONLY)]
    without = [row.label for row in rows if row.basis == ""]
    unpaired = [row.label for row in rows if row.basis in DECIDING]
    return [
        *(
            [f"Left out, because their decisions on the test samples are not stored: {', '.join(earlier)}."]
            if earlier
            else []
        ),
        *([f"Left out, because their scores are not probabilities: {', '.join(without)}."] if without else []),
        *([f"Left out, because they share no seed with the reference: {', '.join(unpaired)}."] if unpaired else []),
    ]


def _why_not_cost(comparison: Comparison) -> list[str]:
    """Explain why the verdict is not based on the mean cost of a decision."""
    bases = {row.basis for row in comparison.rows}
    if comparison.built_tree and bases & set(DECIDING):
        return ["Costs decide no verdict here, because the tree was built from the data; give one with --taxonomy."]
    if UNCALIBRATED in bases and not comparison.built_tree:
        return [
            "Costs decide no verdict here, because these runs are uncalibrated and compared over seeds only; train them again."
        ]
    return []


def change(row: Row) -> tuple[str, str, str]:
    """Return the difference in cost and its interval in percent of the reference's cost; in units of cost if that is 0."""
    if isnan(row.cost_change):
        values, unit, digits, scale = (row.cost_difference, row.cost_low, row.cost_high), "", 3, 1
    else:
        values, unit, digits, scale = (row.cost_change, row.cost_change_low, row.cost_change_high), " %", 1, 100
    middle, low, high = (signed(scale * value, digits) for value in values)
    return f"{middle}{unit}", low, f"{high}{unit}"


def _size(row: Row) -> str:
    return f"{abs(row.cost_difference):.3f}" if isnan(row.cost_change) else f"{abs(100 * row.cost_change):.1f} %"
