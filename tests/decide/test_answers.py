"""Level temperatures, ensembles, restricted answers, the best answer for a metric and explanations, against loops."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from labelkin import InputError, Taxonomy, decide, metrics
from support.memory import LargestTensor
from support.trees import KINDS, random_taxonomy, taxonomies

every_tree = pytest.mark.parametrize("kind", KINDS)
every_metric = pytest.mark.parametrize("metric", ["distance", "f-beta", "wu-palmer"])


def draw(samples: int, classes: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)).softmax(-1)


def tree_of(kind: str, leaves: int = 9) -> Taxonomy:
    return random_taxonomy(np.random.default_rng(5), leaves, kind)


@pytest.fixture
def pets() -> Taxonomy:
    return Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})


# One temperature per level.


def ancestor_at(tree: Taxonomy, k: int, depth: int) -> int:
    path = tree.ancestors(int(tree.leaves[k])).tolist()
    return int(path[min(depth, len(path) - 1)])


@every_tree
def test_level_costs_are_the_literal_loop(kind: str):
    tree, probs = tree_of(kind), draw(12, 9)
    depths = range(1, int(tree.depth.max()) + 1)
    values = tuple(0.5 + 0.4 * depth for depth in depths)
    found = decide.LevelTemperatures(values).expected_costs(probs, tree)
    for i, row in enumerate(probs.tolist()):
        for j in range(9):
            cost = 0.0
            for value, depth in zip(values, depths, strict=True):
                above = [ancestor_at(tree, k, depth) for k in range(9)]
                nodes = {node: sum(p for p, a in zip(row, above, strict=True) if a == node) for node in set(above)}
                powers = {node: p ** (1 / value) for node, p in nodes.items()}
                cost += 1 - powers[above[j]] / sum(powers.values())
            assert float(found[i, j]) == pytest.approx(cost, abs=1e-12)


@every_tree
def test_temperatures_of_1_are_plain_least_cost(kind: str):
    tree, probs = tree_of(kind), draw(200, 9)
    ones = decide.LevelTemperatures((1.0,) * int(tree.depth.max()))
    plain = decide.expected_costs(probs, tree, distance="depth")
    torch.testing.assert_close(ones.expected_costs(probs, tree), plain, rtol=0, atol=1e-12)
    assert torch.equal(ones.least_cost(probs, tree), decide.least_cost(probs, tree, distance="depth"))
    assert torch.equal(ones.least_cost(probs, tree, k=4), decide.least_cost_top_k(probs, tree, 4, distance="depth"))


def test_on_a_flat_tree_it_is_one_temperature():
    tree, probs = Taxonomy.from_nested([f"c{k}" for k in range(6)]), draw(500, 6)
    target = torch.multinomial(probs, 1, generator=torch.Generator().manual_seed(1)).squeeze(-1)
    logits = 3 * probs.log()
    levels = decide.LevelTemperatures().fit(logits.softmax(-1), target, tree)
    one = decide.Temperature().fit(logits, target)
    assert levels.values == pytest.approx((one.value,), rel=1e-6)
    scaled = decide.expected_costs(one.apply(logits).softmax(-1), 1 - torch.eye(6))
    torch.testing.assert_close(levels.expected_costs(logits.softmax(-1), tree), scaled, rtol=0, atol=1e-9)


@pytest.mark.long
def test_temperatures_that_were_planted_are_found():
    """Classes are drawn from level probabilities that are flatter than the model's, by another factor at each level."""
    tree = Taxonomy.from_nested({f"g{i}": [f"c{i}{j}" for j in range(4)] for i in range(3)})
    generator = torch.Generator().manual_seed(0)
    groups = 2 * torch.randn(30_000, 3, generator=generator, dtype=torch.float64)
    within = 2 * torch.randn(30_000, 3, 4, generator=generator, dtype=torch.float64)
    group = torch.multinomial((groups / 2).softmax(-1), 1, generator=generator).squeeze(-1)
    inside = torch.multinomial(within[torch.arange(30_000), group].softmax(-1), 1, generator=generator).squeeze(-1)
    probs = (groups.softmax(-1).unsqueeze(-1) * within.softmax(-1)).flatten(1)
    levels = decide.LevelTemperatures().fit(probs, 4 * group + inside, tree)
    assert levels.values is not None
    assert levels.values[0] == pytest.approx(2, rel=0.03)
    assert 1.1 < levels.values[1] < 1.6  # the leaves are right given the group, wrong about the group


def test_a_level_without_mistakes_keeps_temperature_1(pets: Taxonomy):
    probs = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]).repeat(10, 1)
    target = torch.tensor([0, 2, 1, 2]).repeat(5)
    with pytest.warns(UserWarning, match="depth 1 of the tree has no best temperature and keeps 1"):
        levels = decide.LevelTemperatures().fit(probs, target, pets)
    assert levels.values is not None
    assert levels.values[0] == 1
    assert levels.values[1] != 1


# Ensembles with a classifier of the parents.


@every_tree
def test_an_ensemble_is_the_literal_loop(kind: str):
    tree, probs = tree_of(kind), draw(20, 9)
    parents = sorted({int(tree.parents[leaf]) for leaf in tree.leaves})
    coarse = draw(20, max(len(parents), 2), seed=1)
    found = decide.hierarchical_ensemble(probs, coarse, tree)
    if len(parents) == 1:
        assert torch.equal(found, probs)
        return
    for i in range(20):
        products = [
            float(probs[i, k] * coarse[i, parents.index(int(tree.parents[leaf]))]) for k, leaf in enumerate(tree.leaves)
        ]
        assert found[i].tolist() == pytest.approx([product / sum(products) for product in products])
    even = torch.full_like(coarse, 1 / coarse.shape[1])
    torch.testing.assert_close(decide.hierarchical_ensemble(probs, even, tree), probs)


def test_classifiers_that_exclude_each_other_keep_the_classes(pets: Taxonomy):
    probs = torch.tensor([[0.6, 0.4, 0.0], [0.5, 0.3, 0.2]])
    found = decide.hierarchical_ensemble(probs, torch.tensor([[0.0, 1.0], [0.0, 1.0]]), pets)
    torch.testing.assert_close(found, torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.0, 1.0]]))
    assert found.dtype == torch.float32


# Restricted truths and restricted answers.


@every_tree
def test_restricting_is_conditioning(kind: str):
    tree, probs = tree_of(kind), draw(20, 9)
    nodes = [int(tree.parents[tree.leaves[0]]), int(tree.leaves[3])]
    for to in ([nodes[0]], nodes, [tree.names[node] for node in nodes], tree.names[nodes[1]]):
        listed = [to] if isinstance(to, str) else to
        inside = [any(tree.node(n) in tree.ancestors(int(leaf)) for n in listed) for leaf in tree.leaves]
        found = decide.restrict(probs, tree, to)
        for i, row in enumerate(probs.tolist()):
            total = sum(p for p, kept in zip(row, inside, strict=True) if kept)
            assert found[i].tolist() == pytest.approx([p / total * kept for p, kept in zip(row, inside, strict=True)])
    assert torch.equal(decide.restrict(probs, tree, tree.names[0]), probs)
    assert torch.equal(decide.restrict(probs, tree, tree.classes), probs)


def test_impossible_classes_become_equally_probable(pets: Taxonomy):
    assert decide.restrict(torch.tensor([[0.0, 0.0, 1.0]]), pets, "animal").tolist() == [[0.5, 0.5, 0.0]]


def test_allowed_answers_are_the_best_of_those_allowed():
    """The true class may be any, so this differs from conditioning."""
    tree, probs = tree_of("unbalanced"), draw(300, 9)
    costs = torch.rand(9, 9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    some = [1, 4, 7]
    expected = decide.expected_costs(probs, costs)
    assert decide.least_cost(probs, costs, allowed=some).tolist() == [
        min(some, key=row.__getitem__) for row in expected.tolist()
    ]
    ranked = decide.least_cost_top_k(probs, costs, 3, allowed=some)
    assert ranked.tolist() == [sorted(some, key=row.__getitem__) for row in expected.tolist()]
    names = [tree.classes[k] for k in some]
    by_tree = decide.least_cost(probs, tree, allowed=some)
    assert torch.equal(decide.least_cost(probs, tree, allowed=names), by_tree)
    conditioned = decide.least_cost(decide.restrict(probs, tree, names), tree)
    assert bool((conditioned != by_tree).any())
    assert torch.equal(decide.least_cost(probs, tree, allowed=range(9)), decide.least_cost(probs, tree))
    assert torch.equal(decide.least_cost(probs, tree, allowed=tree.names[0]), decide.least_cost(probs, tree))


# The best answer for a metric.


def value_by_hand(tree: Taxonomy, metric: str, beta: Fraction, answer: int, true: int) -> Fraction:
    """One pair of nodes, from the sets of nodes on the paths."""
    guessed, real = set(tree.ancestors(answer).tolist()), set(tree.ancestors(true).tolist())
    if metric == "distance":
        return Fraction(len(guessed ^ real))
    if metric == "f-beta":
        guessed, real = guessed - {0}, real - {0}
    if not guessed & real:
        return Fraction(0)
    precision, recall = Fraction(len(guessed & real), len(guessed)), Fraction(len(guessed & real), len(real))
    square = beta * beta if metric == "f-beta" else Fraction(1)
    return (1 + square) * precision * recall / (square * precision + recall)


def values_by_hand(shares: Sequence[Fraction], tree: Taxonomy, metric: str, beta: Fraction) -> list[Fraction]:
    return [
        sum(
            (p * value_by_hand(tree, metric, beta, a, int(y)) for p, y in zip(shares, tree.leaves, strict=True)),
            Fraction(),
        )
        for a in range(len(tree))
    ]


@every_metric
@every_tree
@pytest.mark.parametrize("beta", [Fraction(1), Fraction(1, 2), Fraction(3)])
def test_expected_values_are_the_literal_loop(kind: str, metric: Any, beta: Fraction):
    tree, probs = tree_of(kind), draw(4, 9)
    used = beta if metric == "f-beta" else Fraction(1)
    found = decide.expected_values(probs, tree, metric, beta=float(used))
    for i, row in enumerate(probs.tolist()):
        expected = values_by_hand([Fraction(p) for p in row], tree, metric, used)
        assert found[i].tolist() == pytest.approx([float(value) for value in expected], abs=1e-12)


@pytest.mark.long
@every_metric
@settings(max_examples=60, deadline=None)
@given(tree=taxonomies(max_leaves=12), data=st.data())
def test_best_answers_follow_the_rule_in_exact_arithmetic(metric: Any, tree: Taxonomy, data: st.DataObject):
    """Small whole numbers make ties common: the most probable, then the lowest class, then the deepest."""
    size = len(tree.leaves)
    counts = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
    shares = [Fraction(count, sum(counts)) for count in counts]
    probs = torch.tensor([[float(share) for share in shares]], dtype=torch.float64)
    value = values_by_hand(shares, tree, metric, Fraction(1))
    sign = 1 if metric == "distance" else -1
    below = [[k for k in range(size) if node in tree.ancestors(int(tree.leaves[k]))] for node in range(len(tree))]

    def order(node: int) -> tuple[Fraction, Fraction, int, int]:
        return (
            sign * value[node],
            -sum((shares[k] for k in below[node]), Fraction()),
            below[node][0],
            -int(tree.depth[node]),
        )

    assert decide.best_answer(probs, tree, metric).tolist() == [min(range(len(tree)), key=order)]
    leaves = [int(leaf) for leaf in tree.leaves]
    best = min(leaves, key=lambda leaf: (sign * value[leaf], -shares[leaves.index(leaf)], leaves.index(leaf)))
    assert decide.best_answer(probs, tree, metric, answers="classes").tolist() == [leaves.index(best)]


@every_tree
def test_among_classes_the_least_distance_is_least_cost(kind: str):
    tree, probs = tree_of(kind), torch.cat([draw(300, 9), torch.full((1, 9), 1 / 9, dtype=torch.float64)])
    found = decide.best_answer(probs, tree, "distance", answers="classes")
    assert torch.equal(found, decide.least_cost(probs, tree, distance="edges"))


@every_tree
def test_a_half_of_the_probability_decides_by_distance(kind: str):
    """A step down pays if more than half of the probability is below: the deepest node above 1/2 is the median of the tree."""
    tree, probs = tree_of(kind), draw(300, 9)
    nodes = decide.node_probs(probs, tree)
    assert torch.equal(decide.best_answer(probs, tree), decide.fallback(nodes, tree, math.nextafter(0.5, 1)))


@every_metric
def test_sure_samples_get_their_class(metric: Any):
    tree = tree_of("unbalanced")
    found = decide.best_answer(torch.eye(9, dtype=torch.float64), tree, metric)
    assert found.tolist() == tree.leaves.tolist()


def test_the_f_measure_is_that_of_the_metrics_room():
    tree, probs = tree_of("unbalanced"), torch.eye(9, dtype=torch.float64)
    expected = decide.expected_values(probs, tree, "f-beta")
    for node in range(1, len(tree)):
        answer = torch.full((9,), node)
        measured = metrics.hierarchical_f1(answer, torch.arange(9), tree, predicted_as="nodes").values
        torch.testing.assert_close(expected[:, node], measured)


def test_a_small_beta_gives_more_general_answers():
    tree, probs = tree_of("balanced", 16), draw(300, 16)
    depth = torch.from_numpy(tree.depth.copy())
    shallow, even, deep = (
        float(depth[decide.best_answer(probs, tree, "f-beta", beta=beta)].double().mean()) for beta in (0.3, 1.0, 3.0)
    )
    assert shallow < even < deep


@every_metric
def test_order_of_classes_and_allowed_nodes(metric: Any):
    tree, probs = tree_of("scattered"), draw(100, 9)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(2))
    moved = tree.reorder([tree.classes[i] for i in order])
    found = decide.best_answer(probs, tree, metric)
    assert torch.equal(decide.best_answer(probs[:, order], moved, metric), found)
    assert torch.equal(decide.best_answer(probs, tree, metric, allowed=tree.names[0]), found)
    values = decide.expected_values(probs, tree, metric)
    some = tree.subtree(int(tree.parents[tree.leaves[0]])).tolist()
    sign = 1 if metric == "distance" else -1
    limited = decide.best_answer(probs, tree, metric, allowed=int(tree.parents[tree.leaves[0]]))
    assert limited.tolist() == [min(some, key=lambda node: sign * row[node]) for row in values.tolist()]


@pytest.mark.long
@every_metric
def test_memory_is_samples_by_nodes(metric: Any):
    tree, probs = tree_of("unbalanced", 800), draw(4, 800)
    with LargestTensor() as made:
        decide.best_answer(probs, tree, metric)
    assert made.numel <= 4 * len(tree)


# Explanations.


def test_an_explanation_lists_the_path(pets: Taxonomy):
    probs = torch.tensor([[0.22, 0.71, 0.07], [0.30, 0.28, 0.42]], dtype=torch.float64)
    found = decide.explain(probs, pets, torch.tensor([pets.node("dog"), pets.node("animal")]))
    assert [str(one) for one in found] == ["animal 0.93 > dog 0.71", "animal 0.58"]
    assert [step.name for step in found[0].path] == ["root", "animal", "dog"]
    assert [step.probability for step in found[0].path] == pytest.approx([1, 0.93, 0.71])
    assert str(decide.explain(probs[:1], pets, torch.tensor([0]))[0]) == "root 1.00"
    by_class = decide.explain(probs, pets, torch.tensor([1, 2]), answer_as="classes")
    assert [str(one) for one in by_class] == ["animal 0.93 > dog 0.71", "vehicle 0.42 > car 0.42"]


@every_tree
def test_steps_are_node_probabilities(kind: str):
    tree, probs = tree_of(kind), draw(30, 9)
    nodes = decide.node_probs(probs, tree)
    answer = torch.randint(len(tree), (30,), generator=torch.Generator().manual_seed(1))
    for i, found in enumerate(decide.explain(probs, tree, answer)):
        path = tree.ancestors(int(answer[i]))
        assert [step.name for step in found.path] == [tree.names[node] for node in path]
        assert [step.probability for step in found.path] == pytest.approx(nodes[i, path.copy()].tolist())


# Bad input.


REFUSED: dict[str, tuple[Callable[[Taxonomy], object], str]] = {
    "no temperatures": (lambda pets: decide.LevelTemperatures().least_cost(draw(2, 3), pets), r"call fit\(probs"),
    "too few temperatures": (
        lambda pets: decide.LevelTemperatures((1.0,)).least_cost(draw(2, 3), pets),
        "expected 2 temperatures, one per level of the tree, got 1",
    ),
    "temperature of 0": (lambda _: decide.LevelTemperatures((1.0, 0.0)), r"values: expected a number in \(0"),
    "k above K": (lambda pets: decide.LevelTemperatures((1.0, 1.0)).least_cost(draw(2, 3), pets, k=4), "at most 3"),
    "parents": (lambda pets: decide.hierarchical_ensemble(draw(2, 3), draw(2, 3), pets), r"parent_probs: .*\(n, 2\)"),
    "parents' samples": (
        lambda pets: decide.hierarchical_ensemble(draw(2, 3), draw(3, 2), pets),
        "parent_probs: expected 2 samples, as in probs, got 3",
    ),
    "restricted to nothing": (lambda pets: decide.restrict(draw(2, 3), pets, []), "to: expected at least one"),
    "restricted to a typo": (lambda pets: decide.restrict(draw(2, 3), pets, "animl"), "Did you mean 'animal'"),
    "names without a tree": (
        lambda _: decide.least_cost(draw(2, 3), torch.eye(3), allowed=["cat"]),
        "allowed: a matrix of costs has no names",
    ),
    "positions and names": (lambda pets: decide.least_cost(draw(2, 3), pets, allowed=["cat", 1]), "got both"),
    "nothing allowed": (lambda pets: decide.least_cost(draw(2, 3), pets, allowed=[]), "allowed: expected at least one"),
    "allowed class": (lambda pets: decide.least_cost(draw(2, 3), pets, allowed=[3]), "from 0 to 2, got 3"),
    "k above allowed": (
        lambda pets: decide.least_cost_top_k(draw(2, 3), pets, 3, allowed=["animal"]),
        "at most 2, the number of allowed classes",
    ),
    "metric": (lambda pets: decide.best_answer(draw(2, 3), pets, "f1"), "metric: expected one of"),  # type: ignore[arg-type]
    "beta": (lambda pets: decide.best_answer(draw(2, 3), pets, "f-beta", beta=0), r"beta: expected a number in \(0"),
    "beta elsewhere": (lambda pets: decide.best_answer(draw(2, 3), pets, beta=2.0), 'only "f-beta" has a beta'),
    "answers": (lambda pets: decide.best_answer(draw(2, 3), pets, answers="leaves"), "answers: expected one"),  # type: ignore[arg-type]
    "no class allowed": (
        lambda pets: decide.best_answer(draw(2, 3), pets, allowed=[]),
        "allowed: expected at least one node",
    ),
    "explained node": (
        lambda pets: decide.explain(draw(1, 3), pets, torch.tensor([6])),
        "indices of nodes from 0 to 5",
    ),
    "explained class": (
        lambda pets: decide.explain(draw(1, 3), pets, torch.tensor([3]), answer_as="classes"),
        "class positions from 0 to 2, got 3",
    ),
    "explained rows": (lambda pets: decide.explain(draw(2, 3), pets, torch.tensor([3])), r"of shape \(2,\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_a_sentence(pets: Taxonomy, case: str):
    call, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as caught:
        call(pets)
    assert "\n" not in str(caught.value)
