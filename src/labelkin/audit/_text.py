"""Format an audit as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import TYPE_CHECKING

from labelkin._checks import counted
from labelkin.audit._advice import FEW, is_significant
from labelkin.audit._confusion_tree import Pair, Structure
from labelkin.audit._decision_findings import Crm, Fallback
from labelkin.audit._findings import Calibration, Difference, Hierarchy, Worst

if TYPE_CHECKING:
    from labelkin.audit._audit import Audit

UNDEFINED = "undefined"
DRAWN = 40  # classes up to which the learned tree is drawn
ACTION_NOTES = (
    "accuracy: an action is no right answer; accuracy of classes: from all samples to those that get a class",
    "cost by actions: from the class to the answer of least expected cost",
)
DISTANCE_NOTE = "mistake severity and distance@1: from all samples to those that get a class"
COST_OF_CONFUSION = {"costs": "cost", "taxonomy": "distance in the taxonomy", "times": "count"}
COST_COLUMNS: dict[str, tuple[str, ...]] = {"costs": ("cost", "total"), "taxonomy": ("distance", "total"), "times": ()}


def percent(value: float) -> str:
    """Return a share in percent."""
    return UNDEFINED if isnan(value) else f"{100 * value:.2f} %"


def number(value: float, form: str = ".3f") -> str:
    """Format a number; NaN becomes "undefined"."""
    return UNDEFINED if isnan(value) else f"{value:{form}}"


def change(found: Difference, form: str) -> str:
    """Return a change with its interval: `0.91 to 0.92 (+0.01; -0.01 to +0.03)`."""
    shown = f"{number(found.before, form)} to {number(found.after, form)}"
    if isnan(found.low):
        return shown
    moved, low, high = (f"{value + 0.0:+{form}}" for value in (found.change, found.low, found.high))
    return f"{shown} ({moved}; {low} to {high})"


def verdict(difference: Difference) -> str:
    """Return whether a change is significant: its interval excludes 0, and enough samples changed."""
    if difference.differ < FEW:
        return "too few changes to tell" if difference.differ else "no change"
    if isnan(difference.low):
        return UNDEFINED
    return "significant" if is_significant(difference) else "not significant"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows with aligned columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def as_text(audit: Audit) -> str:
    """Format an audit as text.

    Args:
        audit: The result of `audit`.

    Returns:
        Several lines of text.

    Example:
        >>> from labelkin.audit import as_text, audit
        >>> print(as_text(audit({"target": [0, 1], "predicted": [0, 0]})).partition("Parts left out")[0].strip())
        2 samples, 2 classes, read as labels from arrays
        <BLANKLINE>
        What to do first
          Save logits or probabilities: predicted labels allow no other decision.
        <BLANKLINE>
        Quality
          accuracy  50.00 %  95 % interval 9.5 to 90.5; 1 mistake
        <BLANKLINE>
        Costliest confusions, by count
          true  predicted  count  share
          1     0          1      100.0 %
    """
    blocks = [
        _heading(audit),
        *_listed("Check first", audit.doubts),
        ["What to do first", *(f"  {part}" for part in (audit.advice.sentence, audit.advice.fallback) if part)],
        _quality(audit),
        _worst(audit.worst),
        *([_calibration(audit.calibration)] if audit.calibration else []),
        *(_crm(found) for found in audit.crm),
        *([_fallback(audit.fallback)] if audit.fallback else []),
        *([_structure(audit.structure, audit)] if audit.structure else []),
        *_listed("Parts left out", audit.left_out),
        *_listed("Notes", audit.notes),
    ]
    return "\n\n".join("\n".join(block) for block in blocks)


def amount(value: float, form: str = "g") -> str:
    """Write a count or a sum of costs: from 1,000 on as a whole number, never as a power of ten."""
    return f"{value:,.0f}" if value >= 1000 else format(value, form)


def _heading(audit: Audit) -> list[str]:
    sizes = f"{counted(audit.samples, 'sample')}, {counted(len(audit.classes), 'class', 'classes')}"
    lines = [f"{sizes}, read as {audit.kind} from {audit.source}"]
    return lines if audit.taxonomy is None else [*lines, f"Taxonomy: {audit.taxonomy}"]


def _quality(audit: Audit) -> list[str]:
    basics = audit.basics
    low, high = (100 * end for end in basics.accuracy_interval)
    interval = f"95 % interval {low:.1f} to {high:.1f}; {counted(basics.mistakes, 'mistake')}"
    rows = [("accuracy", percent(basics.accuracy), interval)]
    if not isnan(basics.top5):
        rows.append(("top-5 accuracy", percent(basics.top5), ""))
    if audit.hierarchy is not None:
        rows += _hierarchy(audit.hierarchy)
    if audit.cost is not None:
        low, high = audit.cost.interval
        rows.append(
            ("cost per sample", number(audit.cost.mean), f"95 % interval {low:.3f} to {high:.3f}; lower is better")
        )
    return ["Quality", *table(rows)]


def _hierarchy(found: Hierarchy) -> Iterator[tuple[str, str, str]]:
    chance = "" if isnan(found.severity_by_chance) else f"; random mistakes would have {found.severity_by_chance:.3f}"
    yield "mistake severity", number(found.severity), f"mean tree distance of the mistakes, 1 to {found.height}{chance}"
    yield "distance@1", number(found.distance_at_1), "mean tree distance over all samples; lower is better"
    if not isnan(found.distance_at_5):
        yield "distance@5", number(found.distance_at_5), "mean tree distance of the five best; above 0 for any model"
    shares = " / ".join(percent(value) for value in (found.precision, found.recall, found.f1))
    yield "hierarchical P / R / F1", shares, ""
    values = (found.weighted_accuracy, found.weighted_precision, found.weighted_recall, found.weighted_f1)
    yield "weighted A / P / R / F1", " / ".join(percent(value) for value in values), "mistakes weighted by distance"


def _worst(found: Worst) -> list[str]:
    if not found.confusions:
        return ["Costliest confusions", "  none"]
    rows: list[tuple[str, ...]] = [("true", "predicted", "count", *COST_COLUMNS[found.by], "share")]
    for true, predicted, times, distance, cost in found.confusions:
        each = () if found.by == "times" else (f"{distance:g}", amount(cost))
        share = f"{100 * cost / found.total:.1f} %" if found.total else UNDEFINED
        rows.append((true, predicted, f"{times:,}", *each, share))
    return [f"Costliest confusions, by {COST_OF_CONFUSION[found.by]}", *table(rows)]


def _calibration(found: Calibration) -> list[str]:
    rows = [
        ("ECE", percent(found.ece), f"lower is better; mean confidence {percent(found.confidence)}"),
        ("Brier score", f"{found.brier:.4f}", "0 to 2; lower is better"),
    ]
    if found.scaled is not None:
        scaled = found.scaled
        moved = f"ECE {percent(scaled.ece_before)} to {percent(scaled.ece_after)}, Brier {change(scaled.brier, '.4f')}"
        confidence = "overconfident" if scaled.temperature > 1 else "underconfident"
        rows.append(
            (
                "temperature",
                f"{scaled.temperature:.3f}",
                f"{confidence}; fitted on {counted(scaled.fitted_on, 'sample')}",
            )
        )
        rows.append(("", "", f"on the other {scaled.measured_on:,}: {moved}"))
    return ["Calibration", *table(rows)]


def _crm(found: Crm) -> list[str]:
    by = {"taxonomy": "expected distance in the taxonomy", "costs": "expected cost"}[found.costs]
    scaled = f"temperature {found.temperature:.3f}, measured on the other half"
    answer = "answer" if found.actions else "class"
    lines = [
        f"Choosing the {answer} of least {by} (CRM), {'unscaled probabilities' if found.temperature == 1 else scaled}"
    ]
    right, wrong = found.became_right, found.became_wrong
    acted = sum(samples for _, samples, _ in found.actions)
    as_actions = f", {acted:,} {_become(acted)} an action" if found.actions else ""
    lines.append(
        f"  {found.changed:,} of {counted(found.samples, 'decision')} {'changes' if found.changed == 1 else 'change'}: "
        f"{right:,} {_become(right)} right, {wrong:,} {_become(wrong)} wrong{as_actions}"
    )
    lines += [
        f"  {counted(samples, 'sample')} ({percent(samples / found.samples)}) {'goes' if samples == 1 else 'go'} to {name!r}; "
        f"the most probable class is wrong for {mistakes:,} of them"
        for name, samples, mistakes in found.actions
    ]
    measured = (
        ("accuracy", found.accuracy),
        ("accuracy of classes", found.accuracy_of_classes),
        ("mistake severity", found.severity),
        ("distance@1", found.distance_at_1),
        ("distance@5", found.distance_at_5),
        ("cost per sample", found.cost),
        ("cost by actions", found.cost_by_actions),
    )
    rows = [(name, change(value, ".4f"), verdict(value)) for name, value in measured if value is not None]
    lines += [*table(rows), "  in parentheses: the change and its 95 % interval, paired over samples"]
    if not found.actions:
        return lines
    notes = ACTION_NOTES if found.severity is None else (*ACTION_NOTES, DISTANCE_NOTE)
    return [*lines, *(f"  {note}" for note in notes)]


def _become(count: int) -> str:
    return "becomes" if count == 1 else "become"


def _fallback(found: Fallback) -> list[str]:
    tree = "the taxonomy" if found.tree == "taxonomy" else "a tree learned from the confusions of the other half"
    rows: list[tuple[str, ...]] = [("goal", "threshold", "correct", "specificity", "class", "ancestor", "no answer")]
    for point in found.points:
        wanted = "always a class" if isnan(point.goal) else f"{100 * point.goal:g} % correct"
        shares = (point.correctness, point.specificity, point.leaf_share, point.above_share, point.unanswered)
        rows.append((wanted, f"{point.threshold:.6g}", *(percent(share) for share in shares)))
    lines = [f"Answering with an ancestor when unsure, in {tree}", *table(rows)]
    scaled = "" if found.temperature == 1 else f" of probabilities at temperature {found.temperature:.3f}"
    lines.append(
        f"  thresholds{scaled}, chosen on one half, measured on the other ({counted(found.measured_on, 'sample')})"
    )
    if found.unreachable:
        lines.append(f"  no threshold reached {', '.join(f'{100 * goal:g} %' for goal in found.unreachable)}")
    return lines


def _structure(found: Structure, audit: Audit) -> list[str]:
    unit = "confusions" if audit.kind == "labels" else "expected confusions"
    lines = ["Tree suggested by the confusions"]
    if not isnan(found.stability):
        lines.append(
            f"  agreement of two halves of the samples: tau {found.stability:.2f} (1: full, 0: the tree is noise)"
        )
    if len(audit.classes) <= DRAWN:
        lines += [f"  {line}" for line in found.tree.show(limit=None).splitlines()]
    else:
        lines.append(f"  a tree of {len(found.tree)} nodes (see --json); pairs that are confused most:")
        lines += _pairs(found.closest, unit)
    if found.agreement is not None:
        ours = found.agreement
        taus = (number(ours.confusions, ".2f"), number(ours.tree, ".2f"))
        lines.append(f"  agreement with the taxonomy: confusions tau {taus[0]}, learned tree tau {taus[1]}")
        for title, pairs in (
            ("far apart in the taxonomy, but often confused:", ours.far_but_confused),
            ("close in the taxonomy, but rarely confused:", ours.near_but_distinct),
        ):
            lines += [f"  {title}", *_pairs(pairs, unit)] if pairs else []
    return lines


def _pairs(pairs: Sequence[Pair], unit: str) -> list[str]:
    rows = [
        (
            f"  {pair.a} and {pair.b}",
            f"{amount(pair.confused, '.3g')} {unit if pair.confused != 1 else unit.removesuffix('s')}",
            "" if isnan(pair.distance) else f"distance {pair.distance:g}",
        )
        for pair in pairs
    ]
    return table(rows)


def _listed(title: str, sentences: Sequence[str]) -> list[list[str]]:
    return [[title, *(f"  {sentence}" for sentence in sentences)]] if sentences else []
