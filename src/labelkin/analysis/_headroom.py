"""Headroom: how much less severe mistakes could be in a tree, and how much of that is left for a model."""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from labelkin import decide
from labelkin.structure import Floats, Ints, Taxonomy

AT_ONCE = 256  # number of classes whose distances to all others are in memory at once


class Spread(NamedTuple):
    """How much the distances between classes differ in a tree.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.analysis._headroom import measure_spread
        >>> measure_spread(Taxonomy.from_nested(["cat", "dog", "car"])).possible
        0.0
    """

    possible: float  # relative decrease in severity from random to best mistakes: 0 (flat) to below 1
    with_kin: float  # the share of classes that are nearer to some classes than to others


class Mistakes(NamedTuple):
    """A model's mistakes compared with the best and with random ones on the same samples; distances are heights in the tree.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.analysis._headroom import measure_mistakes
        >>> tree = Taxonomy.from_groups({"pet": ["cat", "dog"], "thing": ["car", "bus"]})
        >>> log_probs = torch.tensor([[0.1, 0.7, 0.1, 0.1]]).log()
        >>> measure_mistakes(log_probs, torch.tensor([0]), tree).severity
        1.0
    """

    samples: int
    mistakes: int
    severity: float  # mean distance of the mistakes; NaN without mistakes
    best: float  # severity if each mistake were a nearest class
    random: float  # severity if each mistake were a random class
    headroom: float  # 0 (best) to 1 (random), above 1 if worse than random; see `measure_mistakes`
    crm_change: float  # relative change of the mean distance with CRM decisions: -.1 is 10 % less


def measure_spread(taxonomy: Taxonomy) -> Spread:
    """Measure how much the distances between classes differ in a tree, with equal weight for each class."""
    nearest, mean = _best_and_random(taxonomy, np.arange(len(taxonomy.leaves)))
    return Spread(float(1 - nearest.mean() / mean.mean()), float((nearest < mean).mean()))


def measure_mistakes(log_probs: Tensor, target: Tensor, taxonomy: Taxonomy) -> Mistakes:
    """Measure the mistakes of the most probable class of each sample.

    `headroom` is `(severity - best) / (random - best)`, computed as if one more mistake had been made at random: five
    mistakes, all on nearest classes, give 1/6 and not 0, because they are little evidence. It is NaN without
    mistakes or on a flat tree.

    Args:
        log_probs: Log-probabilities, (n, K).
        target: True class positions, (n,).
        taxonomy: Tree over the classes.

    Returns:
        The measurements.
    """
    probs = log_probs.exp()
    found = probs.argmax(-1)
    true, guessed = target[found != target].numpy(), found[found != target].numpy()
    distance = taxonomy.distance("height", true, guessed)
    seen, place = np.unique(true, return_inverse=True)
    nearest, mean = _best_and_random(taxonomy, seen)
    best, random = nearest[place], mean[place]
    rules = decide.compare_rules(probs, target, taxonomy)
    total, after = rules.before.average_distance, rules.after.average_distance
    return Mistakes(
        samples=len(target),
        mistakes=len(true),
        severity=_mean(distance),
        best=_mean(best),
        random=_mean(random),
        headroom=_headroom(distance - best, random - best),
        crm_change=after / total - 1 if total else float("nan"),
    )


def _headroom(excess: Floats, at_random: Floats) -> float:
    if not at_random.sum():
        return float("nan")
    return float((excess.sum() + at_random.mean()) / (at_random.sum() + at_random.mean()))


def _best_and_random(taxonomy: Taxonomy, classes: Ints) -> tuple[Floats, Floats]:
    """Return the distance from each class to the nearest other one, and its mean over all others."""
    everyone = np.arange(len(taxonomy.leaves))
    nearest, mean = np.empty(len(classes)), np.empty(len(classes))
    for start in range(0, len(classes), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        distance = taxonomy.distance("height", classes[part, None], everyone)
        mean[part] = distance.sum(1) / (len(everyone) - 1)
        nearest[part] = np.where(distance > 0, distance, np.inf).min(1)
    return nearest, mean


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
