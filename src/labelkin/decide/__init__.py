"""From probabilities to decisions: argmax, least expected cost, an ancestor when unsure, and calibration before them."""

from labelkin.decide.cost import argmax, expected_costs, least_cost, least_cost_top_k
from labelkin.decide.fallback import OperatingCurve, fallback, operating_curve
from labelkin.decide.temperature import Temperature
from labelkin.decide.trees import node_probs

__all__ = [
    "OperatingCurve",
    "Temperature",
    "argmax",
    "expected_costs",
    "fallback",
    "least_cost",
    "least_cost_top_k",
    "node_probs",
    "operating_curve",
]
