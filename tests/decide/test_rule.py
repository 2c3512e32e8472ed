"""A decision rule as one object, against loops."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from labelkin import InputError, Taxonomy, decide
from support.trees import KINDS, random_taxonomy


def draw(samples: int, classes: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)


def below(tree: Taxonomy, row: list[float], node: int) -> float:
    return sum(p for k, p in enumerate(row) if node in tree.ancestors(int(tree.leaves[k])))


def walked(tree: Taxonomy, row: list[float], threshold: float) -> int:
    """The deepest node on the walk to the most probable child whose probability reaches the threshold."""
    node, answer = 0, 0
    while not tree.is_leaf[node]:
        children = [int(child) for child in tree.children[node]]
        node = max(children, key=lambda child: below(tree, row, child))
        if below(tree, row, node) >= threshold:
            answer = node
    return answer


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_a_loop(kind: str):
    tree = random_taxonomy(np.random.default_rng(5), 9, kind)
    probs = draw(25, 9).softmax(-1)
    costs = torch.rand(9, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for row, sample in zip(probs.tolist(), probs, strict=True):
        best = max(range(9), key=lambda k: row[k])
        by_cost = min(range(9), key=lambda j: sum(p * float(costs[i, j]) for i, p in enumerate(row)))
        expected = {
            decide.Rule("argmax"): (best, row[best]),
            decide.Rule("argmax", tree): (int(tree.leaves[best]), row[best]),
            decide.Rule("crm", None, costs): (by_cost, row[by_cost]),
            decide.Rule("crm", tree, costs): (int(tree.leaves[by_cost]), row[by_cost]),
        }
        for threshold in (None, 0.3, 0.8):
            node = walked(tree, row, 0.5 if threshold is None else threshold)
            expected[decide.Rule("fallback", tree, threshold=threshold)] = (node, below(tree, row, node))
        for rule, (node, probability) in expected.items():
            found = rule.answer(sample.unsqueeze(0))
            assert int(found.nodes) == node
            assert float(found.probs) == pytest.approx(probability)


def test_costs_come_before_the_tree_and_the_tree_alone_is_enough():
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
    probs = torch.tensor([[0.30, 0.28, 0.42]])
    only_dogs = torch.ones(3, 3)
    only_dogs[:, 1] = 0
    assert tree.names[int(decide.Rule("crm", tree).answer(probs).nodes)] == "cat"
    assert tree.names[int(decide.Rule("crm", tree, only_dogs).answer(probs).nodes)] == "dog"


def test_kinds_of_answers():
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
    nodes = torch.tensor([tree.node(name) for name in ("cat", "animal", tree.names[0])])
    assert decide.Rule("fallback", tree).kinds(nodes) == ["class", "ancestor", "none"]
    assert decide.Rule("argmax").kinds(torch.tensor([0, 2])) == ["class", "class"]


def test_temperature_and_guarantee_are_fitted_on_different_halves():
    tree = random_taxonomy(np.random.default_rng(5), 9, "balanced")
    logits, target = draw(200, 9), torch.randint(0, 9, (200,), generator=torch.Generator().manual_seed(2))
    logits[torch.arange(200), target] += 3
    plain = decide.Rule("fallback", tree)
    rule, probs = plain.fitted(logits, target, coverage=0.9, seed=4)
    first, second = decide.split_halves(200, 4)
    changed = logits.clone()
    changed[first] *= 7  # a common factor: the temperature of this half grows by as much, and nothing else sees it
    other, _ = plain.fitted(changed, target, coverage=0.9, seed=4)
    assert other.temperature == pytest.approx(7 * rule.temperature, rel=1e-4)
    assert len(probs) == 100
    torch.testing.assert_close(probs, (logits[second] / rule.temperature).softmax(-1))
    assert rule.guarantee is not None
    kept = plain.fitted(logits, target, coverage=0.9, temperature=rule.temperature, seed=4)
    assert len(kept.probs) == 200
    assert plain.fitted(logits, target).rule.temperature == decide.Temperature().fit(logits, target).value


def test_a_guarantee_replaces_the_threshold():
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
    probs = torch.tensor([[0.60, 0.30, 0.10]])
    never = decide.GuaranteedFallback(0.1, thresholds={tree.names[0]: float("inf")})
    assert int(decide.Rule("fallback", tree, guarantee=never).answer(probs).nodes) == 0
    assert int(decide.Rule("fallback", tree).answer(probs).nodes) != 0


def test_a_rule_without_what_it_needs_is_refused():
    with pytest.raises(InputError, match="taxonomy: the rule 'crm' needs a tree"):
        decide.Rule("crm")
    with pytest.raises(InputError, match="taxonomy: the rule 'fallback' needs a tree"):
        decide.Rule("fallback", costs=torch.eye(3))
    with pytest.raises(InputError, match="name: expected one of 'argmax', 'crm', 'fallback'"):
        decide.Rule("best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="threshold: expected a number"):
        decide.Rule("argmax", threshold=2)


def test_probabilities_of_other_classes_are_refused_by_every_rule():
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
    for width in (2, 4):
        probs, costs = torch.eye(width)[-1:], 1 - torch.eye(width)
        for rule in (
            decide.Rule("argmax", tree),
            decide.Rule("crm", tree),
            decide.Rule("crm", tree, costs),
            decide.Rule("fallback", tree),
        ):
            with pytest.raises(InputError, match=rf"probs: expected shape \(n, 3\).* got \(1, {width}\)"):
                rule.answer(probs)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("argmax", {"coverage": 0.9}, "coverage: applies to the rule 'fallback', got 'argmax'"),
        ("fallback", {"confidence": 0.9}, "confidence: it is that of a coverage, which is missing"),
        ("fallback", {"coverage": 0.9, "confidence": 1.5}, r"confidence: expected a number in \[0, 1\], got 1\.5"),
        ("fallback", {"coverage": 0.9, "confidence": "0.9"}, r"confidence: expected a number in \[0, 1\], got '0\.9'"),
    ],
)
def test_a_guarantee_that_cannot_be_fitted_is_refused(name: Any, options: dict[str, Any], says: str):
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
    with pytest.raises(InputError, match=says):
        decide.Rule(name, tree).fitted(draw(60, 3), torch.arange(60) % 3, **options)
