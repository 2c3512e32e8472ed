"""My hierarchical loss does nothing: which of four causes it has, with the figures that say so.

`docs/diagnosis.md` explains the figures and where the thresholds are from, and has the table of planted causes.
"""

from typing import Any, NamedTuple

from torch import Tensor

from labelkin._arrays import class_positions, sum_tolerance
from labelkin._checks import InputError
from labelkin.analysis.findings import Finding, flat_tree, respected, without_weight
from labelkin.analysis.pull import Pull, TargetRows, measure_pull
from labelkin.analysis.room import Mistakes, Spread, measure_mistakes, measure_spread
from labelkin.metrics.inputs import check_scores
from labelkin.objectives import Objective
from labelkin.objectives.tree import TreeObjective, in_class_order
from labelkin.structure import Taxonomy

HEALTHY = "healthy"


class Diagnosis(NamedTuple):
    findings: tuple[Finding, ...]  # all causes that hold, the most basic first; none: the loss acts
    spread: Spread  # what the tree allows
    pull: Pull  # what the objective asks
    mistakes: Mistakes  # what the model does
    reference: Mistakes | None  # what the plain model does, where it was given

    @property
    def cause(self) -> str:
        """The first finding's cause, or "healthy"."""
        return self.findings[0].cause if self.findings else HEALTHY

    def figures(self) -> dict[str, float]:
        """Everything measured under the names that findings call it by, as "pull.kin_share"."""
        parts: dict[str, Spread | Pull | TargetRows | Mistakes | None] = {
            "spread": self.spread,
            "pull": self.pull,
            "pull.rows": self.pull.rows,
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
        """Cause, findings and figures as plain values."""
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
    """Why a structured objective changes nothing against one-hot: which of four causes hold, if any.

    `log_probs` (n, K) are `objective.log_probs(outputs)` on held-out samples and `target` (n,) their classes;
    `reference` (n, K) those of a plain model on the same samples. `taxonomy` is the tree by which mistakes are measured;
    without it, the objective's own. Thresholds are constants of this module.

    - "flat tree": `spread.possible` below .1, of the objective's tree or the one given; the rest would not matter.
    - "targets without structure": `pull.kin_share` below .01, and the objective has targets that are one-hot, or
      uniform over the wrong classes.
    - "weights vanish": the same where the tree or the relation is there and has no weight, or a tree objective's
      `pull.weakest_level` is below .001.
    - "tree respected already": `room` below .2, or no mistakes at all. Judged on the reference where there is one; a
      model that was trained for it may respect the tree because the loss acts.
    """
    pull = measure_pull(objective)
    tree = _tree(objective, taxonomy)
    spread = measure_spread(tree)
    if isinstance(objective, TreeObjective) and objective.taxonomy != tree:
        spread = min(spread, measure_spread(objective.taxonomy))
    true = class_positions("target", target, objective.num_classes, ndim=1).cpu()
    mistakes = measure_mistakes(_checked("log_probs", log_probs, true, tree), true, tree)
    plain = None if reference is None else measure_mistakes(_checked("reference", reference, true, tree), true, tree)
    found = (
        flat_tree(spread, pull),
        without_weight(objective, pull, spread),
        respected(mistakes if plain is None else plain, plain is not None, spread),
    )
    return Diagnosis(tuple(f for f in found if f is not None), spread, pull, mistakes, plain)


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
        f"Healthy: {found.pull.kin_share:.1%} of the step tells wrong classes apart, and severity {mistakes.severity:.3f}"
        f"{beside} over {mistakes.mistakes} mistakes leaves {mistakes.room:.0%} of the room between {mistakes.best:.3f} "
        f"(best) and {mistakes.random:.3f} (at random). CRM would change the mean distance by {mistakes.crm_change:+.1%}."
    )
