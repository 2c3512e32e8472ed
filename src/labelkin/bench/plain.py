"""Predictions as lists, for the literal forms."""

from typing import NamedTuple

from labelkin.bench.predictions import Predictions

Rows = list[list[float]]


class Plain(NamedTuple):
    """Predictions as lists."""

    scores: Rows
    probs: Rows
    predicted: list[int]
    target: list[int]
    parents: list[int]
    leaves: list[int]
    heights: list[int]
    distances: Rows
    groups: list[int]
    vectors: Rows
    curve: list[float]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of predicted and true class."""
        return list(zip(self.predicted, self.target, strict=True))


def plain(given: Predictions) -> Plain:
    """Convert predictions to lists."""
    tree = given.taxonomy
    parents, leaves = tree.parents.tolist(), tree.leaves.tolist()
    return Plain(
        scores=given.logits.tolist(),
        probs=given.probs.tolist(),
        predicted=given.predicted.tolist(),
        target=given.target.tolist(),
        parents=parents,
        leaves=leaves,
        heights=_heights(parents, leaves),
        distances=given.distances.tolist(),
        groups=given.groups.tolist(),
        vectors=given.vectors.tolist(),
        curve=given.curve,
    )


def _heights(parents: list[int], leaves: list[int]) -> list[int]:
    heights = [0] * len(parents)
    for leaf in leaves:
        node, steps = leaf, 0
        while node >= 0:
            heights[node] = max(heights[node], steps)
            node, steps = parents[node], steps + 1
    return heights
