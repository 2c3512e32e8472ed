"""Decisions from probabilities: rules, a more general answer when unsure, guarantees, and calibration."""

from labelkin.decide._answers import Answers, FittedRule, Rule
from labelkin.decide._answers import class_nodes as class_nodes
from labelkin.decide._best_answer import best_answer, expected_values
from labelkin.decide._choices import restrict
from labelkin.decide._class_shares import adjust_shares, estimate_shares
from labelkin.decide._class_shares import checked_shares as checked_shares
from labelkin.decide._ensemble import hierarchical_ensemble
from labelkin.decide._explain import Explanation, Step, explain
from labelkin.decide._explain import reasons as reasons
from labelkin.decide._fallback import OperatingCurve, fallback, operating_curve
from labelkin.decide._guarantee import GuaranteedFallback
from labelkin.decide._guarantee import GuaranteeKind as GuaranteeKind
from labelkin.decide._halves import Halves, split_halves
from labelkin.decide._halves import fitted_mask as fitted_mask
from labelkin.decide._least_cost import argmax, expected_costs, least_cost, least_cost_top_k
from labelkin.decide._level_temperatures import LevelTemperatures
from labelkin.decide._rule_options import RULES as RULES
from labelkin.decide._rule_options import RuleName as RuleName
from labelkin.decide._rule_options import choose_rule as choose_rule
from labelkin.decide._rules import Decided, Rules, compare_rules
from labelkin.decide._shift import Shift, check_shift
from labelkin.decide._temperature import Temperature
from labelkin.decide._traceable_rule import TraceableRule as TraceableRule
from labelkin.decide._tree_sums import node_probs

__all__ = [
    "Answers",
    "Decided",
    "Explanation",
    "FittedRule",
    "GuaranteedFallback",
    "Halves",
    "LevelTemperatures",
    "OperatingCurve",
    "Rule",
    "Rules",
    "Shift",
    "Step",
    "Temperature",
    "adjust_shares",
    "argmax",
    "best_answer",
    "check_shift",
    "compare_rules",
    "estimate_shares",
    "expected_costs",
    "expected_values",
    "explain",
    "fallback",
    "hierarchical_ensemble",
    "least_cost",
    "least_cost_top_k",
    "node_probs",
    "operating_curve",
    "restrict",
    "split_halves",
]
