"""Metrics against literal loops and scikit-learn."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, top_k_accuracy_score

from labelkin import InputError, metrics
from support.trees import random_taxonomy


@pytest.fixture(scope="module")
def predictions() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(300, 12, generator=draw), torch.randint(12, (300,), generator=draw)


def test_accuracy_and_top_k_are_scikit_learns(predictions):
    scores, target = predictions
    assert metrics.accuracy(scores.argmax(-1), target).mean == pytest.approx(accuracy_score(target, scores.argmax(-1)))
    for k in (1, 3, 5, 11):
        expected = top_k_accuracy_score(target.numpy(), scores.numpy(), k=k, labels=range(12))
        assert metrics.top_k_accuracy(scores, target, k=k).mean == pytest.approx(expected)
    assert metrics.top_k_accuracy(scores, target, k=12).mean == 1


def test_the_lowest_position_wins_a_tie():
    same, target = torch.zeros(4, 4), torch.arange(4)
    assert metrics.top_k_accuracy(same, target, k=1).values.tolist() == [True, False, False, False]
    assert metrics.top_k_accuracy(same, target, k=3).values.tolist() == [True, True, True, False]


@pytest.mark.parametrize("kind", ["balanced", "scattered"])
def test_severity_is_the_height_above_true_and_predicted_class(predictions, kind: str):
    """Walked up by hand: the ancestors of one, and the first of them above the other."""
    tree = random_taxonomy(np.random.default_rng(3), 12, kind)

    def way_up(node: int) -> list[int]:
        return [node] if node == 0 else [node, *way_up(int(tree.parents[node]))]

    def height(node: int) -> int:
        below = [child for child in range(len(tree)) if tree.parents[child] == node]
        return 1 + max(map(height, below)) if below else 0

    scores, target = predictions
    predicted = scores.argmax(-1)
    expected = [
        height(next(node for node in way_up(int(tree.leaves[y])) if node in way_up(int(tree.leaves[p]))))
        for y, p in zip(target.tolist(), predicted.tolist(), strict=True)
        if y != p
    ]
    found = metrics.mistake_severity(predicted, target, tree)
    assert found.values.tolist() == expected
    assert found.mean == pytest.approx(sum(expected) / len(expected))


def test_without_mistakes_severity_is_undefined(predictions):
    _, target = predictions
    tree = random_taxonomy(np.random.default_rng(3), 12, "balanced")
    with pytest.warns(UserWarning, match="there are no mistakes"):
        assert math.isnan(metrics.mistake_severity(target, target, tree).mean)
    assert math.isnan(metrics.summary(torch.eye(12)[target], target, tree)["severity"])


def test_shapes_that_differ_are_refused():
    with pytest.raises(InputError, match=r"target: expected shape \(3,\)"):
        metrics.accuracy(torch.zeros(3), torch.zeros(4))
