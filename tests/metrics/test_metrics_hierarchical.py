"""Distances and ancestors against hiclass and literal loops, on trees of every shape."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin import InputError, Taxonomy, metrics
from support.later import Later
from support.trees import KINDS, random_taxonomy, taxonomies

hiclass = Later("hiclass.metrics")

PET = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"], "wild": ["wolf"]}, "machine": ["car"]})


def way_up(tree: Taxonomy, leaf: int) -> list[str]:
    """The names from the class up to the node below the root."""
    node, names = int(tree.leaves[leaf]), []
    while node:
        names.append(tree.names[node])
        node = int(tree.parents[node])
    return names


def levels(tree: Taxonomy, classes: torch.Tensor) -> list[list[str]]:
    """What hiclass takes: a row of names from the top down, padded with empty ones."""
    rows = [way_up(tree, leaf)[::-1] for leaf in classes.tolist()]
    width = int(tree.depth.max())
    return [row + [""] * (width - len(row)) for row in rows]


def drawn(tree: Taxonomy, seed: int, samples: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    predicted, target = torch.randint(len(tree.leaves), (2, samples), generator=draw)
    return predicted, target


PARITY = {  # by the names of hiclass
    "precision": metrics.hierarchical_precision,
    "recall": metrics.hierarchical_recall,
    "f1": metrics.hierarchical_f1,
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:F-score is ill-defined")  # nothing shared: 0 there as here
@pytest.mark.parametrize("name", PARITY)
@settings(max_examples=40, deadline=None)
@given(tree=taxonomies(), seed=st.integers(0, 1000))
def test_ancestor_metrics_are_hiclass_s(name: str, tree: Taxonomy, seed: int):
    ours, theirs = PARITY[name], getattr(hiclass, name)
    predicted, target = drawn(tree, seed)
    true, guess = np.array(levels(tree, target)), np.array(levels(tree, predicted))
    found = ours(predicted, target, tree)
    assert found.mean == pytest.approx(theirs(true, guess, "micro"), abs=1e-12)
    assert float(found.values.mean()) == pytest.approx(theirs(true, guess, "macro"), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_f1_of_a_sample_by_sets(kind: str):
    tree = random_taxonomy(np.random.default_rng(5), 15, kind)
    predicted, target = drawn(tree, 5)
    expected = []
    for guess, true in zip(predicted.tolist(), target.tolist(), strict=True):
        a, b = set(way_up(tree, guess)), set(way_up(tree, true))
        precision, recall = len(a & b) / len(a), len(a & b) / len(b)
        expected.append(2 * precision * recall / (precision + recall) if a & b else 0.0)
    assert metrics.hierarchical_f1(predicted, target, tree).values.tolist() == pytest.approx(expected)


def test_ancestors_by_hand():
    """A cat called wolf shares `animal` of three nodes; a car called dog shares none of one, and of three guessed."""
    predicted, target = torch.tensor([2, 1]), torch.tensor([0, 3])
    assert metrics.hierarchical_precision(predicted, target, PET).mean == pytest.approx(1 / 6)
    assert metrics.hierarchical_recall(predicted, target, PET).mean == pytest.approx(1 / 5)
    assert metrics.hierarchical_recall(predicted, target, PET).values.tolist() == pytest.approx([1 / 3, 0])
    assert metrics.hierarchical_f1(predicted, target, PET).mean == pytest.approx(2 / 11)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["height", "edges", "semantic"])
@pytest.mark.parametrize("shape", ["unbalanced", "single-child", "chain"])
def test_average_distance_by_a_loop(kind: str, shape: str):
    tree = random_taxonomy(np.random.default_rng(1), 24, shape)
    draw = torch.Generator().manual_seed(1)
    scores, target = torch.rand(30, 24, generator=draw), torch.randint(24, (30,), generator=draw)

    def height(node: int) -> int:
        below = np.flatnonzero(tree.parents == node)
        return 1 + max(map(height, below)) if len(below) else 0

    def distance(a: int, b: int) -> int:
        up, other = [*way_up(tree, a), tree.names[0]], [*way_up(tree, b), tree.names[0]]
        meeting = next(name for name in up if name in other)
        if kind == "height":
            return height(tree.names.index(meeting))
        steps = up.index(meeting), other.index(meeting)
        return sum(steps) if kind == "edges" else max(steps)

    for k in (1, 5, 20):
        found = metrics.average_distance(scores, target, tree, k=k, distance=kind)
        expected = []
        for row, true in zip(scores.tolist(), target.tolist(), strict=True):
            best = sorted(range(24), key=lambda label: -row[label])[:k]
            expected.append(sum(distance(true, label) for label in best) / k)
        assert found.values.tolist() == pytest.approx(expected)
        assert found.mean == pytest.approx(sum(expected) / len(expected))
        least = [sum(sorted(distance(true, label) for label in range(24))[:k]) / k for true in target.tolist()]
        assert metrics.least_average_distance(target, tree, k=k, distance=kind).values.tolist() == pytest.approx(least)


def test_no_ranking_comes_below_the_least_average_distance():
    tree = random_taxonomy(np.random.default_rng(2), 12, "unbalanced")
    target = torch.arange(12)
    best = -torch.from_numpy(tree.distance("height")).double()
    floor = metrics.least_average_distance(target, tree, k=5)
    assert metrics.average_distance(best, target, tree, k=5).values.tolist() == pytest.approx(floor.values.tolist())
    assert metrics.average_distance(torch.rand(12, 12), target, tree, k=5).mean >= floor.mean
    with pytest.raises(InputError, match="k: expected at most the number of classes, 12"):
        metrics.least_average_distance(target, tree, k=13)


def test_average_distance_at_1_counts_hits_and_severity_does_not():
    scores, target = torch.eye(4)[[0, 1, 3]], torch.tensor([0, 0, 0])
    assert metrics.average_distance(scores, target, PET).values.tolist() == [0, 1, 3]
    assert metrics.mistake_severity(scores.argmax(-1), target, PET).mean == 2


@pytest.mark.parametrize(
    "metric",
    [metrics.hierarchical_precision, metrics.hierarchical_recall, metrics.hierarchical_f1],
    ids=lambda f: f.__name__,
)
def test_without_samples_they_are_undefined(metric):
    nothing = torch.zeros(0, dtype=torch.long)
    with pytest.warns(metrics.UndefinedMetric, match=f"{metric.__name__}: there are no samples"):
        assert math.isnan(metric(nothing, nothing, PET).mean)
    with pytest.warns(metrics.UndefinedMetric, match="average_distance: there are no samples"):
        assert math.isnan(metrics.average_distance(torch.zeros(0, 4), nothing, PET).mean)


@pytest.mark.parametrize(
    ("scores", "target", "options", "sentence"),
    [
        (torch.zeros(2, 3), [0, 1], {}, "one column for each of 4 classes, got 3"),
        (torch.zeros(2, 4), [0, 4], {}, "target: expected class positions from 0 to 3, got 4"),
        (torch.zeros(2, 4), [0, -1], {}, "target: expected class positions from 0 to 3, got -1"),
        (torch.zeros(2, 4), [0.0, 1.0], {}, "target: expected class positions as integers, got torch.float32"),
        (torch.zeros(2, 4), [0], {}, r"target: expected shape \(2,\), like the rows of scores"),
        (torch.zeros(4), [0], {}, r"scores: expected a tensor of shape \(n, K\).*got shape \(4,\)"),
        (torch.zeros(2, 4), [0, 1], {"k": 5}, "k: expected at most the number of classes, 4, got 5"),
        (torch.zeros(2, 4), [0, 1], {"k": 0}, "k: expected a whole number of at least 1"),
        (torch.zeros(2, 4), [0, 1], {"distance": "hight"}, "Did you mean 'height'"),
        (torch.tensor([[1, 0, 0, 0.0], [math.nan] * 4]), [0, 1], {}, r"4 NaN in 1 of 2 rows \(1\)"),
    ],
)
def test_bad_scores_are_refused(scores, target, options, sentence: str):
    with pytest.raises(InputError, match=sentence):
        metrics.average_distance(scores, torch.tensor(target), PET, **options)


def test_predictions_that_are_no_classes_are_refused():
    with pytest.raises(InputError, match="predicted: expected class positions from 0 to 3, got 9"):
        metrics.hierarchical_f1(torch.tensor([9]), torch.tensor([0]), PET)
    with pytest.raises(InputError, match="predicted: expected class positions as integers"):
        metrics.mistake_severity(torch.tensor([0.5]), torch.tensor([0]), PET)


# Answers at inner nodes.


def ancestor_sets(tree, nodes: list[int]) -> list[set[int]]:
    return [set(tree.ancestors(node).tolist()) - {0} for node in nodes]


@pytest.mark.parametrize("target_as", ["classes", "nodes"])
@pytest.mark.parametrize("kind", KINDS)
def test_inner_nodes_are_scored_by_their_ancestor_sets(kind: str, target_as):
    """By sets: the node with its ancestors, without the root."""
    tree = random_taxonomy(np.random.default_rng(2), 12, kind)
    draw = torch.Generator().manual_seed(0)
    predicted = torch.randint(len(tree), (80,), generator=draw)
    target = torch.randint(12 if target_as == "classes" else len(tree), (80,), generator=draw)
    true = tree.leaves[target.numpy()].tolist() if target_as == "classes" else target.tolist()
    ours, theirs = ancestor_sets(tree, predicted.tolist()), ancestor_sets(tree, true)
    shared = [len(a & b) for a, b in zip(ours, theirs, strict=True)]
    sizes = {"p": [len(a) for a in ours], "r": [len(b) for b in theirs]}
    form = {"predicted_as": "nodes", "target_as": target_as}
    precision = metrics.hierarchical_precision(predicted, target, tree, **form)
    recall = metrics.hierarchical_recall(predicted, target, tree, **form)
    f1 = metrics.hierarchical_f1(predicted, target, tree, **form)
    assert precision.mean == pytest.approx(sum(shared) / sum(sizes["p"]))
    assert recall.mean == pytest.approx(sum(shared) / sum(sizes["r"]))
    assert f1.mean == pytest.approx(2 * sum(shared) / (sum(sizes["p"]) + sum(sizes["r"])))
    expected = [part / whole if whole else math.nan for part, whole in zip(shared, sizes["p"], strict=True)]
    assert precision.values.tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
def test_leaves_as_nodes_are_scored_like_their_classes(kind: str):
    tree = random_taxonomy(np.random.default_rng(2), 12, kind)
    draw = torch.Generator().manual_seed(0)
    predicted, target = torch.randint(12, (2, 50), generator=draw)
    nodes = torch.from_numpy(tree.leaves[predicted.numpy()])
    for metric in (metrics.hierarchical_precision, metrics.hierarchical_recall, metrics.hierarchical_f1):
        by_node = metric(nodes, target, tree, predicted_as="nodes")
        assert torch.equal(by_node.values, metric(predicted, target, tree).values)


def test_a_less_specific_right_answer_keeps_precision_and_loses_recall():
    target = torch.tensor([0])
    above = torch.tensor([int(PET.parents[PET.leaves[0]])])
    assert metrics.hierarchical_precision(above, target, PET, predicted_as="nodes").mean == 1
    assert metrics.hierarchical_recall(above, target, PET, predicted_as="nodes").mean < 1


def test_the_root_alone_has_no_precision():
    root, target = torch.zeros(3, dtype=torch.long), torch.tensor([0, 1, 2])
    with pytest.warns(metrics.UndefinedMetric, match="the only node in the denominator is the root"):
        assert math.isnan(metrics.hierarchical_precision(root, target, PET, predicted_as="nodes").mean)
    assert metrics.hierarchical_recall(root, target, PET, predicted_as="nodes").mean == 0
    assert metrics.hierarchical_f1(root, target, PET, predicted_as="nodes").mean == 0


@pytest.mark.parametrize(
    ("predicted", "options", "sentence"),
    [
        ([99], {"predicted_as": "nodes"}, r"predicted: expected node positions from 0 to \d+, got 99"),
        ([4], {}, "predicted: expected class positions from 0 to 3, got 4"),
        ([0], {"predicted_as": "node"}, "Did you mean 'nodes'"),
        ([0], {"target_as": "leaf"}, "target_as: expected one of 'classes', 'nodes'"),
    ],
)
def test_positions_of_the_wrong_kind_are_refused(predicted, options, sentence: str):
    with pytest.raises(InputError, match=sentence):
        metrics.hierarchical_f1(torch.tensor(predicted), torch.tensor([0]), PET, **options)
