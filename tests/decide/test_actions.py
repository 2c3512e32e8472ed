"""Answers that are not classes: costs with more columns than rows, against loops and Chow's rule."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from labelkin import InputError, Taxonomy, decide
from support import reference
from support.trees import random_taxonomy


def draw(samples: int, classes: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)).softmax(-1)


def random_costs(classes: int, actions: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    costs = 3 * torch.rand(classes, classes + actions, generator=generator, dtype=torch.float64)
    costs[:, classes:] *= 0.4  # so that actions and classes are both answered
    return costs.fill_diagonal_(0)


def zero_one(classes: int, *actions: float) -> Tensor:
    """Costs of 1 for a mistake, and the same for all true classes for each action."""
    wrong = 1 - torch.eye(classes, dtype=torch.float64)
    return torch.cat([wrong, *(torch.full((classes, 1), cost, dtype=torch.float64) for cost in actions)], 1)


def test_answers_are_those_of_a_loop():
    probs, costs = draw(60, 5), random_costs(5, 3)
    expected = [reference.answers_by_cost(row, costs.tolist()) for row in probs.tolist()]
    assert {order[0] >= 5 for order in expected} == {True, False}
    assert decide.least_cost(probs, costs).tolist() == [order[0] for order in expected]
    for k in (1, 3, 8):
        assert decide.least_cost_top_k(probs, costs.numpy(), k).tolist() == [order[:k] for order in expected]
    found = decide.expected_costs(probs, costs)
    assert found.shape == (60, 8)
    for row, values in zip(probs.tolist(), found.tolist(), strict=True):
        for answer, value in enumerate(values):
            assert value == pytest.approx(math.fsum(p * float(costs[true, answer]) for true, p in enumerate(row)))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_ties_go_to_the_probable_class_then_to_any_class_then_to_the_first_action(data: st.DataObject):
    """Small whole numbers make ties common; in exact arithmetic they are exact."""
    classes, actions = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 3))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=classes, max_size=classes).filter(any))
    row = st.lists(st.integers(0, 2), min_size=classes + actions, max_size=classes + actions)
    costs = data.draw(st.lists(row, min_size=classes, max_size=classes))
    shares = [Fraction(count, sum(counts)) for count in counts]
    expected = reference.answers_by_cost(shares, costs)
    probs, matrix = torch.tensor([[float(share) for share in shares]], dtype=torch.float64), torch.tensor(costs)
    assert decide.least_cost_top_k(probs, matrix, classes + actions).tolist() == [expected]
    assert decide.least_cost(probs, matrix).tolist() == expected[:1]


def test_ties_by_hand():
    half = torch.tensor([[0.25, 0.5, 0.25]])
    assert decide.least_cost(half, zero_one(3, 0.5)).tolist() == [1]  # a class wins against an action
    assert decide.least_cost(half, zero_one(3, 0.25, 0.25)).tolist() == [3]  # the first of two actions
    never = torch.tensor([[1.0, 0.0]])
    costs = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    assert decide.least_cost(never, costs).tolist() == [1]  # even a class of probability 0
    mixed = torch.tensor([[0.1, 0.2, 0.7]], dtype=torch.float64)
    costs = torch.full((3, 4), 0.3, dtype=torch.float64)
    costs[:, :3] = torch.tensor([[0.9, 9, 9], [1.05, 9, 9], [0.0, 9, 9]], dtype=torch.float64)
    of_class, *_, action = decide.expected_costs(mixed, costs)[0].tolist()
    assert 0 < of_class - action < 1e-15  # equal but for rounding
    assert decide.least_cost(mixed, costs).tolist() == [0]


@pytest.mark.parametrize("cost", [0.0, 0.1, 0.3, 0.5, 0.8])
def test_with_zero_one_costs_it_is_chows_rule(cost: float):
    """The action exactly when the largest probability is below 1 - c, else the most probable class."""
    eighths = torch.tensor([[8, 0, 0], [4, 4, 0], [4, 3, 1], [6, 1, 1], [7, 1, 0], [5, 2, 1]]) / 8
    probs = torch.cat([draw(500, 3), eighths.double()])
    expected = [3 if max(row) < 1 - cost else row.index(max(row)) for row in probs.tolist()]
    assert decide.least_cost(probs, zero_one(3, cost)).tolist() == expected
    if cost in (0.1, 0.3):
        assert 3 in expected
        assert len(set(expected)) == 4


def test_the_order_of_classes_and_of_actions_does_not_matter():
    probs, costs = draw(200, 5), random_costs(5, 3)
    generator = torch.Generator().manual_seed(2)
    classes, actions = torch.randperm(5, generator=generator), torch.randperm(3, generator=generator)
    columns = torch.cat([classes, 5 + actions])
    moved = costs[classes][:, columns]
    assert torch.equal(columns[decide.least_cost(probs[:, classes], moved)], decide.least_cost(probs, costs))


def test_a_dominated_action_changes_nothing():
    probs, costs = draw(300, 5), random_costs(5, 2)
    worse = torch.cat([costs, costs[:, 5:6] + 0.5, costs[:, 1:2]], 1)  # the second is equal to a class
    assert torch.equal(decide.least_cost(probs, worse), decide.least_cost(probs, costs))
    square = costs[:, :5]
    assert torch.equal(decide.least_cost(probs, torch.cat([square, square + 1], 1)), decide.least_cost(probs, square))


def test_allowed_actions():
    probs, costs = draw(100, 4), random_costs(4, 2)
    expected = decide.expected_costs(probs, costs)
    for some in ([4], [5], [0, 5], [1, 2, 4]):
        wanted = [min(some, key=row.__getitem__) for row in expected.tolist()]
        assert decide.least_cost(probs, costs, allowed=some).tolist() == wanted
    assert torch.equal(decide.least_cost(probs, costs, allowed=range(4)), decide.least_cost(probs, costs[:, :4]))


def test_two_rules_side_by_side_with_an_action():
    tree = random_taxonomy(np.random.default_rng(5), 5, "balanced")
    probs, costs = draw(80, 5), random_costs(5, 1)
    target = torch.multinomial(probs, 1, generator=torch.Generator().manual_seed(4)).squeeze(-1)
    found = decide.compare_rules(probs, target, tree, costs=costs, k=5).after
    answers = [reference.answers_by_cost(row, costs.tolist())[0] for row in probs.tolist()]
    assert found.answer.tolist() == answers
    assert found.costs is not None
    assert found.costs.tolist() == [float(costs[y, a]) for y, a in zip(target.tolist(), answers, strict=True)]
    assert found.accuracy == sum(y == a for y, a in zip(target.tolist(), answers, strict=True)) / 80
    wrong = [
        float(tree.distance("height", y, a)) for y, a in zip(target.tolist(), answers, strict=True) if a != y and a < 5
    ]
    assert 0 < len(wrong) < sum(y != a for y, a in zip(target.tolist(), answers, strict=True))
    assert found.severity == pytest.approx(sum(wrong) / len(wrong))
    assert found.distances is not None
    assert torch.equal(found.distances.isnan(), found.classes == 5)
    assert math.isnan(found.average_distance)


# As a rule.


def pets() -> Taxonomy:
    return Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})


def test_a_rule_answers_with_actions_after_the_classes_or_nodes():
    probs = torch.tensor([[0.9, 0.05, 0.05], [0.4, 0.3, 0.3]])
    tree = pets()
    for taxonomy, size in ((None, 3), (tree, len(tree))):
        rule = decide.Rule("crm", taxonomy, zero_one(3, 0.5, 0.3), actions=("guess", "ask"))
        found = rule.answer(probs)
        assert found.nodes.tolist() == [0 if taxonomy is None else tree.node("cat"), size + 1]
        assert float(found.probs[0]) == pytest.approx(0.9)
        assert math.isnan(found.probs[1])  # an action says nothing about the true class
        assert rule.kinds(found.nodes) == ["class", "action"]
        assert rule.names(found.nodes, ["cat", "dog", "car"]) == ["cat", "ask"]
    assert rule.names(found.nodes) == ["cat", "ask"]  # the tree has the names
    assert decide.Rule("argmax", tree, zero_one(3, 0.3), actions=("ask",)).kinds(torch.tensor([0, 1])) == [
        "none",
        "ancestor",
    ]


def test_a_traceable_rule_answers_as_the_rule():
    probs, tree = torch.cat([draw(300, 3), torch.full((1, 3), 1 / 3)]).double(), pets()
    rule = decide.Rule("crm", tree, zero_one(3, 0.3, 1 / 3), actions=("ask", "wait"))
    found, expected = decide.TraceableRule(rule)(probs), rule.answer(probs)
    assert torch.equal(found.nodes, expected.nodes)
    assert len(set(found.nodes.tolist())) == 4
    torch.testing.assert_close(found.probs, expected.probs, equal_nan=True)


def test_reasons_compare_an_action_with_the_best_class():
    probs, tree = torch.tensor([[0.9, 0.05, 0.05], [0.4, 0.35, 0.25]]), pets()
    costs = 5000 * zero_one(3, 0.3)
    rule = decide.Rule("crm", tree, costs, actions=("ask",))
    classes = list(tree.classes)
    assert decide.reasons(rule, probs, rule.answer(probs).nodes, classes) == [
        "animal 0.95 > cat 0.90",
        "expected cost: ask 1,500, cat 3,000",
    ]
    bare = decide.Rule("crm", None, zero_one(3, 0.3), actions=("ask",))
    assert decide.reasons(bare, probs, bare.answer(probs).nodes, classes) == [
        "expected cost: cat 0.1, ask 0.3",
        "expected cost: ask 0.3, cat 0.6",
    ]


def test_reasons_without_actions_and_tree_compare_with_the_next_best_class():
    probs = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    costs = torch.tensor([[0.0, 1.0, 1.0], [4.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    rule = decide.Rule("crm", costs=costs)
    answers = rule.answer(probs)
    assert answers.nodes.tolist() == [1, 2]
    assert decide.reasons(rule, probs, answers.nodes, ["cat", "dog", "car"]) == [
        "expected cost: dog 0.7, car 0.9",
        "expected cost: car 0.5, dog 0.7",
    ]


REFUSED: dict[str, tuple[Any, str]] = {
    "fewer answers than classes": (
        lambda: decide.least_cost(draw(2, 3), torch.ones(3, 2)),
        r"costs: expected shape \(3, 3\), true classes by answers, or more columns for answers that are not classes, got",
    ),
    "other classes": (
        lambda: decide.least_cost(draw(2, 3), torch.ones(4, 5)),
        r"expected shape \(3, 3\).*got \(4, 5\)",
    ),
    "NaN": (lambda: decide.least_cost(draw(2, 3), zero_one(3, math.nan)), "costs: expected finite numbers, got 3 NaN"),
    "k": (
        lambda: decide.least_cost_top_k(draw(2, 3), zero_one(3, 1), 5),
        "k: expected at most 4, the number of answers",
    ),
    "allowed": (lambda: decide.least_cost(draw(2, 3), zero_one(3, 1), allowed=[4]), "from 0 to 3, got 4"),
    "no names": (
        lambda: decide.Rule("crm", costs=zero_one(3, 1)),
        "actions: expected 1 name, one for each column of `costs` after the classes, got 0",
    ),
    "names without columns": (
        lambda: decide.Rule("crm", pets(), actions=("ask",)),
        "actions: expected 0 names, one for each column of `costs` after the classes, got 1",
    ),
    "twice": (
        lambda: decide.Rule("crm", costs=zero_one(3, 1, 1), actions=("ask", "ask")),
        "actions: duplicate name 'ask'",
    ),
    "a node": (
        lambda: decide.Rule("crm", pets(), zero_one(3, 1), actions=("animal",)),
        "actions: 'animal' is a node of the tree as well; give the action another name",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_decided_is_refused(case: str):
    call, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        call()
