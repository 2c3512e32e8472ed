"""The causes for which a structured loss has no effect, each judged by one measurement and its threshold.

`docs/diagnosis.md` says where the thresholds come from.
"""

from typing import Literal, NamedTuple

from labelkin.analysis.pull import GradientStructure
from labelkin.analysis.room import Mistakes, Spread
from labelkin.objectives import Objective
from labelkin.objectives.tree import TreeObjective

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
