"""Risk and coverage at the levels of a tree: how often answers are wrong if only the most confident ones are given."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin.audit._decision_findings import LevelRisk
from labelkin.audit._scores import Scores
from labelkin.decide import node_probs
from labelkin.structure import Taxonomy

MOST_LEVELS = 4
STEPS = 100  # points of a curve
Ints = npt.NDArray[np.int64]


def level_risks(probs: Scores, target: Tensor, tree: Taxonomy) -> tuple[LevelRisk, ...]:
    """Return the risk of the levels of a tree over all coverages, the classes first.

    Args:
        probs: (n, K) probabilities.
        target: (n,) true class positions.
        tree: The tree over the classes.
    """
    depths = _depths(tree)
    levels = [tree.level(depth) for depth in depths]

    def answers(probs: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        nodes = node_probs(probs, tree)
        return tuple(part for level in levels for part in _answers(nodes, target, level))

    found = probs.each(answers, target)
    return tuple(
        _risk(confidence, wrong, depth, len(np.unique(level)), tree)
        for depth, level, confidence, wrong in zip(depths, levels, found[::2], found[1::2], strict=True)
    )


def _depths(tree: Taxonomy) -> list[int]:
    """Return the depths of the levels to show, deepest first: levels that differ from each other and have two nodes or more."""
    deepest = int(tree.depth.max())
    sizes = {depth: len(np.unique(tree.level(depth))) for depth in range(deepest, 0, -1)}
    distinct = [depth for depth in sizes if sizes[depth] > 1 and sizes[depth] != sizes.get(depth - 1)]
    shown = np.linspace(0, len(distinct) - 1, min(MOST_LEVELS, len(distinct))).round().astype(int)
    return [distinct[place] for place in shown]


def _answers(nodes: Tensor, target: Tensor, level: Ints) -> tuple[Tensor, Tensor]:
    """Return the probability of the most probable node of a level for each sample (n,), and whether that node is wrong."""
    groups = np.unique(level)
    confidence, best = nodes[:, torch.from_numpy(groups)].double().max(-1)
    return confidence, torch.from_numpy(groups[best.numpy()] != level[target.numpy()])


def _risk(confidence: Tensor, wrong: Tensor, depth: int, nodes: int, tree: Taxonomy) -> LevelRisk:
    risk = expected_risk(confidence, wrong)
    counts = torch.unique(torch.linspace(0, len(risk), STEPS + 1, dtype=torch.float64).ceil().long())[1:]
    return LevelRisk(
        depth,
        nodes,
        nodes == len(tree.leaves),
        tuple((counts / len(risk)).tolist()),
        tuple(risk[counts - 1].tolist()),
        float(risk.mean()),
    )


def expected_risk(confidence: Tensor, wrong: Tensor) -> Tensor:
    """Return the shares (n,) of wrong answers among the 1, 2, ..., n most confident samples.

    Equally confident samples are answered in random order, and the risk is its expectation, so that it does not depend on the
    order of the samples.

    >>> expected_risk(torch.tensor([0.9, 0.5, 0.5]), torch.tensor([False, True, False])).tolist()
    [0.0, 0.25, 0.3333333333333333]
    """
    _, tied, sizes = torch.unique(-confidence.double(), return_inverse=True, return_counts=True)
    share = torch.zeros(len(sizes), dtype=torch.float64).index_add_(0, tied, wrong.double()) / sizes
    ordered: Tensor = share.repeat_interleave(sizes)
    return ordered.cumsum(0) / torch.arange(1, len(ordered) + 1)
