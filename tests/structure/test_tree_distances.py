"""The distance "depth", which released code uses, and the keyword `distance=` that every function shares."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from labelkin import decide, metrics, relations
from labelkin._checks import InputError
from labelkin.comparison import Comparison, Row
from labelkin.comparison._table import comparison_notes
from labelkin.structure import DISTANCES, Taxonomy
from support.trees import taxonomies

# Classes of depths 3, 3, 2 and 2.
UNEQUAL = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"]}, "rock": ["granite", "marble"]})
CHEAP = Taxonomy.from_nested([{"a": [{"b": ["x", "y"]}, "z"]}, "w"])


def released_distance(tree: Taxonomy, a: int, b: int) -> int:
    """`max_depth - depth(lca)`, walking up from each class; a class is at distance 0 from itself."""
    if a == b:
        return 0

    def ways(node: int) -> list[int]:
        found = [node]
        while tree.parents[found[-1]] >= 0:
            found.append(int(tree.parents[found[-1]]))
        return found[::-1]

    deepest = max(len(ways(int(leaf))) - 1 for leaf in tree.leaves)
    left, right = ways(int(tree.leaves[a])), ways(int(tree.leaves[b]))
    shared = sum(x == y for x, y in zip(left, right, strict=False)) - 1
    return deepest - shared


def released_matrix(tree: Taxonomy) -> np.ndarray:
    classes = range(len(tree.leaves))
    return np.array([[released_distance(tree, a, b) for b in classes] for a in classes], dtype=np.float64)


def test_hand_worked_depth_distances() -> None:
    x, y, z, w = range(4)
    found = CHEAP.distance("depth")
    assert (found[x, y], found[x, z], found[x, w]) == (1, 2, 3)
    assert CHEAP.distance("height")[z, x] == 2
    assert found.diagonal().tolist() == [0, 0, 0, 0], "a correct prediction costs nothing, however shallow its leaf"
    shallow = Taxonomy.from_nested([{"a": {"b": ["x", "y"]}}, {"c": ["u", "v"]}])
    u, v = shallow.classes.index("u"), shallow.classes.index("v")
    assert shallow.distance("height", u, v) == 1
    assert shallow.distance("depth", u, v) == 2, "siblings of a shallow branch"


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(taxonomies(max_leaves=12))
def test_depth_distances_equal_a_loop(tree: Taxonomy) -> None:
    slow = released_matrix(tree)
    assert np.array_equal(tree.distance("depth"), slow)
    everyone = np.arange(len(slow))
    assert np.array_equal(tree.distance("depth", everyone[:, None], everyone), slow)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(taxonomies(max_leaves=12))
def test_depth_is_an_ultrametric_at_least_the_height(tree: Taxonomy) -> None:
    depth, height = tree.distance("depth"), tree.distance("height")
    assert np.array_equal(depth, depth.T)
    assert (depth >= height).all()
    assert ((depth == 0) == np.eye(len(depth), dtype=bool)).all()
    assert (depth[:, None, :] <= np.maximum(depth[:, :, None], depth[None, :, :])).all()
    if len(set(tree.depth[tree.leaves].tolist())) == 1:
        assert np.array_equal(depth, height)


def test_depth_is_the_height_where_all_leaves_are_equally_deep() -> None:
    level = Taxonomy.from_nested({"a": {"b": ["1", "2"], "c": ["3", "4"]}, "d": {"e": ["5"], "f": ["6", "7"]}})
    assert np.array_equal(level.distance("depth"), level.distance("height"))
    assert not np.array_equal(UNEQUAL.distance("depth"), UNEQUAL.distance("height"))


def draw(samples: int, classes: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(samples, classes, generator=generator, dtype=torch.float64).softmax(-1)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(taxonomies(max_leaves=12))
def test_depth_costs_by_the_tree_are_those_by_the_matrix(tree: Taxonomy) -> None:
    probs = draw(20, len(tree.leaves))
    matrix = torch.from_numpy(released_matrix(tree))
    found = decide.expected_costs(probs, tree, distance="depth")
    torch.testing.assert_close(found, probs @ matrix, rtol=0, atol=1e-12)
    chosen = decide.least_cost(probs, tree, distance="depth")
    best = (probs @ matrix).gather(-1, chosen[:, None]).squeeze(-1)
    torch.testing.assert_close(best, (probs @ matrix).amin(-1), rtol=0, atol=1e-12)
    assert decide.least_cost_top_k(probs, tree, 2, distance="depth")[:, 0].equal(chosen)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(taxonomies(max_leaves=12))
def test_depth_severity_and_average_distance_by_a_loop(tree: Taxonomy) -> None:
    generator = torch.Generator().manual_seed(1)
    size = len(tree.leaves)
    scores = torch.randn(30, size, generator=generator)
    target = torch.randint(size, (30,), generator=generator)
    predicted = scores.argmax(-1)
    slow = [released_distance(tree, int(t), int(p)) for t, p in zip(target, predicted, strict=True) if t != p]
    assert slow
    assert metrics.mistake_severity(predicted, target, tree, distance="depth").mean == pytest.approx(np.mean(slow))
    best = scores.topk(2).indices
    slow = [released_distance(tree, int(t), int(p)) for t, row in zip(target, best, strict=True) for p in row]
    assert metrics.average_distance(scores, target, tree, k=2, distance="depth").mean == pytest.approx(np.mean(slow))
    module = metrics.MistakeSeverity(taxonomy=tree, distance="depth")
    module.update(predicted, target)
    assert float(module.compute()) == pytest.approx(
        metrics.mistake_severity(predicted, target, tree, distance="depth").mean
    )


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(taxonomies(max_leaves=12))
def test_depth_soft_labels_are_the_released_ones(tree: Taxonomy) -> None:
    """`exp(-beta d / max d)`, divided by the sum of the row, as in the released `make_all_soft_labels`."""
    matrix = torch.from_numpy(released_matrix(tree))
    weights = torch.exp(-7 * matrix / matrix.max())
    wanted = weights / weights.sum(-1, keepdim=True)
    found = relations.tree_targets(tree, beta=7.0, distance="depth")
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
    rows = relations.tree(tree, beta=7.0, distance="depth", structured=True)
    weights = weights.fill_diagonal_(0)
    torch.testing.assert_close(rows.dense(), weights / weights.sum(-1, keepdim=True), rtol=1e-10, atol=1e-12)


def test_severity_modules_of_two_distances_keep_their_own_sums() -> None:
    from torchmetrics import MetricCollection

    both = MetricCollection(
        {kind: metrics.MistakeSeverity(taxonomy=UNEQUAL, distance=kind) for kind in ("height", "depth")}
    )
    cat, _, granite, marble = range(4)
    both.update(torch.tensor([cat]), torch.tensor([granite]))  # equal by both
    both.update(torch.tensor([marble]), torch.tensor([granite]))
    found = both.compute()
    wanted = {
        kind: float(UNEQUAL.distance(kind, [cat, marble], [granite, granite]).mean()) for kind in ("height", "depth")
    }
    assert {kind: float(value) for kind, value in found.items()} == wanted


def test_notes_of_a_table_name_the_distance() -> None:
    said = comparison_notes(
        Comparison([Row("one-hot", "one-hot", 1, (0,), 0.5, 0.0)], "one-hot", "digits", "given", Path(), {}, [])
    )
    assert any('distance="height"' in note for note in said)


PROBS, TARGET = draw(4, 4), torch.tensor([0, 1, 2, 3])
CALLS: dict[str, Callable[..., Any]] = {
    "Taxonomy.distance": lambda **options: CHEAP.distance(**options).tolist(),
    "least_cost": lambda **options: decide.least_cost(PROBS, CHEAP, **options).tolist(),
    "least_cost_top_k": lambda **options: decide.least_cost_top_k(PROBS, CHEAP, 2, **options).tolist(),
    "expected_costs": lambda **options: decide.expected_costs(PROBS, CHEAP, **options).tolist(),
    "average_distance": lambda **options: metrics.average_distance(PROBS, TARGET, CHEAP, k=2, **options).mean,
    "AverageDistance": lambda **options: metrics.AverageDistance(taxonomy=CHEAP, **options).distance,
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@every_call
def test_the_old_keyword_still_works_with_a_warning(call: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {kind: call(distance=kind) for kind in DISTANCES}
    with pytest.warns(DeprecationWarning, match="kind= is deprecated; use distance= instead") as caught:
        assert {kind: call(kind=kind) for kind in DISTANCES} == found
    assert {warning.filename for warning in caught} == {__file__}


@every_call
def test_one_error_for_an_unknown_distance(call: Callable[..., Any]) -> None:
    with pytest.raises(
        InputError, match=r"distance: expected one of 'semantic', .*, got 'hight'\. Did you mean 'height'"
    ):
        call(distance="hight")
