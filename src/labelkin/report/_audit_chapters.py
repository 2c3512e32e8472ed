"""The evidence of an audit's page, in four chapters: costs, answers, mistakes and the tree of the confusions."""

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np

from labelkin._checks import counted
from labelkin.analysis import confusion_matrix
from labelkin.audit import Audit, Calibration, Crm, Difference, Fallback, Pair, Structure
from labelkin.report import figures
from labelkin.report._groups import Groups, superclasses
from labelkin.report._mistakes import become, costliest_part, map_panel
from labelkin.report._page_model import NARROW, Chapter, Costliest, Listing, Panel, Table
from labelkin.report.figures._decisions import level_name
from labelkin.structure import Taxonomy

DRAWN = 150  # classes up to which the learned tree is drawn
UNITS = {"costs": "cost", "taxonomy": "distance", "times": ""}
BY = {"costs": "by your costs", "taxonomy": "by distance in the tree"}
NO_PROBABILITIES = "This needs logits or probabilities, not predicted labels."
FEW_SAMPLES = "This needs more samples, to choose on one half of them and measure on the other half."
Parts = tuple[Panel | Listing | Costliest, ...]


def chapters(audit: Audit) -> tuple[Chapter, ...]:
    """Return the chapters of the page of an audit."""
    tree = _tree(audit).reorder(audit.classes)
    groups = superclasses(tree, named=audit.tree is not None)
    return (
        Chapter("costs", "Costs", "What decisions cost", (*_costs(audit), _calibration(audit))),
        Chapter("answers", "Answers", "When to answer, and how precisely", _answers(audit)),
        Chapter("mistakes", "Mistakes", "Which mistakes cost most", _mistakes(audit, tree, groups)),
        Chapter("tree", "Tree", "The tree that the confusions suggest", _structure(audit, groups)),
    )


def _tree(audit: Audit) -> Taxonomy:
    if audit.tree is not None:
        return audit.tree
    return Taxonomy.from_nested(list(audit.classes)) if audit.structure is None else audit.structure.tree


# Costs and calibration.


def _costs(audit: Audit) -> Parts:
    title = "Cost before and after"
    if not audit.crm:
        why = NO_PROBABILITIES if audit.predictions.prob_rows is None else audit.advice.sentence
        return (Panel("cost", title, "", missing=why),)
    by = {name: [part for part in audit.crm if part.costs == name] for name in ("costs", "taxonomy")}
    views = {BY[name]: figures.cost_change(parts) for name, parts in by.items() if parts}
    panel = Panel(
        "cost",
        title,
        "From the most probable class (open) to the answer of least expected cost (filled), with the 95 % interval of the "
        "change, paired over samples. The temperature is fitted on one half of the samples and measured on the other half.",
        views,
        _cost_table(audit.crm),
        views="Cost",
    )
    best = [part for part in audit.crm if part.costs == audit.advice.by][-1]
    return (panel, _decisions(best), *([_actions(best)] if best.actions else []))


def _cost_table(found: Sequence[Crm]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for part in found:
        change = part.cost if part.costs == "costs" else part.distance_at_1
        assert change is not None
        numbers = (change.before, change.after, change.change, change.low, change.high, part.saved.share)
        rows.append(
            (BY[part.costs], _rounded(part.temperature), part.samples, part.changed, *(_rounded(n) for n in numbers))
        )
    columns = (
        "cost",
        "temperature",
        "samples",
        "changed decisions",
        "before",
        "after",
        "change",
        "low",
        "high",
        "saved",
    )
    return Table(columns, rows)


def _decisions(best: Crm) -> Listing:
    scaled = (
        "unscaled probabilities" if best.temperature == 1 else f"probabilities at temperature {best.temperature:.2f}"
    )
    note = (
        f"Deciding by least cost, {BY[best.costs]}, with {scaled}: {best.changed:,} of "
        f"{counted(best.samples, 'decision')} {'changes' if best.changed == 1 else 'change'}; "
        f"{_became(best)}. Intervals are paired over samples."
    )
    measured: dict[str, Difference | None] = {
        "cost": best.cost,
        "cost, from classes alone to all answers": best.cost_by_actions,
        "distance, mistakes only (severity)": best.severity,
        "distance, samples that get a class" if best.actions else "distance, all decisions": best.distance_at_1,
        "distance, five best classes": best.distance_at_5,
        "accuracy, an action is no right answer" if best.actions else "accuracy": best.accuracy,
        "accuracy, samples that get a class": best.accuracy_of_classes,
    }
    rows: list[tuple[Any, ...]] = [(name, *_change(change)) for name, change in measured.items() if change is not None]
    return Listing(
        "Before and after", note, Table(("mean", "before", "after", "95 % of change"), rows), numbers=True, wide=False
    )


def _became(found: Crm) -> str:
    """Return what the changed decisions become: `3 become right and 1 becomes wrong`."""
    counts = [(found.became_right, "right"), (found.became_wrong, "wrong")]
    if found.actions:
        counts.append((sum(samples for _, samples, _ in found.actions), "an action"))
    *parts, last = (f"{count:,} {become(count)} {what}" for count, what in counts)
    return f"{', '.join(parts)} and {last}"


def _actions(best: Crm) -> Listing:
    rows = [
        (name, f"{samples:,}", f"{100 * samples / best.samples:.1f} %", f"{mistakes:,}")
        for name, samples, mistakes in best.actions
    ]
    note = "How many samples go to each answer that is not a class, and for how many of these the most probable class is wrong."
    return Listing(
        "Actions", note, Table(("action", "samples", "share", "wrong otherwise"), rows), numbers=True, wide=False
    )


def _change(change: Difference) -> tuple[str | None, ...]:
    ends = None if isnan(change.low) else f"{change.low + 0.0:+.3f} to {change.high + 0.0:+.3f}"
    return (*(None if isnan(value) else f"{value:.3f}" for value in (change.before, change.after)), ends)


def _calibration(audit: Audit) -> Panel:
    title, found = "Reliability of the probabilities", audit.calibration
    if found is None:
        return Panel("calibration", title, "", missing=NO_PROBABILITIES, wide=not audit.crm)
    below = "Below the dashed line the model is overconfident."
    if found.scaled is None:
        note = f"Expected calibration error: {100 * found.ece:.2f} %. {below}"
        return Panel(
            "calibration", title, note, {"": figures.calibration(found.reliability)}, _reliability_table(found)
        )
    scaled = found.scaled
    note = (
        f"Temperature {scaled.temperature:.2f}, fitted on {counted(scaled.fitted_on, 'sample')}, changes the "
        f"expected calibration error "
        f"of the other {scaled.measured_on:,} from {100 * scaled.ece_before:.2f} % to {100 * scaled.ece_after:.2f} %. {below}"
    )
    figure = figures.calibration(scaled.before, scaled.after)
    return Panel("calibration", title, note, {"": figure}, _reliability_table(found), wide=bool(audit.crm))


def _reliability_table(found: Calibration) -> Table:
    diagrams = (
        {"all samples": found.reliability}
        if found.scaled is None
        else {"before scaling": found.scaled.before, "after scaling": found.scaled.after}
    )
    rows: list[tuple[Any, ...]] = [
        (name, _rounded(confidence), _rounded(accuracy), samples)
        for name, diagram in diagrams.items()
        for samples, confidence, accuracy in zip(*diagram, strict=True)
        if samples
    ]
    return Table(("probabilities", "confidence", "accuracy", "samples"), rows)


# Answers.


def _answers(audit: Audit) -> Parts:
    titles = ("Risk and coverage", "Naming an ancestor when unsure")
    found = audit.fallback
    if found is None:
        why = NO_PROBABILITIES if audit.predictions.prob_rows is None else FEW_SAMPLES
        return (Panel("risk", titles[0], "", missing=why, wide=True),)
    learned = "" if found.tree == "taxonomy" else " The tree is learned from the confusions of the other half."
    note = (
        "If only the most confident samples are answered, fewer answers are wrong; groups of the tree are wrong less often "
        f"than classes. Measured on {counted(found.measured_on, 'sample')}.{learned}"
    )
    risk = Panel("risk", titles[0], note, {"": figures.risk_coverage(found.levels)}, _risk_table(found))
    return (risk, _fallback(found, titles[1]))


def _risk_table(found: Fallback) -> Table:
    rows: list[tuple[Any, ...]] = [
        (level_name(level), _rounded(coverage), _rounded(risk))
        for level in found.levels
        for coverage, risk in list(zip(level.coverage, level.risk, strict=True))[4::5]
    ]
    return Table(("answers", "answered", "wrong"), rows)


def _fallback(found: Fallback, title: str) -> Listing:
    scaled = "" if found.temperature == 1 else f" of probabilities at temperature {found.temperature:.3f}"
    note = (
        "From the root, the answer follows the most probable branch while its probability reaches the threshold. "
        f"Thresholds{scaled} are the lowest that reach the goal on one half of the samples; the shares are those of the other "
        "half."
    )
    if found.unreachable:
        goals = ", ".join(f"{100 * goal:g} %" for goal in found.unreachable)
        note += f" No threshold reaches {goals}."
    rows: list[tuple[Any, ...]] = []
    for point in found.points:
        goal = "always a class" if isnan(point.goal) else f"{100 * point.goal:g} % right"
        shares = (point.correctness, point.leaf_share, point.above_share, point.unanswered)
        rows.append((goal, f"{point.threshold:.4g}", *(f"{100 * share:.1f}" for share in shares)))
    columns = ("goal", "threshold", "right %", "class %", "ancestor %", "none %")
    return Listing(title, note, Table(columns, rows), numbers=True, wide=False)


# Mistakes and structure.


def _mistakes(audit: Audit, tree: Taxonomy, groups: Groups | None) -> Parts:
    true, predicted, times = audit.predictions.pairs
    confusions = confusion_matrix(predicted, true, taxonomy=tree, times=times)
    wide = len(audit.classes) > NARROW
    return (
        costliest_part(audit.worst, unit=UNITS[audit.worst.by], wide=wide),
        map_panel(confusions, groups, "Map of the confusions"),
    )


def _structure(audit: Audit, groups: Groups | None) -> Parts:
    found = audit.structure
    if found is None:
        (why,) = (sentence for sentence in audit.left_out if sentence.startswith("The learned tree needs"))
        return (Panel("learned", "Learned tree", "", missing=why, wide=True),)
    return (_learned(audit, found, groups), *_pairs(audit, found))


def _learned(audit: Audit, found: Structure, groups: Groups | None) -> Panel:
    note = "Classes that are often confused are close."
    if not isnan(found.stability):
        note += f" Trees of two halves of the samples agree with tau {found.stability:.2f} (1: fully, 0: the tree is noise)."
    if len(audit.classes) > DRAWN:
        why = f"The tree is drawn for at most {DRAWN} classes; `labelkin audit --json` has it as Newick text."
        return Panel("learned", "Learned tree", note, missing=why, wide=True)
    merges = np.array(found.linkage)
    if audit.tree is None:
        return Panel("learned", "Learned tree", note, {"": figures.learned_tree(merges, audit.classes)}, wide=True)
    if found.agreement is not None and not isnan(found.agreement.tree):
        note += f" The learned tree agrees with the taxonomy with tau {found.agreement.tree:.2f}."
    figure = figures.tree_comparison(audit.tree, merges, audit.classes, groups)
    return Panel(
        "learned",
        "Taxonomy and learned tree",
        f"{note} The fewer lines cross, the better they agree.",
        {"": figure},
        wide=True,
    )


def _pairs(audit: Audit, found: Structure) -> tuple[Listing, ...]:
    kinds = {"The pairs that are confused most": found.closest}
    if found.agreement is not None:
        kinds = {
            "Far apart in the taxonomy, but often confused": found.agreement.far_but_confused,
            "Close in the taxonomy, but rarely confused": found.agreement.near_but_distinct,
        }
    unit = "confusions" if audit.kind == "labels" else "expected confusions"
    return tuple(
        Listing(title, "", _pair_table(pairs, unit), numbers=True, wide=False)
        for title, pairs in kinds.items()
        if pairs
    )


def _pair_table(pairs: Sequence[Pair], unit: str) -> Table:
    known = not isnan(pairs[0].distance)
    rows: list[tuple[Any, ...]] = []
    for pair in pairs:
        confused = f"{pair.confused:,.0f}" if pair.confused >= 1000 else f"{pair.confused:.3g}"
        rows.append((f"{pair.a} and {pair.b}", confused, *([f"{pair.distance:g}"] if known else [])))
    return Table(("classes", unit, *(["distance"] if known else [])), rows)


def _rounded(value: float) -> float | None:
    return None if isnan(value) else round(value, 4)
