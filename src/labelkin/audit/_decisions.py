"""Calibration, least-cost decisions and fallback; values are fitted on one half of the samples and measured on the other."""

import warnings
from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin import metrics
from labelkin.audit._columns import Column, Halves
from labelkin.audit._decision_findings import ActionCount, Crm, Fallback, FallbackPoint
from labelkin.audit._expected_moments import expected_moments
from labelkin.audit._findings import Calibrated, Calibration, Reliability
from labelkin.audit._measures import BEST
from labelkin.audit._paired import Paired
from labelkin.audit._predictions import Predictions
from labelkin.audit._risk import level_risks
from labelkin.audit._scores import Scores
from labelkin.decide import (
    Decided,
    OperatingCurve,
    Temperature,
    compare_rules,
    least_cost,
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
    probs: Scores
    note: str | None


def fit_temperature(given: Predictions, halves: Halves) -> Scaling:
    """Fit a temperature on one half of the samples and apply it to the other half."""
    assert given.logit_rows is not None
    fitted, target = given.logit_rows.take(halves.fitted), given.true.take(halves.fitted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")  # other libraries, and files that they did not close, say nothing about the fit
        warnings.simplefilter("always", UserWarning)
        scale = Temperature().fit_blocks(lambda: ((block, target[place]) for place, block in fitted.blocks()))
    assert scale.value is not None
    probs = given.logit_rows.take(halves.measured).map(lambda block: scale.apply(block).softmax(-1))
    return Scaling(scale.value, probs, str(caught[0].message) if caught else None)


def calibration(given: Predictions, halves: Halves | None, scaling: Scaling | None) -> Calibration:
    """Return the calibration of all samples, and the effect of the fitted temperature on the measured half."""
    assert given.prob_rows is not None
    parts, briers, confidence = [], 0.0, 0.0
    for block, true in given.prob_rows.beside(given.true):
        parts.append(metrics.expected_calibration_error(block, true))
        briers += float(metrics.brier_score(block, true).values.sum())
        confidence += float(block.amax(-1).sum())
    found, count = _joined(parts), len(given.true)
    return Calibration(
        found.error,
        briers / count,
        confidence / count,
        _reliability(found),
        None if halves is None or scaling is None else _scaled(given, halves, scaling),
    )


def _scaled(given: Predictions, halves: Halves, scaling: Scaling) -> Calibrated:
    assert given.prob_rows is not None
    scaled = (block for _, block in scaling.probs.blocks())
    parts, briers = [], Paired()
    unscaled = given.prob_rows.take(halves.measured).beside(given.true.take(halves.measured))
    for (block, true), after in zip(unscaled, scaled, strict=True):
        parts.append([metrics.expected_calibration_error(probs, true) for probs in (block, after)])
        briers.add(*(metrics.brier_score(probs, true).values for probs in (block, after)))
    before, after_scaling = (_joined(found) for found in zip(*parts, strict=True))
    counts, errors = (len(halves.fitted), len(halves.measured)), (before.error, after_scaling.error)
    diagrams = (_reliability(before), _reliability(after_scaling))
    return Calibrated(scaling.temperature, *counts, *errors, briers.difference(), *diagrams)


def _joined(parts: Sequence[metrics.Calibration]) -> metrics.Calibration:
    """Return the calibration of all samples from that of disjoint parts of them."""
    if len(parts) == 1:
        return parts[0]
    samples = torch.stack([part.samples for part in parts])
    total = samples.sum(0)
    confidence, accuracy = (
        (torch.stack([getattr(part, name) for part in parts]).nan_to_num() * samples).sum(0) / total
        for name in ("confidence", "accuracy")
    )
    apart = (confidence - accuracy).abs()
    return metrics.Calibration(
        float((apart.nan_to_num() * total).sum() / total.sum()), apart, total, confidence, accuracy
    )


def _reliability(found: metrics.Calibration) -> Reliability:
    bins = (found.samples.tolist(), found.confidence.tolist(), found.accuracy.tolist())
    return Reliability(*(tuple(part) for part in bins))


def crm(
    probs: Scores,
    target: Column,
    tree: Taxonomy | None,
    costs: Tensor | None,
    *,
    temperature: float,
    actions: Sequence[str] = (),
) -> Crm:
    """Compare the answer of least expected cost with the most probable class.

    Args:
        probs: (n, K) probabilities.
        target: (n,) class positions.
        tree: The taxonomy, for distances and, without `costs`, as the costs.
        costs: (K, A) costs, or None for heights in the tree.
        temperature: The temperature of `probs`.
        actions: The names of the answers from K on.
    """
    classes = probs.shape[1]
    best = min(BEST, classes)
    changed = became_right = became_wrong = 0
    accuracy, of_classes, paid, by_actions, severity, at_1, at_5 = (Paired() for _ in range(7))
    chosen, mistakes = (torch.zeros(classes + len(actions), dtype=torch.int64) for _ in range(2))
    for block, true in probs.beside(target):
        before, after = (found := compare_rules(block, true, tree, costs=costs, k=best)).before, found.after
        named, every = after.answer < classes, torch.ones_like(after.right)
        changed += int((before.answer != after.answer).sum())
        became_right += int((after.right & ~before.right).sum())
        became_wrong += int((before.right & ~after.right & named).sum())
        accuracy.add(before.right, after.right)
        moments = expected_moments(block, before.answer, after.answer, tree, costs)
        paid.add(_paid(before), _paid(after), expected=moments)
        if actions and costs is not None:
            chosen += after.answer.bincount(minlength=len(chosen))
            mistakes += after.answer[~before.right].bincount(minlength=len(chosen))
            of_classes.add(before.right, after.right, every, named)
            alone = least_cost(block, costs, allowed=range(classes))
            moments_alone = expected_moments(block, alone, after.answer, tree, costs)
            by_actions.add(costs[true, alone], _paid(after), expected=moments_alone)
        if before.distances is not None and after.distances is not None:
            far, far_after = before.distances[:, 0], after.distances[:, 0].nan_to_num(0.0)
            severity.add(far, far_after, far > 0, far_after > 0)
            at_1.add(far, far_after, every, named, expected=moments if costs is None else None)
            at_5.add(before.distances.double().mean(-1), after.distances.double().mean(-1))
    return Crm(
        costs="taxonomy" if costs is None else "costs",
        temperature=temperature,
        samples=len(target),
        changed=changed,
        became_right=became_right,
        became_wrong=became_wrong,
        accuracy=accuracy.difference(),
        cost=None if costs is None else paid.difference(),
        saved=paid.saving(),
        severity=None if tree is None else severity.difference(),
        distance_at_1=None if tree is None else at_1.difference(),
        distance_at_5=None if tree is None or best < BEST or actions else at_5.difference(),
        actions=tuple(
            map(ActionCount, actions, chosen[classes:].tolist(), mistakes[classes:].tolist()),
        ),
        accuracy_of_classes=of_classes.difference() if actions else None,
        cost_by_actions=by_actions.difference() if actions else None,
    )


def _paid(decided: Decided) -> Tensor:
    """Return the costs of the answers (n,): by the costs, or by the tree without costs."""
    if decided.costs is not None:
        return decided.costs
    assert decided.distances is not None
    return decided.distances[:, 0]


def fallback(
    given: Predictions, halves: Halves, scaling: Scaling | None, tree: Taxonomy, *, tree_source: str
) -> Fallback:
    """Choose the lowest threshold that reaches each goal on one half, and measure it on the other half.

    Goals that are reached without a fallback get no threshold. Thresholds apply to calibrated probabilities, unless the fit of
    the temperature gave a warning; it was fitted on the half that chooses.
    """
    assert given.logit_rows is not None
    assert given.prob_rows is not None
    temperature = 1.0 if scaling is None or scaling.note is not None else scaling.temperature
    rows, logits = given.prob_rows, given.logit_rows
    fitted, probs = (rows.take(half) for half in halves)
    if temperature != 1:
        fitted, probs = (logits.take(half).map(lambda block: (block / temperature).softmax(-1)) for half in halves)
    chosen, measured = (
        _curve(part, given.true.take(half), tree) for part, half in zip((fitted, probs), halves, strict=True)
    )
    always_a_class, *_ = points = _points(measured)
    least = {goal: _lowest(chosen, goal) for goal in GOALS if goal > float(chosen.correctness[0])}
    reached = [points[at]._replace(goal=goal) for goal, at in least.items() if at is not None]
    missed = tuple(goal for goal, at in least.items() if at is None)
    levels = level_risks(probs, given.true.take(halves.measured), tree)
    return Fallback(tree_source, len(halves.measured), (always_a_class, *reached), points, missed, temperature, levels)


def _curve(probs: Scores, target: Column, tree: Taxonomy) -> OperatingCurve:
    """Return the operating curve of the fallback; its points are means over samples."""

    def points(block: Tensor, true: Tensor) -> Tensor:
        return torch.stack(operating_curve(node_probs(block, tree), true, tree, THRESHOLDS)[1:])

    specificity, *shares = probs.mean(points, target)
    exact = ((share * len(probs)).round() / len(probs) for share in shares)  # means of blocks may add up to .8999
    return OperatingCurve(THRESHOLDS, specificity, *exact)


def _points(curve: OperatingCurve) -> tuple[FallbackPoint, ...]:
    shares = (curve.threshold, curve.correctness, curve.specificity, curve.leaf_share, curve.unanswered)
    return tuple(FallbackPoint(nan, *row) for row in torch.stack(shares, dim=1).tolist())


def _lowest(curve: OperatingCurve, goal: float) -> int | None:
    reached = (curve.correctness >= goal).nonzero().flatten()
    return int(reached[0]) if len(reached) else None
