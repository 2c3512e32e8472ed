"""Format an audit as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import TYPE_CHECKING

from labelkin.audit._findings import Calibration, Crm, Difference, Fallback, Hierarchy, Pair, Structure, Worst

if TYPE_CHECKING:
    from labelkin.audit._audit import Audit

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


DRAWN = 40  # classes of which a tree is drawn whole
BY = {"costs": "the costs given", "taxonomy": "height in the taxonomy", "times": "how often they happen"}
WORTH: dict[str, tuple[str, ...]] = {"costs": ("cost", "together"), "taxonomy": ("height", "together"), "times": ()}


def as_text(audit: Audit) -> str:
    blocks = [
        _heading(audit),
        _quality(audit),
        _worst(audit.worst),
        *([_calibration(audit.calibration)] if audit.calibration else []),
        *(_crm(found) for found in audit.crm),
        *([_fallback(audit.fallback)] if audit.fallback else []),
        *([_structure(audit.structure, audit)] if audit.structure else []),
        *_listed("Left out", audit.left_out),
        *_listed("Notes", audit.notes),
    ]
    return "\n\n".join("\n".join(block) for block in blocks)


def _heading(audit: Audit) -> list[str]:
    lines = [f"{audit.samples} samples of {len(audit.classes)} classes, read as {audit.kind}, from {audit.source}"]
    return lines if audit.taxonomy is None else [*lines, f"taxonomy: {audit.taxonomy}"]


def _quality(audit: Audit) -> list[str]:
    basics = audit.basics
    low, high = (100 * end for end in basics.accuracy_interval)
    rows = [
        ("accuracy", percent(basics.accuracy), f"95 % interval {low:.1f} to {high:.1f}; {basics.mistakes} mistakes")
    ]
    if not isnan(basics.top5):
        rows.append(("top-5 accuracy", percent(basics.top5), ""))
    if audit.hierarchy is not None:
        rows += _hierarchy(audit.hierarchy)
    if audit.cost is not None:
        low, high = audit.cost.interval
        rows.append(
            ("cost a sample", number(audit.cost.mean), f"95 % interval {low:.3f} to {high:.3f}; lower is better")
        )
    return ["How good", *table(rows)]


def _hierarchy(found: Hierarchy) -> Iterator[tuple[str, str, str]]:
    chance = "" if isnan(found.severity_by_chance) else f"; {found.severity_by_chance:.3f} for mistakes spread evenly"
    yield "mistake severity", number(found.severity), f"height, of mistakes alone, 1 to {found.height}{chance}"
    yield "distance@1", number(found.distance_at_1), "height, of all samples; lower is better"
    if not isnan(found.distance_at_5):
        yield "distance@5", number(found.distance_at_5), "of the five best; above 0 even for a perfect model"
    shares = " / ".join(percent(value) for value in (found.precision, found.recall, found.f1))
    yield "hierarchical P / R / F1", shares, ""
    values = (found.weighted_accuracy, found.weighted_precision, found.weighted_recall, found.weighted_f1)
    yield "weighted A / P / R / F1", " / ".join(percent(value) for value in values), "errors count their distance"


def _worst(found: Worst) -> list[str]:
    if not found.confusions:
        return ["Costliest confusions", "  none"]
    rows: list[tuple[str, ...]] = [("true", "decided", "times", *WORTH[found.by], "share")]
    for true, predicted, times, distance, cost in found.confusions:
        each = () if found.by == "times" else (f"{distance:g}", f"{cost:g}")
        rows.append((true, predicted, str(times), *each, f"{100 * cost / found.total:.1f} %"))
    return [f"Costliest confusions, by {BY[found.by]}", *table(rows)]


def _calibration(found: Calibration) -> list[str]:
    rows = [
        ("ECE", percent(found.ece), f"lower is better; mean confidence {percent(found.confidence)}"),
        ("Brier score", f"{found.brier:.4f}", "0 to 2, lower is better"),
    ]
    if found.scaled is not None:
        scaled = found.scaled
        moved = f"ECE {percent(scaled.ece_before)} to {percent(scaled.ece_after)}, Brier {change(scaled.brier, '.4f')}"
        said = "overconfident" if scaled.temperature > 1 else "underconfident"
        rows.append(("temperature", f"{scaled.temperature:.3f}", f"{said}; fitted on {scaled.fitted_on} samples"))
        rows.append(("", "", f"on the other {scaled.measured_on}: {moved}"))
    return ["Calibration", *table(rows)]


def _crm(found: Crm) -> list[str]:
    by = {"taxonomy": "expected height in the taxonomy", "costs": "expected cost"}[found.costs]
    as_is = found.temperature == 1
    which = "probabilities as they are" if as_is else f"temperature {found.temperature:.3f}, on the half not fitted"
    lines = [f"Deciding by least {by} (CRM), {which}"]
    right, wrong = found.became_right, found.became_wrong
    lines.append(f"  {found.changed} of {found.samples} decisions change: {right} become right, {wrong} become wrong")
    measured = (
        ("accuracy", found.accuracy),
        ("mistake severity", found.severity),
        ("distance@1", found.distance_at_1),
        ("distance@5", found.distance_at_5),
        ("cost a sample", found.cost),
    )
    rows = [(name, change(value, ".4f"), verdict(value)) for name, value in measured if value is not None]
    return [*lines, *table(rows), "  in brackets the change and its 95 % interval over the same samples"]


def _fallback(found: Fallback) -> list[str]:
    tree = "the taxonomy" if found.tree == "taxonomy" else "a tree learned from the confusions of the other half"
    rows: list[tuple[str, ...]] = [("goal", "threshold", "correct", "specificity", "a class named")]
    for goal, threshold, *shares in found.points:
        wanted = "always a class" if isnan(goal) else f"{100 * goal:g} % correct"
        rows.append((wanted, f"{threshold:.6g}", *(percent(share) for share in shares)))
    lines = [f"Naming an ancestor when unsure, in {tree}", *table(rows)]
    lines.append(f"  thresholds chosen on one half, measured on the other {found.measured_on} samples")
    if found.unreachable:
        lines.append(f"  no threshold reached {', '.join(f'{100 * goal:g} %' for goal in found.unreachable)}")
    return lines


def _structure(found: Structure, audit: Audit) -> list[str]:
    unit = "times" if audit.kind == "labels" else "times expected"
    lines = ["The structure that the confusions suggest"]
    if not isnan(found.stability):
        lines.append(f"  two halves of the samples agree on it with tau {found.stability:.2f} (1 wholly, 0 not: noise)")
    if len(audit.classes) <= DRAWN:
        lines += [f"  {line}" for line in found.tree.show(limit=None).splitlines()]
    else:
        lines.append(f"  a tree of {len(found.tree)} nodes, in the JSON output; most confused:")
        lines += _pairs(found.closest, unit)
    if found.agreement is not None:
        ours = found.agreement
        taus = (number(ours.confusions, ".2f"), number(ours.tree, ".2f"))
        lines.append(f"  agreement with the taxonomy: tau {taus[0]}, of the learned tree {taus[1]}")
        for title, pairs in (
            ("far in the taxonomy, yet confused:", ours.far_but_confused),
            ("near in the taxonomy, yet told apart:", ours.near_but_distinct),
        ):
            lines += [f"  {title}", *_pairs(pairs, unit)] if pairs else []
    return lines


def _pairs(pairs: Sequence[Pair], unit: str) -> list[str]:
    rows = [
        (
            f"  {pair.a} and {pair.b}",
            f"{pair.confused:.3g} {unit}",
            "" if isnan(pair.distance) else f"height {pair.distance:g}",
        )
        for pair in pairs
    ]
    return table(rows)


def _listed(title: str, sentences: Sequence[str]) -> list[list[str]]:
    return [[title, *(f"  {sentence}" for sentence in sentences)]] if sentences else []
