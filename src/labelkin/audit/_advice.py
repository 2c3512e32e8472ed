"""Advise on the decision rule: which one to use, what it saves, and on what evidence."""

from collections.abc import Sequence

from labelkin._checks import counted
from labelkin.audit._findings import Advice, Crm, Difference

FEW = 10  # with fewer changed samples, the normal approximation of the interval is unreliable
MEASURES = {"costs": "cost per sample", "taxonomy": "mean height of the decisions"}


def is_significant(difference: Difference) -> bool:
    """Return whether the interval of a change excludes 0 and enough samples changed; False if it is undefined."""
    return difference.differ >= FEW and (difference.low > 0 or difference.high < 0)


def advise(found: Sequence[Crm], *, has_probs: bool, has_costs: bool) -> Advice:
    """Return the decision rule to use, from the comparison by the given costs or, without costs, by the taxonomy.

    The comparison of calibrated probabilities counts, if there is one: its samples did not choose the temperature.

    Args:
        found: The effects of least-cost decisions.
        has_probs: Whether there are probabilities.
        has_costs: Whether there are costs or a taxonomy.
    """
    if not has_probs:
        return Advice(
            "argmax", None, None, 0, 1.0, "Save logits or probabilities: predicted labels allow no other decision."
        )
    if not has_costs:
        return Advice(
            "argmax",
            None,
            None,
            0,
            1.0,
            "Say what mistakes cost (--costs or --taxonomy): while all cost the same, the most probable class is the best "
            "decision.",
        )
    by = "costs" if any(part.costs == "costs" for part in found) else "taxonomy"
    *_, best = (part for part in found if part.costs == by)
    change = best.cost if by == "costs" else best.distance_at_1
    assert change is not None
    better = is_significant(change) and change.change < 0
    return Advice(
        "crm" if better else "argmax",
        by,
        change,
        best.samples,
        best.temperature,
        _sentence(best, by, change, better=better),
    )


def _sentence(best: Crm, by: str, change: Difference, *, better: bool) -> str:
    measure, samples = MEASURES[by], counted(best.samples, "sample")
    moved = f"from {change.before:.3f} to {change.after:.3f}"
    if best.temperature == 1:
        evidence = f"measured on {samples}, uncalibrated"
    else:
        evidence = f"measured on {samples} that did not choose the temperature"
    if better:
        with_temperature = "" if best.temperature == 1 else f" --temperature {best.temperature:.3f}"
        saved = -change.change
        ends = f"95 % interval {-change.high:.3f} to {-change.low:.3f}"
        share = f", {100 * saved / change.before:.0f} %" if change.before else ""
        return (
            f"Decide by the least expected {'cost' if by == 'costs' else 'height'} (labelkin decide --rule crm"
            f"{with_temperature}): the {measure} falls {moved}; this saves {saved:.3f}{share} ({ends}), {evidence}."
        )
    if is_significant(change):
        why = f"raises the {measure} {moved}, so the probabilities do not fit; {evidence}"
    elif change.differ < FEW:
        changed = f"only {change.differ}" if change.differ else "none"
        why = f"changes the cost of {changed} of the decisions, too few to tell; {evidence}"
    else:
        why = f"changes the {measure} {moved}, which is not significant, {evidence}"
    return f"Keep the most probable class: the least expected {'cost' if by == 'costs' else 'height'} {why}."
