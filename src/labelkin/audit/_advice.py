"""Advise on the decision rule: which one to use, what it saves, and on what evidence."""

from collections.abc import Sequence
from math import isnan, nan

from labelkin._checks import counted
from labelkin.audit._decision_findings import Advice, Crm, Fallback, FallbackPoint, Saving
from labelkin.audit._findings import Difference

FEW = 10  # with fewer changed samples, the normal approximation of the interval is unreliable
MEASURES = {"costs": "cost per sample", "taxonomy": "mean tree distance of the decisions"}
MOST_NAMED = 3  # actions
GOALS = (0.95, 0.99)  # of the sentence on the fallback; the second one if the first is reached without it


def is_significant(difference: Difference) -> bool:
    """Return whether the interval of a change excludes 0 and enough samples changed; False if it is undefined."""
    return difference.differ >= FEW and (difference.low > 0 or difference.high < 0)


def advise(
    found: Sequence[Crm], answers: Fallback | None, *, has_probs: bool, has_costs: bool, of_run: bool = False
) -> Advice:
    """Return the decision rule to use, from the comparison by the given costs or, without costs, by the taxonomy.

    The comparison of calibrated probabilities counts, if there is one: its samples did not choose the temperature. Of a run,
    that of its own probabilities counts, by which `labelkin predict` decides.

    Args:
        found: The effects of least-cost decisions.
        answers: The effect of the fallback.
        has_probs: Whether there are probabilities.
        has_costs: Whether there are costs or a taxonomy.
        of_run: Whether the predictions are those of a run of labelkin, which another command decides with.
    """
    if not has_probs:
        headline = "Save logits or probabilities: predicted labels allow no other decision"
        return Advice("argmax", None, None, 0, 1.0, f"{headline}.", headline)
    if not has_costs:
        headline = "Say what mistakes cost (--costs or --taxonomy)"
        sentence = f"{headline}: while all cost the same, the most probable class is the best decision."
        return Advice(
            "argmax",
            None,
            None,
            0,
            1.0,
            sentence,
            headline,
            fallback=fallback_sentence(answers),
            threshold=_threshold(answers),
        )
    by = "costs" if any(part.costs == "costs" for part in found) else "taxonomy"
    parts = [part for part in found if part.costs == by]
    best = parts[0] if of_run else parts[-1]
    change = best.cost if by == "costs" else best.distance_at_1
    assert change is not None
    better = is_significant(change) and change.change < 0
    known = best.temperature if better else 1.0  # the headline says to fit it
    return Advice(
        "crm" if better else "argmax",
        by,
        change,
        best.samples,
        best.temperature,
        _sentence(best, by, change, better=better, of_run=of_run),
        _headline(best, change, better=better),
        _evidence(best, change),
        best.saved,
        fallback_sentence(answers, known),
        _threshold(answers),
    )


def _headline(best: Crm, change: Difference, *, better: bool) -> str:
    """Return what to do and what it is worth in a few words."""
    if better:
        fit = "" if best.temperature == 1 else f"Fit temperature {best.temperature:.2f} and "
        decide = f"{fit}{'decide' if fit else 'Decide'} by least cost"
        return f"{decide}: a decision costs {_less(best.saved)}{acted(best)}"
    keep = "Keep the most probable class: deciding by least cost"
    if change.differ < FEW:
        changed = f"only {change.differ}" if change.differ else "none"
        return f"{keep} changes the cost of {changed} of {counted(best.samples, 'decision')}"
    if is_significant(change):
        return f"{keep} costs {_less(best.saved)}"
    return f"{keep} is not shown to save anything ({_less(best.saved)})"


def acted(found: Crm) -> str:
    """Return which share of the samples goes to actions: `; 12 % of the samples go to 'review'`; empty if none does."""
    chosen = sorted(((part.samples, repr(part.name)) for part in found.actions if part.samples), reverse=True)
    if len(chosen) > MOST_NAMED:
        rest = chosen[MOST_NAMED - 1 :]
        chosen = [*chosen[: MOST_NAMED - 1], (sum(samples for samples, _ in rest), f"{len(rest)} other actions")]
    shares = [f"{_share(samples, found)} to {name}" for samples, name in chosen]
    return "; " + ", ".join(shares).replace(" % to ", " % of the samples go to ", 1) if shares else ""


def _share(samples: int, found: Crm) -> str:
    share = 100 * samples / found.samples
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"


def _evidence(best: Crm, change: Difference) -> str:
    if change.differ < FEW:
        return ""  # the headline has no interval
    others = "" if best.temperature == 1 else " that did not choose the temperature"
    return f"95 % interval, {counted(best.samples, 'sample')}{others}"


def _less(saved: Saving) -> str:
    """Return a saved share with its interval: `7 % less [2, 12]`, or `4 % more [1, 7]`."""
    sign, word = (1, "less") if saved.share >= 0 else (-1, "more")
    digits = 0 if abs(saved.share) >= 0.03 else 1
    if isnan(saved.low):
        return f"{abs(100 * saved.share):.{digits}f} % {word}; too few samples cost anything for an interval"
    low, high = sorted((sign * saved.low, sign * saved.high))
    ends = ", ".join(f"{round(100 * end, digits) + 0.0:.{digits}f}" for end in (low, high))
    return f"{abs(100 * saved.share):.{digits}f} % {word} [{ends}]"


def fallback_sentence(answers: Fallback | None, known: float = 1.0) -> str:
    """Return what answering with an ancestor gives, for the first goal that is not reached without it.

    Args:
        answers: The effect of the fallback; None gives an empty text.
        known: A temperature that the reader knows already.
    """
    if answers is None:
        return ""
    goal, point = _advised(answers)
    if point is not None:
        return _answered(goal, point, answers, known)
    if not isnan(goal):
        return f"No threshold of the fallback gives {100 * goal:g} % right answers."
    right = answers.points[0].correctness
    return f"{100 * right:.1f} % of the answers are right without naming an ancestor."


def _advised(answers: Fallback) -> tuple[float, FallbackPoint | None]:
    """Return the first goal that is not reached without the fallback, and its point; NaN or None if there is none."""
    points = {point.goal: point for point in answers.points if not isnan(point.goal)}
    goal = next((goal for goal in GOALS if goal in points or goal in answers.unreachable), nan)
    return goal, None if goal in answers.unreachable else points.get(goal)


def _threshold(answers: Fallback | None) -> float | None:
    point = None if answers is None else _advised(answers)[1]
    return None if point is None else point.threshold


def _answered(goal: float, point: FallbackPoint, answers: Fallback, known: float) -> str:
    above = "an ancestor" if answers.tree == "taxonomy" else "a group of confused classes"
    scaled = "" if answers.temperature in (1, known) else f" at temperature {answers.temperature:.2f}"
    classes, groups = round(100 * point.leaf_share), round(100 * point.above_share)
    none = 100 - classes - groups
    shares = [f"{classes} % get a class", f"{groups} % {above}" * (groups > 0), f"{none} % no answer" * (none > 0)]
    return (
        f"For {100 * goal:g} % right answers name {above} below a probability of {point.threshold:g}{scaled}: "
        f"{', '.join(filter(None, shares))} (measured: {100 * point.correctness:.1f} % right)."
    )


def _sentence(best: Crm, by: str, change: Difference, *, better: bool, of_run: bool) -> str:
    measure, samples = MEASURES[by], counted(best.samples, "sample")
    moved = f"from {change.before:.3f} to {change.after:.3f}"
    if best.temperature == 1:
        evidence = f"measured on {samples}, uncalibrated"
    else:
        evidence = f"measured on {samples} that did not choose the temperature"
    if better:
        with_temperature = "" if best.temperature == 1 else f" --temperature {best.temperature:.3f}"
        command = "labelkin predict --decide crm" if of_run else f"labelkin decide --rule crm{with_temperature}"
        command += " --costs FILE" if by == "costs" else ""  # without it, both decide by the tree
        saved = -change.change
        ends = f"95 % interval {-change.high:.3f} to {-change.low:.3f}"
        share = f", {100 * saved / change.before:.0f} %" if change.before else ""
        return (
            f"Decide by the least expected {'cost' if by == 'costs' else 'tree distance'} ({command}): "
            f"the {measure} falls {moved}; this saves {saved:.3f} ({ends}){share}, {evidence}"
            f"{acted(best)}."
        )
    if is_significant(change):
        why = f"raises the {measure} {moved}, so the probabilities do not fit; {evidence}"
    elif change.differ < FEW:
        changed = f"only {change.differ}" if change.differ else "none"
        why = f"changes the cost of {changed} of the decisions, too few to tell; {evidence}"
    else:
        why = f"changes the {measure} {moved}, which is not significant, {evidence}"
    return f"Keep the most probable class: the least expected {'cost' if by == 'costs' else 'tree distance'} {why}."
