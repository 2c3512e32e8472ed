"""HOPS against its loop, its bounds, and what average distances do not see."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin import InputError, Taxonomy, metrics
from labelkin.metrics import UndefinedMetric, _hops
from support import reference_peers as reference
from support.numeric import close, positions, renamed, values
from support.trees import taxonomies

TREE = Taxonomy.from_paths(["a/b/x", "a/b/y", "a/z", "c/u", "c/v", "w"])
K = len(TREE.leaves)


def slow(scores, target, taxonomy, k, distance="height"):
    apart, classes = taxonomy.distance(distance).tolist(), len(taxonomy.leaves)
    found = []
    for row, y in zip(scores.tolist(), target.tolist(), strict=True):
        order = sorted(range(classes), key=lambda c: -row[c])  # stable: the lowest position comes first
        found.append(reference.hops(order, apart[y], k or classes))
    return found


@pytest.mark.parametrize("k", [None, 1, 2, 4, K])
@pytest.mark.parametrize("distance", ["height", "depth", "semantic", "edges"])
def test_hops_is_the_loop(k, distance):
    scores, target = values(0, 50, K).round(), positions(1, K, 50)
    found = metrics.hops(scores, target, TREE, k=k, distance=distance)
    close(found.values, slow(scores, target, TREE, k, distance))
    assert found.mean == pytest.approx(float(found.values.mean()))


@given(taxonomy=taxonomies(max_leaves=12), seed=st.integers(0, 2**16))
@settings(max_examples=15, deadline=None)
def test_random_trees_are_the_loop(taxonomy, seed):
    classes = len(taxonomy.leaves)
    scores, target = values(seed, 5, classes), positions(seed, classes, 5)
    for k in (None, 1, max(1, classes // 2)):
        close(metrics.hops(scores, target, taxonomy, k=k).values, slow(scores, target, taxonomy, k))


def test_the_order_of_the_tree_has_1_and_its_reverse_0():
    scores, target = -torch.from_numpy(TREE.distance("height")), torch.arange(K)
    close(metrics.hops(scores, target, TREE).values, torch.ones(K))
    close(metrics.hops(-scores, target, TREE).values, torch.zeros(K))
    for k in (2, 4):
        close(metrics.hops(scores, target, TREE, k=k).values, torch.ones(K))
        best = scores.argsort(dim=-1, descending=True, stable=True)
        best[:, :k] = best[:, :k].flip(-1)
        reverse = torch.zeros(K, K).scatter(-1, best, torch.arange(K, 0, -1.0).expand(K, K))
        close(metrics.hops(reverse, target, TREE, k=k).values, torch.zeros(K))


def test_hops_at_1_is_accuracy():
    scores, target = values(2, 40, K), positions(3, K, 40)
    assert metrics.hops(scores, target, TREE, k=1).mean == metrics.accuracy(scores.argmax(-1), target).mean


def test_it_sees_the_order_of_the_best_classes_that_average_distance_does_not():
    near, far = torch.tensor([[6.0, 5, 4, 1, 2, 3]]), torch.tensor([[4.0, 5, 6, 1, 2, 3]])
    target = torch.tensor([0])
    ours = [metrics.hops(scores, target, TREE, k=3).mean for scores in (near, far)]
    theirs = [metrics.average_distance(scores, target, TREE, k=3).mean for scores in (near, far)]
    assert theirs[0] == theirs[1]
    assert ours == [1.0, 0.0]


def test_on_a_flat_tree_only_the_place_of_the_true_class_counts():
    flat = Taxonomy.from_nested(["a", "b", "c", "d"])
    first = metrics.hops(torch.tensor([[9.0, 1, 2, 3], [9.0, 3, 2, 1]]), torch.tensor([0, 0]), flat)
    assert first.values.tolist() == [1.0, 1.0]


def test_classes_by_another_name_and_scores_on_another_scale():
    order, place = renamed(4, K)
    scores, target = values(5, 20, K), positions(6, K, 20)
    there = TREE.reorder([TREE.classes[i] for i in order])
    expected = metrics.hops(scores, target, TREE).values
    close(metrics.hops(scores[:, order], place[target], there).values, expected)
    close(metrics.hops(scores.exp(), target, TREE).values, expected)


def test_samples_in_chunks_are_those_of_one_table(monkeypatch):
    scores, target = values(7, 23, K), positions(8, K, 23)
    whole = metrics.hops(scores, target, TREE, k=4).values
    monkeypatch.setattr(_hops, "CHUNK", 5 * K)
    close(metrics.hops(scores, target, TREE, k=4).values, whole)


def test_no_samples_have_no_score():
    with pytest.warns(UndefinedMetric, match="hops"):
        found = metrics.hops(torch.zeros(0, K), torch.zeros(0, dtype=torch.int64), TREE)
    assert found.mean != found.mean


@pytest.mark.parametrize(
    ("k", "message"), [(0, "k: expected"), (K + 1, f"k: expected at most the number of classes, {K}, got {K + 1}")]
)
def test_wrong_places_are_refused(k, message):
    with pytest.raises(InputError, match=message):
        metrics.hops(torch.zeros(1, K), torch.tensor([0]), TREE, k=k)
