"""Diagnose why a structured loss changes nothing.

`docs/diagnosis.md` explains the measurements and the thresholds, and shows results for known causes.
"""

from typing import Any, Literal, NamedTuple

from torch import Tensor

from labelkin._arrays import class_positions, sum_tolerance
from labelkin._checks import InputError, counted
from labelkin.analysis._gradient_structure import GradientStructure, TargetRows, measure_gradient
from labelkin.analysis._headroom import Mistakes, Spread, measure_mistakes, measure_spread
from labelkin.metrics import check_scores
from labelkin.objectives import Objective, TreeObjective, in_class_order
from labelkin.structure import Taxonomy

Cause = Literal["flat tree", "targets without structure", "weights vanish", "tree respected already"]
CAUSES: tuple[Cause, ...] = ("flat tree", "targets without structure", "weights vanish", "tree respected already")

FLAT = 0.1  # a tree is flat if severity could fall by less than this
KIN = 0.01  # a smaller part of the step has less effect than a change of seed
LEVEL = 0.001  # a tree level with a smaller share of the force is not learned
UNIFORM = 0.1  # below this tilt, the kin share stays below KIN even if a tenth of the target is given away
HEADROOM = 0.1  # below this, mistakes are close to the best possible ones


class Finding(NamedTuple):
    """A cause, the measurement that shows it, and a suggestion.

    Example:
        >>> from labelkin.analysis import CAUSES, Finding
        >>> Finding(CAUSES[0], "spread.possible", 0.0, 0.1, "The tree is flat.").cause
        'flat tree'
    """

    cause: Cause
    figure: str  # name of the measurement in the Diagnosis
    value: float
    threshold: float  # the value is below this threshold
    sentence: str  # an explanation, and what to do


def check_flat_tree(spread: Spread, gradient: GradientStructure) -> Finding | None:
    """Return a finding if all classes are nearly equally far apart in the tree."""
    if spread.possible >= FLAT:
        return None
    return Finding(
        "flat tree",
        "spread.possible",
        spread.possible,
        FLAT,
        f"The tree is flat: the best mistakes in it are {spread.possible:.1%} less severe than mistakes at random "
        f"(below {FLAT:.0%}), and {spread.with_kin:.0%} of the classes are nearer to some classes than to others. Of the "
        f"objective's step, {gradient.kin_share:.2%} differs from cross entropy in how wrong classes are treated. Give a tree "
        "with groups of several classes, or learn one from the data.",
    )


def check_weight(objective: Objective, gradient: GradientStructure, spread: Spread) -> Finding | None:
    """Return a finding if the targets or the tree of the objective have no weight in its gradient."""
    if isinstance(objective, TreeObjective):
        return None if spread.possible < FLAT else _check_tree_weight(gradient)
    if gradient.kin_share >= KIN:
        return None
    kin = f"{gradient.kin_share:.2%} of the step (below {KIN:.0%}) distinguishes between wrong classes"
    cause: Cause = "targets without structure"
    if gradient.rows is None:
        sentence = f"{type(objective).__name__} currently treats all wrong classes the same: {kin}."
    elif gradient.rows.one_hot >= 0.5:
        sentence = (
            f"The targets of {gradient.rows.one_hot:.0%} of the classes are one-hot: {kin}. Use a relation in which classes "
            "have related classes (no groups of one class, no zero rows) and a share (sigma, eps) above 0."
        )
    elif gradient.rows.tilt < UNIFORM:
        sentence = (
            f"The targets are uniform over the wrong classes, or nearly (tilt {gradient.rows.tilt:.3f} of 1): {kin}, although "
            f"a share of {gradient.rows.moved:.3f} is given away. Use a relation in which some classes are nearer than others."
        )
    else:
        cause = "weights vanish"
        sentence = (
            f"The share given to related classes is too small: {gradient.rows.moved:.4f} of the target, so {kin}. Raise it "
            "(sigma or eps to .1 or more, a smaller beta); if it is learned, raise the prior."
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
            "entropy in how wrong classes are treated. Raise the weights of its levels (HXE's alpha to .1 or more).",
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
        sentence = (
            f"The {who} makes no mistakes on {counted(judged.samples, 'sample')}, so nothing can "
            f"improve; use harder samples."
        )
        return Finding(cause, f"{where}.mistakes", 0, 1, sentence)
    if spread.possible < FLAT or not judged.headroom < HEADROOM:
        return None
    more = (
        "The tree adds no information to the data."
        if plain
        else "To see whether this is due to the loss or the data, give the log-probabilities of a plain model as reference."
    )
    return Finding(
        cause,
        f"{where}.headroom",
        judged.headroom,
        HEADROOM,
        f"The {who} already respects the tree: severity {judged.severity:.3f} over "
        f"{counted(judged.mistakes, 'mistake')}, where the "
        f"best is {judged.best:.3f} and random mistakes have {judged.random:.3f}, so {judged.headroom:.0%} of the "
        f"headroom is left (below {HEADROOM:.0%}); CRM would change the mean distance by {judged.crm_change:+.1%}. {more}",
    )


HEALTHY = "healthy"


class Diagnosis(NamedTuple):
    """The causes that apply, most basic first, and all measurements; without findings the loss works as intended.

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

    findings: tuple[Finding, ...]  # all causes that apply, the most basic first; empty if the loss works
    spread: Spread  # the differences between classes in the tree
    gradient: GradientStructure  # the gradient of the objective
    mistakes: Mistakes  # the mistakes of the model
    reference: Mistakes | None  # the mistakes of the plain model, if given

    @property
    def cause(self) -> str:
        """The cause of the first finding, or "healthy"."""
        return self.findings[0].cause if self.findings else HEALTHY

    def figures(self) -> dict[str, float]:
        """Return all measurements under the names that findings use, such as "gradient.kin_share"."""
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
    """Find out why a structured objective gives the same results as one-hot targets: which of four causes apply, if any.

    - "flat tree": `spread.possible` is below 0.1, for the flatter of the given tree and that of the objective.
    - "targets without structure": `gradient.kin_share` is below 0.01, and the targets are one-hot, or uniform over the wrong
      classes.
    - "weights vanish": the same, although there is a tree or a relation, because it has no weight; or the
      `gradient.weakest_level` of a tree objective is below 0.001.
    - "tree respected already": `headroom` is below 0.1, or there are no mistakes. It is judged on the reference if there is
      one: a model trained with the loss may respect the tree because the loss works.

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
            "Taxonomy.from_groups builds one from groups."
        )
    return in_class_order(taxonomy, objective.classes)


def _checked(argument: str, log_probs: Any, target: Tensor, tree: Taxonomy) -> Tensor:
    if not isinstance(log_probs, Tensor):
        raise InputError(f"{argument}: expected a tensor of log-probabilities, got {type(log_probs).__name__}.")
    given = log_probs.detach().cpu()
    check_scores(argument, given, target, len(tree.leaves))
    if not len(given):
        raise InputError(f"{argument}: expected at least one sample, got none.")
    slack = sum_tolerance(given.dtype, given.shape[-1])
    off = int(((given.double().exp().sum(-1) - 1).abs() > slack).sum())
    if off:
        raise InputError(
            f"{argument}: expected log-probabilities, whose exponentials sum to 1, but {off} of "
            f"{counted(len(given), 'row')} do not; "
            "pass objective.log_probs(outputs)."
        )
    return given.double().log_softmax(-1)


def _healthy_sentence(found: Diagnosis) -> str:
    mistakes = found.mistakes
    beside = "" if found.reference is None else f" (plain: {found.reference.severity:.3f})"
    return (
        f"Healthy: {found.gradient.kin_share:.1%} of the step distinguishes between wrong classes, and severity "
        f"{mistakes.severity:.3f}{beside} over {counted(mistakes.mistakes, 'mistake')} leaves "
        f"{mistakes.headroom:.0%} of the headroom "
        f"between {mistakes.best:.3f} (best) and {mistakes.random:.3f} (random). CRM would change "
        f"the mean distance by {mistakes.crm_change:+.1%}."
    )
