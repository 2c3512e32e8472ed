"""The decision rule of a run: its own temperature and tree, and a guarantee from the samples that it held out."""

import os
from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.data import LEAST_CALIBRATION
from labelkin.decide import Rule, RuleName, choose_rule, reasons
from labelkin.relations import read_square
from labelkin.runs._folder import RunFolder
from labelkin.structure import Taxonomy
from labelkin.training import LEAST_SCORE, PRIOR, costs_in_order, read_costs

SHARES_DIFFER = ", except for the class shares, which are right"
HELD_OUT_FOR = {
    "coverage": ("fit the threshold on", "give a threshold instead"),
    "shares": ("measure the former shares on", "leave them out"),
}
SUGGESTED, MOST = 0.2, 0.5  # shares of the training samples to hold out

if TYPE_CHECKING:
    from labelkin.runs._predictor import Predictor


def rule_of_run(
    predictor: "Predictor",
    decide: RuleName | None,
    *,
    threshold: float | None,
    coverage: float | None,
    confidence: float | None,
    costs: Any,
    shares: Tensor | None,
) -> Rule:
    """Return a decision rule of a run; see `Predictor.rule`."""
    default: RuleName = "argmax" if costs is None else "crm"
    name = choose_rule(decide, default=default, coverage=coverage, threshold=threshold, confidence=confidence)
    if costs is not None and name != "crm":
        raise InputError(f"costs: apply to the rule 'crm', got {name!r}; leave them out, or choose 'crm'.")
    if name == "fallback" and predictor.tree_built:
        raise InputError(
            "decide: 'fallback' answers with nodes of a taxonomy, but the tree of this run was built from its data and has no "
            "names; train with a taxonomy, or choose 'argmax' or 'crm'."
        )
    if (name != "argmax" or shares is not None) and isnan(predictor.calibration.temperature):
        need, instead = (
            ("shares: they need", "leave them out")
            if name == "argmax"
            else (f"decide: {name!r} needs", "choose 'argmax'")
        )
        raise InputError(
            f"{need} probabilities, but the objective of this run defines none and too few samples were held out to calibrate "
            f"its scores; {instead}."
        )
    matrix, actions = _costs_over(costs, predictor.classes)
    temperature = predictor.calibration.temperature
    rule = Rule(name, predictor.taxonomy, matrix, threshold, temperature=temperature, actions=actions)
    if coverage is None and shares is None:
        return rule
    scores, target = _held_out(predictor.folder, "shares" if coverage is None else "coverage")
    logits = scores.double().clamp(min=LEAST_SCORE)
    return rule.fitted(
        logits,
        target,
        coverage=coverage,
        confidence=confidence,
        temperature=rule.temperature if coverage is None else None,
        shares=shares,
        prior=PRIOR,
    ).rule


def check_rule(rule: Rule, taxonomy: Taxonomy) -> None:
    """Refuse a rule whose answers are not nodes of the tree of a run, and would be read as other nodes."""
    if rule.taxonomy != taxonomy:
        raise InputError(
            "decide: expected a rule over the tree of this run, got one with "
            f"{'no tree' if rule.taxonomy is None else 'another tree'}; use the result of rule(), or pass the run's `taxonomy` "
            "to the rule."
        )


def has_reasons(predictor: "Predictor", rule: Rule) -> bool:
    """Return whether answers can be explained: by paths in a taxonomy, or by expected costs."""
    return not predictor.tree_built or (rule.name == "crm" and rule.costs is not None)


def reasons_of_run(predictor: "Predictor", rule: Rule, probs: Tensor, nodes: Tensor) -> list[str | None]:
    """Return a line for each answer of a rule over the tree of a run; see `Predictor.explain`."""
    if not has_reasons(predictor, rule):
        return [None] * len(nodes)
    if not len(nodes):
        return []
    if predictor.tree_built:  # its inner nodes have no names, so that only costs explain an answer
        tree = predictor.taxonomy
        places = torch.full((len(tree) + len(rule.actions),), -1)
        answers = [*tree.leaves.tolist(), *range(len(tree), len(places))]
        places[answers] = torch.arange(len(answers))
        rule, nodes = replace(rule, taxonomy=None), places[nodes]
    return [*reasons(rule, probs, nodes, predictor.classes)]


def caveats(
    run: str | os.PathLike[str],
    *,
    coverage: float | None = None,
    confidence: float | None = None,
    shares: Tensor | None = None,
) -> list[str]:
    """Return what to bear in mind about the answers of a finished run: missing calibration, and what a guarantee assumes.

    Args:
        run: The folder of the run.
        coverage: The coverage of a guarantee, if the answers have one.
        confidence: The confidence of the coverage, if it was given.
        shares: The class shares of the new samples, if they were given.
    """
    folder = RunFolder(os.fspath(run))
    final = folder.final or {}
    held_out = int(final.get("calibration_samples") or 0)
    found = []
    if not held_out and final.get("temperature") is not None:
        found.append(
            f"{os.fspath(run)} is not calibrated, because it held out fewer than {LEAST_CALIBRATION} samples: its "
            f"probabilities and decisions by them may be off; {_how_to_hold_out(folder)}."
        )
    if coverage is not None:
        sure = "on average" if confidence is None else f"with a confidence of {100 * confidence:g} %"
        found.append(
            f"At least {100 * coverage:g} % of the answers are right or the root, {sure}, if the new samples come from the "
            f"same source as the training data{SHARES_DIFFER if shares is not None else ''}; for other samples nothing is "
            "guaranteed."
        )
    return found


def _costs_over(costs: Any, classes: Sequence[str]) -> tuple[Tensor | None, tuple[str, ...]]:
    """Return costs in the order of the classes, the actions after them, and the names of the actions.

    A matrix without names is taken as it is, so its costs may be negative. Columns after the classes need names.
    """
    if costs is None:
        return None, ()
    if isinstance(costs, Tensor | np.ndarray) and not (costs.ndim == 2 and costs.shape[1] > len(costs)):
        read_square("costs", costs, len(classes))
        return torch.as_tensor(costs), ()
    table = costs_in_order(read_costs(costs), classes)
    return table.costs, table.actions


def _held_out(folder: RunFolder, argument: str) -> tuple[Tensor, Tensor]:
    """Return the scores and true classes of the samples that the run held out for its calibration."""
    outputs = folder.outputs() if (folder.path / "outputs.safetensors").exists() else {}
    if "calibration_scores" not in outputs:
        use, instead = HELD_OUT_FOR[argument]
        raise InputError(
            f"{argument}: {folder.path} stores no held-out samples to {use}; {_how_to_hold_out(folder)}, or {instead}."
        )
    return outputs["calibration_scores"], outputs["calibration_target"]


def _how_to_hold_out(folder: RunFolder) -> str:
    """Return what to do so that a run holds out enough samples; a larger share may be impossible."""
    share = folder.config.get("settings", {}).get("calibration", 0.0)
    if share < SUGGESTED:
        return f"train it with --calibration {SUGGESTED:g}"
    return (
        f"train it with more samples, or with a larger --calibration than {share:g}"
        if share < MOST
        else "train it with more samples"
    )
