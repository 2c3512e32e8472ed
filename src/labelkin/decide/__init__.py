"""Decisions from probabilities: argmax, least expected cost, a more general answer when unsure, and calibration."""

from labelkin.decide._fallback import OperatingCurve, fallback, operating_curve
from labelkin.decide._guarantee import GuaranteedFallback
from labelkin.decide._halves import Halves, split_halves
from labelkin.decide._least_cost import argmax, expected_costs, least_cost, least_cost_top_k
from labelkin.decide._rules import Decided, Rules, compare_rules
from labelkin.decide._shift import Shift, check_shift
from labelkin.decide._temperature import Temperature
from labelkin.decide._tree_sums import node_probs

__all__ = [
    "Decided",
    "GuaranteedFallback",
    "Halves",
    "OperatingCurve",
    "Rules",
    "Shift",
    "Temperature",
    "argmax",
    "check_shift",
    "compare_rules",
    "expected_costs",
    "fallback",
    "least_cost",
    "least_cost_top_k",
    "node_probs",
    "operating_curve",
    "split_halves",
]
