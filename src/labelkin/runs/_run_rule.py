"""The decision rule of a run: its own temperature and tree, and a guarantee from the samples that it held out."""

from math import isnan
from typing import TYPE_CHECKING

from torch import Tensor

from labelkin._checks import InputError
from labelkin.decide import Rule, RuleName, choose_rule
from labelkin.runs._folder import RunFolder
from labelkin.training import LEAST_SCORE, PRIOR

if TYPE_CHECKING:
    from labelkin.runs._predictor import Predictor


def rule_of_run(
    predictor: "Predictor",
    decide: RuleName | None,
    *,
    threshold: float | None,
    coverage: float | None,
    costs: Tensor | None,
) -> Rule:
    """Return a decision rule of a run; see `Predictor.rule`."""
    default: RuleName = "argmax" if costs is None else "crm"
    name = choose_rule(decide, default=default, coverage=coverage, threshold=threshold)
    if costs is not None and name != "crm":
        raise InputError(f"costs: apply to the rule 'crm', got {name!r}; leave them out, or choose 'crm'.")
    if name == "fallback" and predictor.tree_built:
        raise InputError(
            "decide: 'fallback' answers with nodes of a taxonomy, but the tree of this run was built from its data and has no "
            "names; train with a taxonomy, or choose 'argmax' or 'crm'."
        )
    if name != "argmax" and isnan(predictor.calibration.temperature):
        raise InputError(
            f"decide: {name!r} needs probabilities, but the objective of this run defines none and too few samples were held "
            "out to calibrate its scores; choose 'argmax'."
        )
    rule = Rule(name, predictor.taxonomy, costs, threshold, temperature=predictor.calibration.temperature)
    if coverage is None:
        return rule
    scores, target = _held_out(predictor.folder)
    return rule.fitted(scores.double().clamp(min=LEAST_SCORE), target, coverage=coverage, prior=PRIOR).rule


def _held_out(folder: RunFolder) -> tuple[Tensor, Tensor]:
    """Return the scores and true classes of the samples that the run held out for its calibration."""
    outputs = folder.outputs() if (folder.path / "outputs.safetensors").exists() else {}
    if "calibration_scores" not in outputs:
        raise InputError(
            f"coverage: {folder.path} keeps no held-out samples to find the threshold on; train the run with "
            "--calibration 0.1, or give a threshold instead."
        )
    return outputs["calibration_scores"], outputs["calibration_target"]
