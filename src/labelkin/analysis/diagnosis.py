"""Diagnose why a structured loss has no effect: which of four causes holds, with the measurements that show it.

`docs/diagnosis.md` explains the measurements and the thresholds, and has the table of planted causes.
"""

from typing import Any, NamedTuple

from torch import Tensor

from labelkin._arrays import class_positions, sum_tolerance
from labelkin._checks import InputError
from labelkin.analysis.findings import Finding, check_flat_tree, check_respected, check_weight
from labelkin.analysis.pull import GradientStructure, TargetRows, measure_gradient
from labelkin.analysis.room import Mistakes, Spread, measure_mistakes, measure_spread
from labelkin.metrics.inputs import check_scores
from labelkin.objectives import Objective
from labelkin.objectives.tree import TreeObjective, in_class_order
from labelkin.structure import Taxonomy

HEALTHY = "healthy"


class Diagnosis(NamedTuple):
    """The causes that hold, most basic first, and everything that was measured; no findings mean that the loss acts.

    Example:
        >>> from labelkin import Hierarchical, Taxonomy
        >>> from labelkin.analysis import diagnose
        >>> import torch
        >>> tree = Taxonomy.from_groups({"pet": ["cat", "dog"], "thing": ["car", "bus"]})
        >>> log_probs = torch.full((4, 4), 0.25).log()
        >>> found = diagnose(Hierarchical(taxonomy=tree), log_probs, torch.arange(4))
        >>> found.cause
        'healthy'
    """

    findings: tuple[Finding, ...]  # all causes that hold, the most basic first; none: the loss acts
    spread: Spread  # what the tree allows
    gradient: GradientStructure  # what the objective asks
    mistakes: Mistakes  # what the model does
    reference: Mistakes | None  # what the plain model does, where it was given

    @property
    def cause(self) -> str:
        """The cause of the first finding, or "healthy"."""
        return self.findings[0].cause if self.findings else HEALTHY

    def figures(self) -> dict[str, float]:
        """Return everything measured, under the names that findings use, such as "gradient.kin_share"."""
        parts: dict[str, Spread | GradientStructure | TargetRows | Mistakes | None] = {
            "spread": self.spread,
            "gradient": self.gradient,
            "gradient.rows": self.gradient.rows,
            "mistakes": self.mistakes,
            "reference": self.reference,
        }
        return {
            f"{name}.{field}": value
            for name, part in parts.items()
            if part is not None
            for field, value in part._asdict().items()
            if isinstance(value, (int, float))
        }

    def as_dict(self) -> dict[str, Any]:
        """Return cause, findings and figures as plain values."""
        return {"cause": self.cause, "findings": [f._asdict() for f in self.findings], "figures": self.figures()}

    def __str__(self) -> str:
        return "\n".join([finding.sentence for finding in self.findings] or [_healthy_sentence(self)])


def diagnose(
    objective: Objective,
    log_probs: Any,
    target: Any,
    *,
    taxonomy: Taxonomy | None = None,
    reference: Any = None,
) -> Diagnosis:
    """Find out why a structured objective changes nothing against one-hot targets: which of four causes hold, if any.

    - "flat tree": `spread.possible` is below 0.1, for the objective's tree or the one given.
    - "targets without structure": `gradient.kin_share` is below 0.01, and the targets are one-hot, or uniform over the wrong
      classes.
    - "weights vanish": the same, although there is a tree or a relation, because it has no weight; or the
      `gradient.weakest_level` of a tree objective is below 0.001.
    - "tree respected already": `headroom` is below 0.1, or there are no mistakes. It is judged on the reference if there is
      one: a model trained with the loss may respect the tree because the loss acts.

    The thresholds are constants of `labelkin.analysis.findings`.

    Args:
        objective: The objective that was trained.
        log_probs: `objective.log_probs(outputs)` on held-out samples, (n, K).
        target: True class positions, (n,).
        taxonomy: The tree by which mistakes are measured; by default that of the objective.
        reference: Log-probabilities of a plain model on the same samples, (n, K).

    Returns:
        The findings and the measurements.

    Example:
        >>> import torch
        >>> from labelkin import OneHot, Taxonomy
        >>> from labelkin.analysis import diagnose
        >>> tree = Taxonomy.from_groups({"pet": ["cat", "dog"], "thing": ["car", "bus"]})
        >>> log_probs = torch.randn(8, 4, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
        >>> diagnose(OneHot(classes=tree.classes), log_probs, torch.arange(8) % 4, taxonomy=tree).cause
        'targets without structure'
    """
    gradient = measure_gradient(objective)
    tree = _tree(objective, taxonomy)
    spread = measure_spread(tree)
    if isinstance(objective, TreeObjective) and objective.taxonomy != tree:
        spread = min(spread, measure_spread(objective.taxonomy))
    true = class_positions("target", target, objective.num_classes, ndim=1).cpu()
    mistakes = measure_mistakes(_checked("log_probs", log_probs, true, tree), true, tree)
    plain = None if reference is None else measure_mistakes(_checked("reference", reference, true, tree), true, tree)
    found = (
        check_flat_tree(spread, gradient),
        check_weight(objective, gradient, spread),
        check_respected(mistakes if plain is None else plain, plain is not None, spread),
    )
    return Diagnosis(tuple(f for f in found if f is not None), spread, gradient, mistakes, plain)


def _tree(objective: Objective, taxonomy: Taxonomy | None) -> Taxonomy:
    if taxonomy is None:
        if isinstance(objective, TreeObjective):
            return objective.taxonomy
        raise InputError(
            f"taxonomy: expected the tree by which mistakes are measured, since {type(objective).__name__} has none; "
            "Taxonomy.from_groups makes one of groups."
        )
    return in_class_order(taxonomy, objective.classes)


def _checked(argument: str, log_probs: Any, target: Tensor, tree: Taxonomy) -> Tensor:
    if not isinstance(log_probs, Tensor):
        raise InputError(f"{argument}: expected a tensor of log-probabilities, got {type(log_probs).__name__}.")
    given = log_probs.detach().cpu()
    check_scores(argument, given, target, len(tree.leaves))
    if not len(given):
        raise InputError(f"{argument}: expected one sample at least, got none.")
    slack = sum_tolerance(given.dtype, given.shape[-1])
    off = int(((given.double().exp().sum(-1) - 1).abs() > slack).sum())
    if off:
        raise InputError(
            f"{argument}: expected log-probabilities, whose exponentials sum to 1, but {off} of {len(given)} rows don't; "
            "give objective.log_probs(outputs)."
        )
    return given.double().log_softmax(-1)


def _healthy_sentence(found: Diagnosis) -> str:
    mistakes = found.mistakes
    beside = "" if found.reference is None else f" (plain: {found.reference.severity:.3f})"
    return (
        f"Healthy: {found.gradient.kin_share:.1%} of the step tells wrong classes apart, and severity {mistakes.severity:.3f}"
        f"{beside} over {mistakes.mistakes} mistakes leaves {mistakes.headroom:.0%} of the headroom between "
        f"{mistakes.best:.3f} (best) and {mistakes.random:.3f} (at random). CRM would change "
        f"the mean distance by {mistakes.crm_change:+.1%}."
    )
