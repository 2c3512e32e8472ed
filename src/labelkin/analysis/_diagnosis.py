"""Diagnose why a structured loss changes nothing.

`docs/diagnosis.md` says where the thresholds come from.

`docs/diagnosis.md` explains the measurements and the thresholds, and has the table of planted causes.
"""

from typing import Any, Literal, NamedTuple

from torch import Tensor

from labelkin._arrays import class_positions, sum_tolerance
from labelkin._checks import InputError
from labelkin.analysis._gradient_structure import GradientStructure, TargetRows, measure_gradient
from labelkin.analysis._headroom import Mistakes, Spread, measure_mistakes, measure_spread
from labelkin.metrics import check_scores
from labelkin.objectives import Objective, TreeObjective, in_class_order
from labelkin.structure import Taxonomy

Cause = Literal["flat tree", "targets without structure", "weights vanish", "tree respected already"]
CAUSES: tuple[Cause, ...] = ("flat tree", "targets without structure", "weights vanish", "tree respected already")

FLAT = 0.1  # a tree by which severity could fall by less is flat
KIN = 0.01  # a smaller part of the step leaves no trace that a change of seed would not
LEVEL = 0.001  # a level of the tree with a smaller share of the force is not learned
UNIFORM = 0.1  # rows so little tilted stay below KIN even where a tenth of the target is given away
HEADROOM = 0.1  # less than a tenth of the way from mistakes at random to the best ones is left


class Finding(NamedTuple):
    """One cause, the measurement that shows it, and what to do.

    Example:
        >>> from labelkin.analysis import CAUSES, Finding
        >>> Finding(CAUSES[0], "spread.possible", 0.0, 0.1, "The tree is flat.").cause
        'flat tree'
    """

    cause: Cause
    figure: str  # what was measured, by its name in the Diagnosis
    value: float
    threshold: float  # the value lies below it
    sentence: str  # what that means, and what to do


def check_flat_tree(spread: Spread, gradient: GradientStructure) -> Finding | None:
    """Return a finding if the tree does not tell classes apart."""
    if spread.possible >= FLAT:
        return None
    return Finding(
        "flat tree",
        "spread.possible",
        spread.possible,
        FLAT,
        f"The tree is flat: the best mistakes in it are {spread.possible:.1%} less severe than mistakes at random "
        f"(below {FLAT:.0%}), and {spread.with_kin:.0%} of the classes have others nearer than the rest. Of the "
        f"objective's step, {gradient.kin_share:.2%} differs from cross entropy in how wrong classes are treated. Give a tree "
        "with groups of several classes, or learn one from the data.",
    )


def check_weight(objective: Objective, gradient: GradientStructure, spread: Spread) -> Finding | None:
    """Return a finding if the targets or the tree of the objective have no weight in its gradient."""
    if isinstance(objective, TreeObjective):
        return None if spread.possible < FLAT else _check_tree_weight(gradient)
    if gradient.kin_share >= KIN:
        return None
    kin = f"{gradient.kin_share:.2%} of the step (below {KIN:.0%}) tells wrong classes apart"
    cause: Cause = "targets without structure"
    if gradient.rows is None:
        sentence = f"As it stands, {type(objective).__name__} treats all wrong classes alike: {kin}."
    elif gradient.rows.one_hot >= 0.5:
        sentence = (
            f"The targets of {gradient.rows.one_hot:.0%} of the classes are one-hot: {kin}. Give a relation in which classes "
            "have kin (no groups of one class, no zero rows) and a share (sigma, eps) above 0."
        )
    elif gradient.rows.tilt < UNIFORM:
        sentence = (
            f"The targets are uniform over the wrong classes, or nearly (tilt {gradient.rows.tilt:.3f} of 1): {kin}, though a "
            f"share of {gradient.rows.moved:.3f} is given away. Give a relation in which some classes are nearer than others."
        )
    else:
        cause = "weights vanish"
        sentence = (
            f"The share given to kin vanishes: {gradient.rows.moved:.4f} of the target, so that {kin}. Raise it (sigma or eps "
            "to .1 or more, a smaller beta); where it is learned, raise the prior."
        )
    return Finding(cause, "gradient.kin_share", gradient.kin_share, KIN, sentence)


def _check_tree_weight(gradient: GradientStructure) -> Finding | None:
    if gradient.kin_share < KIN:
        return Finding(
            "weights vanish",
            "gradient.kin_share",
            gradient.kin_share,
            KIN,
            f"The tree has no weight in the loss: {gradient.kin_share:.2%} of the step (below {KIN:.0%}) differs from cross "
            "entropy in how wrong classes are treated. Raise what weighs its levels (HXE's alpha to .1 or more).",
        )
    assert gradient.weakest_level is not None
    if gradient.weakest_level >= LEVEL:
        return None
    return Finding(
        "weights vanish",
        "gradient.weakest_level",
        gradient.weakest_level,
        LEVEL,
        f"A level of the tree has no weight: it gets {max(gradient.weakest_level, 0):.1e} of the force that the strongest "
        f"level gets (below {LEVEL}). Let the weights differ less between levels (HXE's alpha to .5 or less).",
    )


def check_respected(judged: Mistakes, plain: bool, spread: Spread) -> Finding | None:
    """Return a finding if the mistakes are close to the best possible ones."""
    who, where = ("plain model", "reference") if plain else ("model", "mistakes")
    cause: Cause = "tree respected already"
    if not judged.mistakes:
        sentence = f"The {who} makes no mistakes on {judged.samples} samples, so none can be better; take harder ones."
        return Finding(cause, f"{where}.mistakes", 0, 1, sentence)
    if spread.possible < FLAT or not judged.headroom < HEADROOM:
        return None
    more = (
        "The tree adds nothing to what the data says already."
        if plain
        else "Whether the loss or the data made it so, a plain model's log-probabilities as reference would tell."
    )
    return Finding(
        cause,
        f"{where}.headroom",
        judged.headroom,
        HEADROOM,
        f"The {who} respects the tree already: severity {judged.severity:.3f} over {judged.mistakes} mistakes, where the "
        f"best is {judged.best:.3f} and mistakes at random have {judged.random:.3f}, so that {judged.headroom:.0%} of the "
        f"headroom is left (below {HEADROOM:.0%}); CRM would change the mean distance by {judged.crm_change:+.1%}. {more}",
    )


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

    The thresholds are constants of `labelkin.analysis._diagnosis`.

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
