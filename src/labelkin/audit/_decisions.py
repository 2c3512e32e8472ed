"""Calibration, least-cost decisions and fallback; values are fitted on one half of the samples and measured on the other."""

import warnings
from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin import metrics
from labelkin.audit._decision_findings import Crm, Fallback, FallbackPoint
from labelkin.audit._findings import Calibrated, Calibration, Reliability
from labelkin.audit._measures import BEST, mean_difference, ratio_difference, saving
from labelkin.audit._predictions import Predictions
from labelkin.audit._risk import level_risks
from labelkin.audit._scores import Scores
from labelkin.decide import (
    Decided,
    Halves,
    OperatingCurve,
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
    probs: Scores
    note: str | None


def fit_temperature(given: Predictions, halves: Halves) -> Scaling:
    """Fit a temperature on one half of the samples and apply it to the other half."""
    assert given.logit_rows is not None
    fitted, target = given.logit_rows.take(halves.fitted), given.target[halves.fitted]
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
    found = _quality(given.prob_rows, given.target)
    return Calibration(
        found.calibration.error,
        float(found.briers.mean()),
        float(found.confidence.mean()),
        _reliability(found.calibration),
        None if halves is None or scaling is None else _scaled(given, halves, scaling),
    )


def _scaled(given: Predictions, halves: Halves, scaling: Scaling) -> Calibrated:
    assert given.prob_rows is not None
    target = given.target[halves.measured]
    before, after = (_quality(probs, target) for probs in (given.prob_rows.take(halves.measured), scaling.probs))
    counts, errors = (len(halves.fitted), len(halves.measured)), (before.calibration.error, after.calibration.error)
    diagrams = (_reliability(before.calibration), _reliability(after.calibration))
    return Calibrated(scaling.temperature, *counts, *errors, mean_difference(before.briers, after.briers), *diagrams)


class _Quality(NamedTuple):
    """The quality of probabilities: their calibration, and the Brier score and largest probability of each sample (n,)."""

    calibration: metrics.Calibration
    briers: Tensor
    confidence: Tensor


def _quality(probs: Scores, target: Tensor) -> _Quality:
    parts: list[metrics.Calibration] = []

    def measured(block: Tensor, true: Tensor) -> tuple[Tensor, Tensor]:
        parts.append(metrics.expected_calibration_error(block, true))
        return metrics.brier_score(block, true).values, block.amax(-1)

    briers, confidence = probs.each(measured, target)
    return _Quality(_joined(parts), briers, confidence)


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


class _Outcome(NamedTuple):
    """The decisions of a rule and their outcomes, one entry per sample (n,).

    Attributes:
        answer: The classes.
        right: Whether they are the true ones.
        far: Their distance from the true class in the tree.
        far_at_5: The mean distance of the five best classes.
        paid: Their cost by the costs, or by the tree without costs.
    """

    answer: Tensor
    right: Tensor
    far: Tensor
    far_at_5: Tensor
    paid: Tensor


def crm(probs: Scores, target: Tensor, tree: Taxonomy | None, costs: Tensor | None, *, temperature: float) -> Crm:
    """Compare the class of least expected cost with the most probable class.

    Args:
        probs: (n, K) probabilities.
        target: (n,) class positions.
        tree: The taxonomy, for distances and, without `costs`, as the costs.
        costs: (K, K) costs, or None for heights in the tree.
        temperature: The temperature of `probs`.
    """
    best = min(BEST, probs.shape[1])

    def outcomes(block: Tensor, true: Tensor) -> tuple[Tensor, ...]:
        found = compare_rules(block, true, tree, costs=costs, k=best)
        return (*_outcome(found.before), *_outcome(found.after))

    found = probs.each(outcomes, target)
    before, after = _Outcome(*found[: len(found) // 2]), _Outcome(*found[len(found) // 2 :])
    wrong = [(rule.far, rule.far > 0) for rule in (before, after)]
    return Crm(
        costs="taxonomy" if costs is None else "costs",
        temperature=temperature,
        samples=len(target),
        changed=int((before.answer != after.answer).sum()),
        became_right=int((after.right & ~before.right).sum()),
        became_wrong=int((before.right & ~after.right).sum()),
        accuracy=mean_difference(before.right, after.right),
        cost=None if costs is None else mean_difference(before.paid, after.paid),
        saved=saving(before.paid, after.paid),
        severity=None if tree is None else ratio_difference(*wrong),
        distance_at_1=None if tree is None else mean_difference(before.far, after.far),
        distance_at_5=None if tree is None or best < BEST else mean_difference(before.far_at_5, after.far_at_5),
    )


def _outcome(decided: Decided) -> _Outcome:
    far = decided.distances
    if far is None:
        far = torch.full_like(decided.classes, nan, dtype=torch.float64)
    paid = far[:, 0] if decided.costs is None else decided.costs
    return _Outcome(decided.answer, decided.right, far[:, 0], far.double().mean(-1), paid)


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
        _curve(part, given.target[half], tree) for part, half in zip((fitted, probs), halves, strict=True)
    )
    always_a_class, *_ = points = _points(measured)
    least = {goal: _lowest(chosen, goal) for goal in GOALS if goal > float(chosen.correctness[0])}
    reached = [points[at]._replace(goal=goal) for goal, at in least.items() if at is not None]
    missed = tuple(goal for goal, at in least.items() if at is None)
    levels = level_risks(probs, given.target[halves.measured], tree)
    return Fallback(tree_source, len(halves.measured), (always_a_class, *reached), points, missed, temperature, levels)


def _curve(probs: Scores, target: Tensor, tree: Taxonomy) -> OperatingCurve:
    """Return the operating curve of the fallback; its points are means over samples."""

    def points(block: Tensor, true: Tensor) -> Tensor:
        return torch.stack(operating_curve(node_probs(block, tree), true, tree, THRESHOLDS)[1:])

    return OperatingCurve(THRESHOLDS, *probs.mean(points, target))


def _points(curve: OperatingCurve) -> tuple[FallbackPoint, ...]:
    shares = (curve.threshold, curve.correctness, curve.specificity, curve.leaf_share, curve.unanswered)
    return tuple(FallbackPoint(nan, *row) for row in torch.stack(shares, dim=1).tolist())


def _lowest(curve: OperatingCurve, goal: float) -> int | None:
    reached = (curve.correctness >= goal).nonzero().flatten()
    return int(reached[0]) if len(reached) else None
