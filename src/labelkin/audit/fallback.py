"""Naming an ancestor when unsure: which threshold buys which correctness, and what it gives up."""

from math import nan

import torch
from torch import Tensor

from labelkin.audit.findings import Fallback, FallbackPoint
from labelkin.audit.halves import Halves
from labelkin.audit.predictions import Predictions
from labelkin.decide import OperatingCurve, node_probs, operating_curve
from labelkin.structure import Taxonomy

GOALS = (0.9, 0.95, 0.99)
BELOW_ONE = (5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 1e-5, 1e-6)  # most probabilities of a good model lie there
THRESHOLDS = torch.tensor([k / 100 for k in range(100)] + [1 - gap for gap in BELOW_ONE] + [1.0], dtype=torch.float64)


def fallback(given: Predictions, halves: Halves, tree: Taxonomy, *, tree_is: str) -> Fallback:
    """For each goal that naming a class does not reach, the lowest threshold that reaches it on one half."""
    chosen, measured = (_curve(given, half, tree) for half in halves)
    plain, *_ = points = _points(measured)
    least = {goal: _lowest(chosen, goal) for goal in GOALS if goal > float(chosen.correctness[0])}
    reached = [points[at]._replace(goal=goal) for goal, at in least.items() if at is not None]
    missed = tuple(goal for goal, at in least.items() if at is None)
    return Fallback(tree_is, len(halves.measured), (plain, *reached), points, missed)


def _curve(given: Predictions, half: Tensor, tree: Taxonomy) -> OperatingCurve:
    assert given.probs is not None
    return operating_curve(node_probs(given.probs[half], tree), given.target[half], tree, THRESHOLDS)


def _points(curve: OperatingCurve) -> tuple[FallbackPoint, ...]:
    rows = torch.stack([curve.threshold, curve.correctness, curve.specificity, curve.leaf_share], dim=1).tolist()
    return tuple(FallbackPoint(nan, *row) for row in rows)


def _lowest(curve: OperatingCurve, goal: float) -> int | None:
    reached = (curve.correctness >= goal).nonzero().flatten()
    return int(reached[0]) if len(reached) else None
