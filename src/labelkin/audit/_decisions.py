"""Calibration, least-cost decisions and fallback; values are fitted on one half of the samples and measured on the other."""

import warnings
from math import nan
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin import metrics
from labelkin.audit._decision_findings import Crm, Fallback, FallbackPoint
from labelkin.audit._findings import Calibrated, Calibration, Difference, Reliability
from labelkin.audit._measures import BEST
from labelkin.audit._predictions import Predictions
from labelkin.audit._risk import level_risks
from labelkin.audit._statistics import mean_difference, ratio_difference, saving
from labelkin.decide import (
    Decided,
    Halves,
    OperatingCurve,
    Rules,
    Temperature,
    compare_rules,
    node_probs,
    operating_curve,
)
from labelkin.structure import Taxonomy

GOALS = (0.9, 0.95, 0.99)
BELOW_ONE = (5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 1e-5, 1e-6)  # a good model's probabilities are mostly this close to 1
THRESHOLDS = torch.tensor([k / 100 for k in range(100)] + [1 - gap for gap in BELOW_ONE] + [1.0], dtype=torch.float64)


class Scaling(NamedTuple):
    """A fitted temperature.

    Attributes:
        temperature: The temperature.
        probs: (m, K) scaled probabilities of the measured half.
        note: The warning of the fit, if there was one.
    """

    temperature: float
    probs: Tensor
    note: str | None


def fit_temperature(given: Predictions, halves: Halves) -> Scaling:
    """Fit a temperature on one half of the samples and apply it to the other half."""
    assert given.logits is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scale = Temperature().fit(given.logits[halves.fitted], given.target[halves.fitted])
    assert scale.value is not None
    probs = scale.apply(given.logits[halves.measured]).softmax(-1)
    return Scaling(scale.value, probs, str(caught[0].message) if caught else None)


def calibration(given: Predictions, halves: Halves | None, scaling: Scaling | None) -> Calibration:
    """Return the calibration of all samples, and the effect of the fitted temperature on the measured half."""
    assert given.probs is not None
    found = metrics.expected_calibration_error(given.probs, given.target)
    return Calibration(
        found.error,
        metrics.brier_score(given.probs, given.target).mean,
        float(given.probs.amax(-1).mean()),
        _reliability(found),
        None if halves is None or scaling is None else _scaled(given, halves, scaling),
    )


def _scaled(given: Predictions, halves: Halves, scaling: Scaling) -> Calibrated:
    assert given.probs is not None
    before, target = given.probs[halves.measured], given.target[halves.measured]
    found = [metrics.expected_calibration_error(probs, target) for probs in (before, scaling.probs)]
    briers = [metrics.brier_score(probs, target).values for probs in (before, scaling.probs)]
    counts, errors = (len(halves.fitted), len(halves.measured)), (found[0].error, found[1].error)
    diagrams = (_reliability(found[0]), _reliability(found[1]))
    return Calibrated(scaling.temperature, *counts, *errors, mean_difference(*briers), *diagrams)


def _reliability(found: metrics.Calibration) -> Reliability:
    bins = (found.samples.tolist(), found.confidence.tolist(), found.accuracy.tolist())
    return Reliability(*(tuple(part) for part in bins))


def crm(probs: Tensor, target: Tensor, tree: Taxonomy | None, costs: Tensor | None, *, temperature: float) -> Crm:
    """Compare the class of least expected cost with the most probable class.

    Args:
        probs: (n, K) probabilities.
        target: (n,) class positions.
        tree: The taxonomy, for distances and, without `costs`, as the costs.
        costs: (K, K) costs, or None for heights in the tree.
        temperature: The temperature of `probs`.
    """
    found = compare_rules(probs, target, tree, costs=costs, k=min(BEST, probs.shape[1]))
    before, after = found.before, found.after
    return Crm(
        costs="taxonomy" if costs is None else "costs",
        temperature=temperature,
        samples=len(target),
        changed=int((before.answer != after.answer).sum()),
        became_right=int((after.right & ~before.right).sum()),
        became_wrong=int((before.right & ~after.right).sum()),
        accuracy=mean_difference(before.right, after.right),
        cost=None if before.costs is None or after.costs is None else mean_difference(before.costs, after.costs),
        saved=saving(_spent(before), _spent(after)),
        **_on_tree(found),
    )


def _spent(decided: Decided) -> Tensor:
    """Return (n,) what the decisions cost: by the costs, or by the tree if there are none."""
    if decided.costs is not None:
        return decided.costs
    assert decided.distances is not None
    return decided.distances[:, 0]


def _on_tree(found: Rules) -> dict[str, Difference | None]:
    before, after = found.before.distances, found.after.distances
    if before is None or after is None:
        return {"severity": None, "distance_at_1": None, "distance_at_5": None}
    wrong = [(far[:, 0], far[:, 0] > 0) for far in (before, after)]
    return {
        "severity": ratio_difference(*wrong),
        "distance_at_1": mean_difference(before[:, 0], after[:, 0]),
        "distance_at_5": mean_difference(before.mean(-1), after.mean(-1)) if before.shape[1] == BEST else None,
    }


def fallback(
    given: Predictions, halves: Halves, scaling: Scaling | None, tree: Taxonomy, *, tree_source: str
) -> Fallback:
    """Choose the lowest threshold that reaches each goal on one half, and measure it on the other half.

    Goals that are reached without a fallback get no threshold. Thresholds apply to calibrated probabilities, unless the fit of
    the temperature gave a warning; it was fitted on the half that chooses.
    """
    assert given.logits is not None
    assert given.probs is not None
    temperature = 1.0 if scaling is None or scaling.note is not None else scaling.temperature
    probs = given.probs if temperature == 1 else (given.logits / temperature).softmax(-1)
    chosen, measured = (
        operating_curve(node_probs(probs[half], tree), given.target[half], tree, THRESHOLDS) for half in halves
    )
    always_a_class, *_ = points = _points(measured)
    least = {goal: _lowest(chosen, goal) for goal in GOALS if goal > float(chosen.correctness[0])}
    reached = [points[at]._replace(goal=goal) for goal, at in least.items() if at is not None]
    missed = tuple(goal for goal, at in least.items() if at is None)
    levels = level_risks(probs[halves.measured], given.target[halves.measured], tree)
    return Fallback(tree_source, len(halves.measured), (always_a_class, *reached), points, missed, temperature, levels)


def _points(curve: OperatingCurve) -> tuple[FallbackPoint, ...]:
    shares = (curve.threshold, curve.correctness, curve.specificity, curve.leaf_share, curve.unanswered)
    return tuple(FallbackPoint(nan, *row) for row in torch.stack(shares, dim=1).tolist())


def _lowest(curve: OperatingCurve, goal: float) -> int | None:
    reached = (curve.correctness >= goal).nonzero().flatten()
    return int(reached[0]) if len(reached) else None
