"""The causes for which a structured loss does nothing, each judged by one figure and its threshold.

`docs/diagnosis.md` says where the thresholds are from.
"""

from typing import Literal, NamedTuple

from labelkin.analysis.pull import Pull
from labelkin.analysis.room import Mistakes, Spread
from labelkin.objectives import Objective
from labelkin.objectives.tree import TreeObjective

Cause = Literal["flat tree", "targets without structure", "weights vanish", "tree respected already"]
CAUSES: tuple[Cause, ...] = ("flat tree", "targets without structure", "weights vanish", "tree respected already")

FLAT = 0.1  # a tree by which severity could fall by less is flat
KIN = 0.01  # a smaller part of the step leaves no trace that a change of seed would not
LEVEL = 0.001  # a level of the tree with less of the pull is not learned
UNIFORM = 0.1  # rows so little tilted stay below KIN even where a tenth of the target is given away
ROOM = 0.1  # less than a tenth of the way from mistakes at random to the best ones is left


class Finding(NamedTuple):
    cause: Cause
    figure: str  # what was measured, by its name in the Diagnosis
    value: float
    threshold: float  # the value lies below it
    sentence: str  # what that means, and what to do


def flat_tree(spread: Spread, pull: Pull) -> Finding | None:
    if spread.possible >= FLAT:
        return None
    return Finding(
        "flat tree",
        "spread.possible",
        spread.possible,
        FLAT,
        f"The tree is flat: the best mistakes in it are {spread.possible:.1%} less severe than mistakes at random "
        f"(below {FLAT:.0%}), and {spread.with_kin:.0%} of the classes have others nearer than the rest. Of the "
        f"objective's step, {pull.kin_share:.2%} differs from cross entropy in how wrong classes are treated. Give a tree "
        "with groups of several classes, or learn one from the data.",
    )


def without_weight(objective: Objective, pull: Pull, spread: Spread) -> Finding | None:
    if isinstance(objective, TreeObjective):
        return None if spread.possible < FLAT else _tree_without_weight(pull)
    if pull.kin_share >= KIN:
        return None
    kin = f"{pull.kin_share:.2%} of the step (below {KIN:.0%}) tells wrong classes apart"
    cause: Cause = "targets without structure"
    if pull.rows is None:
        sentence = f"As it stands, {type(objective).__name__} treats all wrong classes alike: {kin}."
    elif pull.rows.one_hot >= 0.5:
        sentence = (
            f"The targets of {pull.rows.one_hot:.0%} of the classes are one-hot: {kin}. Give a relation in which classes "
            "have kin (no groups of one class, no zero rows) and a share (sigma, eps) above 0."
        )
    elif pull.rows.tilt < UNIFORM:
        sentence = (
            f"The targets are uniform over the wrong classes, or nearly (tilt {pull.rows.tilt:.3f} of 1): {kin}, though a "
            f"share of {pull.rows.moved:.3f} is given away. Give a relation in which some classes are nearer than others."
        )
    else:
        cause = "weights vanish"
        sentence = (
            f"The share given to kin vanishes: {pull.rows.moved:.4f} of the target, so that {kin}. Raise it (sigma or eps "
            "to .1 or more, a smaller beta); where it is learned, raise the prior."
        )
    return Finding(cause, "pull.kin_share", pull.kin_share, KIN, sentence)


def _tree_without_weight(pull: Pull) -> Finding | None:
    if pull.kin_share < KIN:
        return Finding(
            "weights vanish",
            "pull.kin_share",
            pull.kin_share,
            KIN,
            f"The tree has no weight in the loss: {pull.kin_share:.2%} of the step (below {KIN:.0%}) differs from cross "
            "entropy in how wrong classes are treated. Raise what weighs its levels (HXE's alpha to .1 or more).",
        )
    assert pull.weakest_level is not None
    if pull.weakest_level >= LEVEL:
        return None
    return Finding(
        "weights vanish",
        "pull.weakest_level",
        pull.weakest_level,
        LEVEL,
        f"A level of the tree has no weight: it gets {max(pull.weakest_level, 0):.1e} of the pull that the strongest level "
        f"gets (below {LEVEL}). Let the weights differ less between levels (HXE's alpha to .5 or less).",
    )


def respected(judged: Mistakes, plain: bool, spread: Spread) -> Finding | None:
    who, where = ("plain model", "reference") if plain else ("model", "mistakes")
    cause: Cause = "tree respected already"
    if not judged.mistakes:
        sentence = f"The {who} makes no mistakes on {judged.samples} samples, so none can be better; take harder ones."
        return Finding(cause, f"{where}.mistakes", 0, 1, sentence)
    if spread.possible < FLAT or not judged.room < ROOM:
        return None
    more = (
        "The tree adds nothing to what the data says already."
        if plain
        else "Whether the loss or the data made it so, a plain model's log-probabilities as reference would tell."
    )
    return Finding(
        cause,
        f"{where}.room",
        judged.room,
        ROOM,
        f"The {who} respects the tree already: severity {judged.severity:.3f} over {judged.mistakes} mistakes, where the "
        f"best is {judged.best:.3f} and mistakes at random have {judged.random:.3f}, so that {judged.room:.0%} of the room "
        f"is left (below {ROOM:.0%}); CRM would change the mean distance by {judged.crm_change:+.1%}. {more}",
    )
