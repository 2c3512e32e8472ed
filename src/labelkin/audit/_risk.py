"""Risk and coverage at the levels of a tree: how often answers are wrong if only the most confident ones are given."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin.audit._columns import Column
from labelkin.audit._decision_findings import LevelRisk
from labelkin.audit._schema import Floats
from labelkin.audit._scores import Scores
from labelkin.audit._sorted_keys import SortedKeys
from labelkin.decide import node_probs
from labelkin.structure import Taxonomy

MOST_LEVELS = 4
STEPS = 100  # points of a curve
AT_ONCE = 2**15  # samples of a curve
ROUNDED = 12  # of the 52 bits after the point; confidences that differ by less than 1e-12 of them are equal
Ints = npt.NDArray[np.int64]


def level_risks(probs: Scores, target: Column, tree: Taxonomy) -> tuple[LevelRisk, ...]:
    """Return the risk of the levels of a tree over all coverages, the classes first.

    Args:
        probs: (n, K) probabilities.
        target: (n,) true class positions.
        tree: The tree over the classes.
    """
    depths = _depths(tree)
    levels = [(tree.level(depth), SortedKeys()) for depth in depths]
    for block, true in probs.beside(target):
        nodes = node_probs(block, tree)
        for level, keys in levels:
            keys.add(keys_of(*_answers(nodes, true, level)))
    return tuple(
        _risk(keys, len(probs), depth, len(np.unique(level)), tree)
        for depth, (level, keys) in zip(depths, levels, strict=True)
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


def keys_of(confidence: Tensor, wrong: Tensor) -> Ints:
    """Return whole numbers that ascend as the confidence descends; the last bit is whether the answer is wrong.

    As a whole number, the bits of a float64 that is not negative ascend with it. Its last bits are rounded away, because equal
    probabilities that were added up or scaled in blocks of other sizes may differ there.
    """
    bits = confidence.double().numpy().view(np.int64)
    keys: Ints = (-((bits + (1 << ROUNDED - 1)) >> ROUNDED) << 1) | wrong.numpy()
    return keys


def _risk(keys: SortedKeys, count: int, depth: int, nodes: int, tree: Taxonomy) -> LevelRisk:
    shown = torch.unique(torch.linspace(0, count, STEPS + 1, dtype=torch.float64).ceil().long())[1:].numpy()
    at, total, start = [], 0.0, 0
    for risk in expected_risks(keys):
        places = shown[np.searchsorted(shown, start, "right") : np.searchsorted(shown, start + len(risk), "right")]
        at += risk[places - 1 - start].tolist()
        total += float(risk.sum())
        start += len(risk)
    return LevelRisk(depth, nodes, nodes == len(tree.leaves), tuple((shown / count).tolist()), tuple(at), total / count)


def expected_risks(keys: SortedKeys) -> Iterator[Floats]:
    """Yield the shares (n,) of wrong answers among the 1, 2, ..., n most confident samples, some at a time.

    Equally confident samples are answered in random order, and the risk is its expectation, so that it does not depend on the
    order of the samples.

    >>> keys = SortedKeys()
    >>> keys.add(keys_of(torch.tensor([0.9, 0.5, 0.5]), torch.tensor([False, True, False])))
    >>> np.concatenate(list(expected_risks(keys))).tolist()
    [0.0, 0.25, 0.3333333333333333]
    """
    answered, wrong = 0, 0.0
    for sizes, mistakes in _ties(keys):
        for share, times in _pieces(mistakes / sizes, sizes):
            ordered = wrong + share.repeat(times).cumsum()
            yield ordered / np.arange(answered + 1, answered + 1 + len(ordered))
            answered, wrong = answered + len(ordered), float(ordered[-1])


def _ties(keys: SortedKeys) -> Iterator[tuple[Ints, Ints]]:
    """Yield the numbers of equally confident samples (m,) and of the wrong answers among them, the most confident first."""
    last, size, mistakes = None, 0, 0  # of the last confidence, which may continue in the next block
    for block in keys.blocks():
        confidence, start, sizes = np.unique(block >> 1, return_index=True, return_counts=True)
        found = np.add.reduceat(block & 1, start)
        if last == confidence[0]:
            sizes[0] += size
            found[0] += mistakes
        elif last is not None:
            sizes, found = np.insert(sizes, 0, size), np.insert(found, 0, mistakes)
        last, size, mistakes = int(confidence[-1]), int(sizes[-1]), int(found[-1])
        if len(sizes) > 1:
            yield sizes[:-1], found[:-1]
    if last is not None:
        yield np.array([size]), np.array([mistakes])


def _pieces(share: Floats, sizes: Ints) -> Iterator[tuple[Floats, Ints]]:
    """Yield shares of wrong answers and numbers of samples, at most `AT_ONCE` samples at a time unless many are tied."""
    ends = sizes.cumsum()
    begun, place = 0, 0
    while place < len(sizes):
        if sizes[place] > AT_ONCE:  # many equally confident samples, such as all with probability 1
            for part in range(0, int(sizes[place]), AT_ONCE):
                yield share[place : place + 1], np.array([min(AT_ONCE, int(sizes[place]) - part)])
            end = place + 1
        else:
            end = max(place + 1, int(np.searchsorted(ends, begun + AT_ONCE, "right")))
            yield share[place:end], sizes[place:end]
        begun, place = int(ends[end - 1]), end
