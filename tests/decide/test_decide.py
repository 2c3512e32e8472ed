"""Decisions against literal loops, hand-worked trees and samples drawn from the softmax itself."""

import math
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from labelkin import InputError, Taxonomy, decide, metrics
from support.memory import LargestTensor
from support.real import digits
from support.trees import KINDS, random_taxonomy, taxonomies

every_kind = pytest.mark.parametrize("kind", KINDS)
every_distance = pytest.mark.parametrize("distance", ["height", "edges", "semantic", "depth"])


def draw(samples: int, classes: int, seed: int = 0, scale: float = 2.0) -> Tensor:
    logits = scale * torch.randn(samples, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return logits.softmax(-1)


def tree_of(kind: str, leaves: int = 12) -> Taxonomy:
    return random_taxonomy(np.random.default_rng(5), leaves, kind)


@pytest.fixture
def pets() -> Taxonomy:
    """Root, animal and car; cat and dog under animal: nodes by name, classes cat, dog, car."""
    names = ["all", "animal", "car", "cat", "dog"]
    return Taxonomy([-1, 0, 0, 1, 1], names, [3, 4, 2])


# Least expected cost.


def test_least_cost_is_the_literal_loop():
    probs, rng = draw(40, 7), np.random.default_rng(1)
    costs = rng.normal(size=(7, 7))  # negative ones too, not symmetric, not zero on the diagonal
    expected = []
    for row in probs.tolist():
        risk = [sum(row[true] * costs[true, decided] for true in range(7)) for decided in range(7)]
        expected.append(sorted(range(7), key=risk.__getitem__))
    assert decide.least_cost(probs, costs).tolist() == [order[0] for order in expected]
    for k in (1, 3, 7):
        assert decide.least_cost_top_k(probs, torch.from_numpy(costs), k).tolist() == [order[:k] for order in expected]


def test_with_equal_costs_it_is_argmax():
    probs = draw(200, 9)
    assert torch.equal(decide.least_cost(probs, 1 - torch.eye(9)), decide.argmax(probs))
    assert torch.equal(decide.argmax(probs), probs.argmax(-1))
    assert torch.equal(decide.least_cost_top_k(probs, 1 - torch.eye(9), 4), probs.topk(4).indices)


def test_it_prefers_the_class_with_kin_by_hand(pets: Taxonomy):
    """Car is likeliest, but cat and dog share their mistakes: 1 x 0.28 + 2 x 0.42 for cat, 2 x 0.58 for car."""
    probs = torch.tensor([[0.30, 0.28, 0.42]])
    assert decide.argmax(probs).tolist() == [2]
    assert decide.least_cost(probs, pets).tolist() == [0]
    assert decide.expected_costs(probs, pets)[0].tolist() == pytest.approx([1.12, 1.14, 1.16])
    assert decide.least_cost_top_k(probs, pets, 3).tolist() == [[0, 1, 2]]


@pytest.mark.long
@every_distance
@every_kind
def test_sums_over_the_tree_are_the_dense_form(kind: str, distance: Any):
    for leaves in (2, 3, 12, 40):
        tree, probs = tree_of(kind, leaves), draw(30, leaves)
        pairs = [[float(tree.distance(distance, i, j)) for j in range(leaves)] for i in range(leaves)]
        dense = torch.einsum("nk,kj->nj", probs, torch.tensor(pairs, dtype=torch.float64))
        torch.testing.assert_close(decide.expected_costs(probs, tree, distance=distance), dense, rtol=0, atol=1e-12)
        costs = dense.gather(-1, decide.least_cost(probs, tree, distance=distance).unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(costs, dense.min(-1).values, rtol=0, atol=1e-12)


@every_kind
def test_the_order_of_classes_does_not_matter(kind: str):
    tree, probs = tree_of(kind), draw(100, 12)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(2))
    moved = tree.reorder([tree.classes[i] for i in order])
    torch.testing.assert_close(
        decide.expected_costs(probs[:, order], moved), decide.expected_costs(probs, tree)[:, order]
    )
    costs = torch.rand(12, 12, generator=torch.Generator().manual_seed(3))
    permuted = decide.least_cost(probs[:, order], costs[order][:, order])
    assert torch.equal(order[permuted], decide.least_cost(probs, costs))


def test_float32_rows_beside_a_sure_class_are_told_apart():
    probs = torch.tensor([[1.0, 1e-12, 3e-12, 2e-12]])
    assert decide.least_cost_top_k(probs, 1 - torch.eye(4), 4).tolist() == [[0, 2, 3, 1]]


def test_memory_of_a_matrix_is_that_of_one_product():
    samples, classes = 64, 100
    probs, costs = draw(samples, classes), torch.rand(classes, classes)
    with LargestTensor() as made:
        decide.least_cost_top_k(probs, costs, 5)
    assert made.numel <= max(samples, classes) * classes


@pytest.mark.long
@every_distance
def test_memory_of_a_tree_is_samples_by_nodes(distance: Any):
    classes, samples = 1000, 4
    tree, probs = tree_of("unbalanced", classes), draw(samples, classes)
    tracemalloc.start()  # sees what numpy makes
    with LargestTensor() as made:
        decide.least_cost(probs, tree, distance=distance)
        decide.operating_curve(decide.node_probs(probs, tree), torch.zeros(samples, dtype=torch.long), tree)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.numel <= max(samples * len(tree), tree.paths[tree.leaves].size) < classes**2 / 10
    assert peak < 8 * classes**2 / 2


# Ties of expected costs: the more probable class, then the lower position.


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in compositions(total - first, parts - 1))


def by_the_rule(shares: Sequence[Fraction], distances: Any) -> list[int]:
    """All classes, ranked in exact arithmetic."""
    size = len(shares)
    cost = [sum(shares[i] * Fraction(distances[i][j]) for i in range(size)) for j in range(size)]
    return sorted(range(size), key=lambda j: (cost[j], -shares[j], j))


def is_tied(shares: Sequence[Fraction], distances: Any) -> bool:
    size = len(shares)
    cost = [sum(shares[i] * Fraction(distances[i][j]) for i in range(size)) for j in range(size)]
    return cost.count(min(cost)) > 1


@pytest.mark.long
@every_distance
@pytest.mark.parametrize("total", [6, 7, 10])
@pytest.mark.parametrize(
    "nested", [{"a": ["0", "3"], "b": ["1", "2", "4"]}, ["0", {"x": ["1", {"y": ["2", "3"]}]}, "4"]]
)
def test_exact_ties_follow_the_rule_by_both_routes(nested: Any, total: int, distance: Any):
    tree = Taxonomy.from_nested(nested).reorder(tuple("01234"))
    matrix = tree.distance(distance)
    shares = [[Fraction(part, total) for part in parts] for parts in compositions(total, 5)]
    expected = [by_the_rule(row, matrix) for row in shares]
    assert sum(is_tied(row, matrix) for row in shares) > 10
    probs = torch.tensor([[float(part) for part in row] for row in shares], dtype=torch.float64)
    for costs in (tree, matrix):
        assert decide.least_cost(probs, costs, kind=distance).tolist() == [order[0] for order in expected]
        assert decide.least_cost_top_k(probs, costs, 3, kind=distance).tolist() == [order[:3] for order in expected]
        assert decide.least_cost_top_k(probs, costs, 5, kind=distance).tolist() == expected


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(taxonomies(), st.data())
def test_both_routes_follow_the_rule_on_any_tree(tree: Taxonomy, data: st.DataObject):
    """Small whole numbers make ties common; they are not divided by their sum in exact arithmetic alone."""
    size = len(tree.leaves)
    counts = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
    kind = data.draw(st.sampled_from(["height", "edges", "semantic"]))
    matrix = tree.distance(kind)
    shares = [Fraction(count, sum(counts)) for count in counts]
    probs = torch.tensor([[float(share) for share in shares]], dtype=torch.float64)
    expected = by_the_rule(shares, matrix)
    for costs in (tree, matrix):
        assert decide.least_cost_top_k(probs, costs, size, distance=kind).tolist() == [expected]
        assert decide.least_cost(probs, costs, distance=kind).tolist() == expected[:1]


def test_equal_classes_are_ranked_by_position():
    same = torch.full((1, 6), 1 / 6)
    assert decide.argmax(same).tolist() == [0]
    assert decide.least_cost_top_k(same, 1 - torch.eye(6), 6).tolist() == [[0, 1, 2, 3, 4, 5]]


@every_distance
def test_two_rules_side_by_side_by_a_loop(distance: Any):
    tree, probs = tree_of("unbalanced"), draw(60, 12)
    target = torch.multinomial(probs, 1, generator=torch.Generator().manual_seed(4)).squeeze(-1)
    found = decide.compare_rules(probs, target, tree, k=3, distance=distance)
    orders = (probs.argsort(dim=-1, descending=True), decide.least_cost_top_k(probs, tree, 3, distance=distance))
    for decided, order in zip((found.before, found.after), orders, strict=True):
        far = [
            [float(tree.distance(distance, y, c)) for c in row[:3]]
            for y, row in zip(target.tolist(), order.tolist(), strict=True)
        ]
        wrong = [row[0] for row, right in zip(far, (order[:, 0] == target).tolist(), strict=True) if not right]
        assert decided.classes.tolist() == order[:, :3].tolist()
        assert torch.equal(decided.answer, order[:, 0])
        assert decided.accuracy == pytest.approx(1 - len(wrong) / 60)
        assert decided.severity == pytest.approx(sum(wrong) / len(wrong))
        assert decided.average_distance == pytest.approx(sum(map(sum, far)) / 180)
        assert decided.costs is None


def test_rules_by_costs_need_no_tree():
    probs, costs = draw(30, 5), torch.rand(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = decide.compare_rules(probs, torch.zeros(30, dtype=torch.long), costs=costs)
    assert found.after.costs is not None
    assert torch.equal(found.after.costs, costs[0, decide.least_cost(probs, costs)])
    assert math.isnan(found.after.severity)
    assert math.isnan(found.after.average_distance)
    with pytest.raises(InputError, match="got neither"):
        decide.compare_rules(probs, torch.zeros(30, dtype=torch.long))


# A less specific answer when unsure.


@every_kind
def test_node_probs_are_sums_over_the_classes_below(kind: str):
    tree, probs = tree_of(kind), draw(20, 12).float()
    found = decide.node_probs(probs, tree)
    assert found.dtype == torch.float32
    for node in range(len(tree)):
        below = [k for k, leaf in enumerate(tree.leaves) if node in tree.ancestors(int(leaf))]
        torch.testing.assert_close(found[:, node], probs[:, below].sum(-1))
    assert bool((found[:, 1:] <= found[:, tree.parents[1:].copy()]).all())


@pytest.mark.parametrize(
    ("threshold", "node"), [(0.0, "dog"), (0.5, "dog"), (0.51, "animal"), (0.75, "animal"), (0.76, "all"), (1.0, "all")]
)
def test_fallback_by_hand(pets: Taxonomy, threshold: float, node: str):
    """A probability equal to the threshold reaches it."""
    nodes = decide.node_probs(torch.tensor([[0.25, 0.5, 0.25]]), pets)
    assert decide.fallback(nodes, pets, threshold).tolist() == [pets.node(node)]


def test_the_more_probable_branch_is_answered_even_if_the_likeliest_class_is_elsewhere(pets: Taxonomy):
    nodes = decide.node_probs(torch.tensor([[0.3, 0.28, 0.42]]), pets)
    assert decide.fallback(nodes, pets, 0.5).tolist() == [pets.node("animal")]  # 0.58, though car is likeliest
    assert decide.fallback(nodes, pets, 0.6).tolist() == [0]
    assert decide.fallback(nodes, pets, 0.0).tolist() == [pets.node("cat")]


def test_ties_of_children_go_to_the_lowest_class():
    """In class order, which is not the order of the nodes."""
    tree = Taxonomy.from_nested({"a": ["0", "3"], "b": ["1", "2"]}).reorder(("1", "0", "2", "3"))
    nodes = decide.node_probs(torch.full((1, 4), 0.25), tree)
    assert decide.fallback(nodes, tree, 0.5).tolist() == [tree.node("b")]
    assert decide.fallback(nodes, tree, 0.0).tolist() == [tree.node("1")]
    flat = Taxonomy.from_nested(["0", "1", "2"]).reorder(("2", "0", "1"))
    same = decide.node_probs(torch.full((1, 3), 1 / 3), flat)
    assert decide.fallback(same, flat, 0.0).tolist() == [flat.node("2")]


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(taxonomies(), st.data())
def test_answers_are_nested_and_above_a_half_the_deepest(tree: Taxonomy, data: st.DataObject):
    size = len(tree.leaves)
    counts = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
    probs = torch.tensor([counts], dtype=torch.float64) / sum(counts)
    nodes = decide.node_probs(probs, tree)
    row = nodes[0].tolist()
    thresholds = sorted({0.0, 0.3, 0.5, 0.51, 0.7, 1.0, *(min(p, 1.0) for p in row)})
    before = None
    for threshold in thresholds:
        answer = int(decide.fallback(nodes, tree, threshold))
        assert answer == 0 or row[answer] >= threshold
        assert before is None or answer in tree.ancestors(before)
        passing = [node for node, prob in enumerate(row) if prob >= threshold]
        deepest = max((int(tree.depth[node]) for node in passing), default=0)
        if threshold > 0.5:
            assert int(tree.depth[answer]) == deepest
        before = answer
    assert bool(tree.is_leaf[int(decide.fallback(nodes, tree, 0.0))])


def test_float32_probabilities_reach_their_own_decimal(pets: Taxonomy):
    nodes = torch.tensor([[1.0, 0.9, 0.1, 0.7, 0.2]])
    assert decide.fallback(nodes, pets, 0.7).tolist() == [3]


def walk_down(row: list[float], tree: Taxonomy) -> int:
    node = 0
    while len(tree.children[node]):
        node = max((int(child) for child in tree.children[node]), key=row.__getitem__)
    return node


@pytest.mark.long
@every_kind
def test_fallback_climbs_as_the_threshold_rises(kind: str):
    tree, probs = tree_of(kind), draw(200, 12)
    nodes = decide.node_probs(probs, tree)
    before = decide.fallback(nodes, tree, 0.0)
    assert before.tolist() == [walk_down(row, tree) for row in nodes.tolist()]
    climbed = 0
    for threshold in np.linspace(0.02, 1, 50):
        now = decide.fallback(nodes, tree, float(threshold))
        for upper, lower, row in zip(now.tolist(), before.tolist(), nodes.tolist(), strict=True):
            way = tree.ancestors(lower).tolist()
            assert upper in way
            assert row[upper] >= threshold or upper == 0
            below = way[way.index(upper) + 1 :]
            assert all(row[node] < threshold for node in below)
            climbed += bool(below)
        before = now
    assert climbed >= 200
    # Only a chain of single children below the root can still be certain.
    assert all(row[node] >= 1 or node == 0 for row, node in zip(nodes.tolist(), before.tolist(), strict=True))


@every_kind
def test_operating_curve_is_the_literal_loop(kind: str):
    tree, probs = tree_of(kind), draw(50, 12)
    target = torch.multinomial(probs, 1, generator=torch.Generator().manual_seed(4)).squeeze(-1)
    nodes, thresholds = decide.node_probs(probs, tree), torch.tensor([0.0, 0.3, 0.6, 0.9, 1.0])
    curve = decide.operating_curve(nodes, target, tree, thresholds)
    for i, threshold in enumerate(thresholds.tolist()):
        answers = decide.fallback(nodes, tree, threshold).tolist()
        right = [a in tree.ancestors(int(tree.leaves[y])) for a, y in zip(answers, target.tolist(), strict=True)]
        counts = [sum(bool(tree.is_leaf[node]) for node in tree.subtree(a)) for a in answers]
        assert float(curve.threshold[i]) == threshold
        assert float(curve.correctness[i]) == pytest.approx(sum(right) / 50)
        assert float(curve.specificity[i]) == pytest.approx(sum(1 - math.log(c) / math.log(12) for c in counts) / 50)
        assert float(curve.leaf_share[i]) == pytest.approx(sum(bool(tree.is_leaf[a]) for a in answers) / 50)
        assert float(curve.unanswered[i]) == pytest.approx(sum(c == 12 for c in counts) / 50)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_operating_curve_reaches_a_threshold_that_equals_a_probability(dtype: torch.dtype):
    tree = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "vehicle": ["car"]})
    eighths = torch.tensor(list(compositions(8, 4)), dtype=dtype) / 8
    tenths = torch.tensor(list(compositions(10, 4)), dtype=dtype) / 10
    nodes = decide.node_probs(torch.cat([eighths, tenths]), tree)
    target = torch.arange(len(nodes)) % 4
    thresholds = torch.tensor([0.5, 0.3, 1.0, 0.0, 0.7, 0.5, 0.125], dtype=torch.float64)  # in no order, and one twice
    curve = decide.operating_curve(nodes, target, tree, thresholds)
    for i, threshold in enumerate(thresholds.tolist()):
        answers = decide.fallback(nodes, tree, threshold).tolist()
        right = [a in tree.ancestors(int(tree.leaves[y])) for a, y in zip(answers, target.tolist(), strict=True)]
        assert float(curve.threshold[i]) == threshold
        assert float(curve.correctness[i]) == pytest.approx(np.mean(right), abs=1e-12)
        assert float(curve.leaf_share[i]) == pytest.approx(tree.is_leaf[answers].mean(), abs=1e-12)
        assert float(curve.unanswered[i]) == np.mean([answer == 0 for answer in answers])


def test_operating_curve_runs_from_classes_to_the_root():
    tree, probs = tree_of("unbalanced"), draw(300, 12)
    target = torch.multinomial(probs, 1, generator=torch.Generator().manual_seed(4)).squeeze(-1)
    curve = decide.operating_curve(decide.node_probs(probs, tree), target, tree)
    assert curve.threshold.tolist() == [i / 100 for i in range(101)]
    nodes = decide.node_probs(probs, tree)
    ends = [walk_down(row, tree) for row in nodes.tolist()]
    accuracy = sum(a == int(tree.leaves[y]) for a, y in zip(ends, target.tolist(), strict=True)) / len(ends)
    assert [float(part[0]) for part in curve] == pytest.approx([0, 1, accuracy, 1, 0])
    assert [float(part[-1]) for part in curve] == pytest.approx([1, 0, 1, 0, 1])
    assert bool((curve.specificity.diff() <= 1e-12).all())
    assert bool((curve.correctness.diff() >= -1e-12).all())
    assert bool((curve.leaf_share.diff() <= 1e-12).all())
    assert bool((curve.unanswered.diff() >= -1e-12).all())


# Temperature.


def nll(logits: Tensor, target: Tensor) -> float:
    return float(F.cross_entropy(logits.double(), target))


@pytest.mark.parametrize("hotter", [0.25, 1.0, 3.0])
def test_temperature_of_logits_that_are_off_by_a_factor_is_that_factor(hotter: float):
    probs = draw(20_000, 8)
    target = torch.multinomial(probs, 1, generator=torch.Generator().manual_seed(6)).squeeze(-1)
    found = decide.Temperature().fit(hotter * probs.log(), target)
    assert found.value == pytest.approx(hotter, rel=0.03)


@pytest.mark.parametrize("seed", range(10))
def test_temperature_never_makes_its_own_data_less_likely(seed: int):
    """And no other temperature does better: a grid around it."""
    torch.manual_seed(seed)
    logits, target = 10 ** torch.empty(1).uniform_(-1, 1) * torch.randn(60, 5), torch.randint(5, (60,))
    logits[torch.arange(60), target] += logits.std()
    scaled = decide.Temperature().fit(logits, target)
    best = nll(scaled.apply(logits.double()), target)
    assert best <= nll(logits, target) + 1e-9
    assert scaled.value is not None
    assert all(best <= nll(logits.double() / (scaled.value * by), target) + 1e-12 for by in (0.5, 0.99, 1.01, 2))
    assert torch.equal(scaled.apply(logits).argmax(-1), logits.argmax(-1))


@pytest.mark.parametrize(("sign", "end"), [(1, 1e-3), (-1, 1e3)])
def test_temperature_without_a_best_value_warns(sign: int, end: float):
    target = torch.arange(6) % 3
    with pytest.warns(UserWarning, match="the best value is beyond the limit"):
        assert decide.Temperature().fit(sign * F.one_hot(target).float(), target).value == end


@pytest.mark.filterwarnings("ignore:Temperature. the best value is beyond the limit")
@pytest.mark.parametrize("scale", [10, 100, 400])
def test_rounding_makes_no_temperature_where_all_samples_are_right(scale: int):
    for seed in range(40):
        logits = scale * torch.randn(30, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        for target, end in ((logits.argmax(-1), 1e-3), (logits.argmin(-1), 1e3)):
            parts = list(zip(logits.split(7), target.split(7), strict=True))
            assert decide.Temperature().fit(logits, target).value == end
            assert decide.Temperature().fit_blocks(parts.__iter__).value == end


@pytest.mark.parametrize("prior", [None, 0.3])
def test_temperature_with_weights_is_that_of_repeated_samples(prior: float | None):
    target = torch.arange(40) % 5
    noise = torch.randn(40, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits, weight = 3 * noise + 2 * F.one_hot(target), torch.arange(40) % 4
    repeated = logits.repeat_interleave(weight, 0), target.repeat_interleave(weight)
    written_out = decide.Temperature().fit(*repeated, prior=prior).value
    assert decide.Temperature().fit(logits, target, weight=weight, prior=prior).value == pytest.approx(
        written_out, rel=1e-9
    )
    assert decide.Temperature().fit(logits, target, prior=prior).value != pytest.approx(written_out, rel=1e-3)


# Bad input.


def nodes_of(pets: Taxonomy) -> Tensor:
    return decide.node_probs(torch.tensor([[0.2, 0.5, 0.3]]), pets)


REFUSED: dict[str, tuple[Callable[[Taxonomy], object], str]] = {
    "logits": (
        lambda _: decide.argmax(torch.tensor([[2.0, -1.0]])),
        r"probs: expected probabilities from 0 to 1, got values from -1 to 2, which look like logits",
    ),
    "logits above 0": (
        lambda _: decide.argmax(torch.tensor([[0.5, 0.5], [2.0, 1.0]])),
        r"got values from 0.5 to 2, which look like logits",
    ),
    "sums": (
        lambda _: decide.argmax(torch.tensor([[0.5, 0.5], [0.5, 0.3]])),
        r"1 of 2 that do not \(row 1 sums to 0.8",
    ),
    "NaN": (lambda _: decide.argmax(torch.tensor([[0.5, math.nan]])), "got 1 NaN or infinite"),
    "one row": (lambda _: decide.argmax(torch.tensor([0.5, 0.5])), r"expected shape \(n, K\)"),
    "empty": (lambda _: decide.least_cost(torch.zeros(0, 3), torch.eye(3)), "got an empty batch"),
    "integers": (lambda _: decide.argmax(torch.tensor([[0, 1]])), "floating-point numbers, got torch.int64"),
    "list": (lambda _: decide.argmax([[0.5, 0.5]]), "floating-point numbers, got list"),  # type: ignore[arg-type]
    "costs' shape": (lambda _: decide.least_cost(draw(2, 3), torch.eye(4)), r"costs: expected shape \(3, 3\)"),
    "costs' NaN": (lambda _: decide.least_cost(draw(2, 2), torch.full((2, 2), math.inf)), "costs: .* got 4 NaN"),
    "other classes": (lambda pets: decide.least_cost(draw(2, 4), pets), r"probs: expected shape \(n, 3\)"),
    "kind": (lambda pets: decide.least_cost(draw(2, 3), pets, distance="hight"), "Did you mean 'height'"),  # type: ignore[arg-type]
    "k of 0": (lambda pets: decide.least_cost_top_k(draw(2, 3), pets, 0), "k: expected a whole number"),
    "k above K": (lambda pets: decide.least_cost_top_k(draw(2, 3), pets, 4), "k: expected at most 3"),
    "leaf logits": (lambda pets: decide.node_probs(torch.randn(2, 3), pets), "leaf_probs: .*softmax"),
    "leaves for nodes": (lambda pets: decide.fallback(draw(2, 3), pets, 0.5), r"node_probs: expected shape \(n, 5\)"),
    "no root": (lambda pets: decide.fallback(draw(2, 5), pets, 0.5), "1 at the root"),
    "given the parent": (
        lambda pets: decide.fallback(torch.tensor([[1, 0.4, 0.6, 0.3, 0.7]]), pets, 0.5),
        "node 'dog' is more probable than 'animal' above it",
    ),
    "threshold": (lambda pets: decide.fallback(nodes_of(pets), pets, 1.5), r"threshold: expected a number in \[0, 1\]"),
    "thresholds": (
        lambda pets: decide.operating_curve(nodes_of(pets), torch.tensor([0]), pets, torch.tensor([0.5, -0.1])),
        r"thresholds: expected a number in \[0, 1\]",
    ),
    "no thresholds": (
        lambda pets: decide.operating_curve(nodes_of(pets), torch.tensor([0]), pets, torch.tensor([])),
        "thresholds: expected a list",
    ),
    "target": (
        lambda pets: decide.operating_curve(nodes_of(pets), torch.tensor([3]), pets),
        "class positions from 0 to 2, got 3",
    ),
    "negative target": (lambda _: decide.Temperature().fit(draw(1, 3), torch.tensor([-1])), "from 0 to 2, got -1"),
    "targets' shape": (
        lambda _: decide.Temperature().fit(draw(2, 3), torch.tensor([0])),
        r"of shape \(2,\)",
    ),
    "no samples": (lambda _: decide.Temperature().fit(torch.zeros(0, 3), torch.zeros(0)), "logits: .* empty batch"),
    "weights below 0": (
        lambda _: decide.Temperature().fit(draw(2, 3), torch.tensor([0, 1]), weight=torch.tensor([1.0, -1.0])),
        "weight: expected 2 finite numbers of at least 0, got negative, NaN or infinite numbers",
    ),
    "weights of another number": (
        lambda _: decide.Temperature().fit(draw(2, 3), torch.tensor([0, 1]), weight=torch.ones(3)),
        r"weight: expected 2 finite numbers of at least 0, got shape \(3,\)",
    ),
    "only weights of 0": (
        lambda _: decide.Temperature().fit(draw(2, 3), torch.tensor([0, 1]), weight=torch.zeros(2)),
        "weight: expected at least one weight above 0",
    ),
    "not fitted": (lambda _: decide.Temperature().apply(draw(2, 3)), r"call fit\(logits, target\)"),
    "frozen": (lambda _: decide.Temperature(0.0), r"value: expected a number in \(0, inf\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_a_sentence(pets: Taxonomy, case: str):
    call, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as caught:
        call(pets)
    assert "\n" not in str(caught.value)


def test_half_precision_probabilities_pass():
    probs = draw(50, 1000).to(torch.bfloat16)
    assert torch.equal(decide.argmax(probs), probs.argmax(-1))


# Real digits.


def test_on_digits_no_decision_expects_to_cost_more_than_argmax():
    """A linear softmax, calibrated; the tree groups digits that look alike, and the statement holds sample by sample."""
    inputs, targets = digits()
    tree = Taxonomy.from_nested({"round": ["0", "6", "8", "9", "3", "5"], "straight": ["1", "4", "7", "2"]}).reorder(
        tuple("0123456789")
    )
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs[:900]), targets[:900]).backward()
        optimizer.step()
    with torch.no_grad():
        logits = model(inputs[900:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibrate = decide.Temperature().fit(logits[:300], targets[900:1200])
    probs = calibrate.apply(logits[300:]).double().softmax(-1)
    distance = torch.from_numpy(tree.distance("height"))
    likely, chosen = decide.argmax(probs), decide.least_cost(probs, tree)
    expects = [(probs * distance[:, picked].T).sum(-1) for picked in (chosen, likely)]
    assert bool((expects[0] <= expects[1] + 1e-12).all())
    assert bool((chosen != likely).any())
    assert bool((expects[0] < expects[1] - 1e-6).any())
    assert float((chosen == targets[1200:]).double().mean()) > 0.85


# Costs and probabilities as other code makes them.


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.uint16, np.int64, np.float16, np.float64])
def test_costs_may_be_of_any_kind_of_number(kind: type):
    probs = torch.tensor([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3]])
    costs = (1 - np.eye(3)).astype(kind)
    assert decide.least_cost(probs, costs).tolist() == [1, 0]
    assert decide.least_cost(probs, torch.from_numpy(costs)).tolist() == [1, 0]
    assert decide.least_cost_top_k(probs, costs, 2).tolist() == [[1, 2], [0, 1]]


@pytest.fixture
def every_warning() -> Iterator[None]:
    """Let torch repeat the warnings that it gives once."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("every_warning")
def test_probabilities_with_gradients_are_read_without_a_warning():
    tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
    probs = torch.tensor([[0.3, 0.28, 0.42]], requires_grad=True)
    costs = (1 - torch.eye(3)).requires_grad_()
    assert decide.least_cost(probs, tree).tolist() == [0]
    assert decide.least_cost(probs, costs).tolist() == [2]
    nodes, target = decide.node_probs(probs, tree), torch.tensor([2])
    assert nodes.requires_grad
    assert decide.fallback(nodes, tree, 0.5).tolist() == [1]
    assert decide.GuaranteedFallback(0.5).fit(nodes, target, tree).apply(nodes, tree).tolist() == [0]
    assert decide.explain(probs, tree, torch.tensor([1]))[0].path[-1].name == "pet"
    assert decide.restrict(probs, tree, "pet").requires_grad
    two, right = probs.log().repeat(2, 1), torch.tensor([0, 2])
    fitted = decide.Temperature().fit(two, right).value
    assert decide.Temperature().fit_blocks(lambda: [(two, right)]).value == pytest.approx(fitted)
    for measure in (metrics.brier_score, metrics.expected_calibration_error):
        assert measure(probs, target).mean == measure(probs.detach(), target).mean


@pytest.mark.parametrize("mask", [[True, False, True], np.array([True, False, True])])
def test_a_mask_of_classes_is_no_list_of_nodes(mask: Any):
    tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
    probs = torch.tensor([[0.3, 0.28, 0.42]])
    with pytest.raises(InputError, match="node: expected a name, or an index from 0 to 5, got True"):
        decide.restrict(probs, tree, mask)
    with pytest.raises(InputError, match="node: expected a name, or an index from 0 to 5, got True"):
        decide.best_answer(probs, tree, allowed=mask)
