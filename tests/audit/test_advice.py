"""What an audit says first: the saving, the share of answers, and the risk at the levels of the tree."""

import math
from functools import cache
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
import torch

from labelkin import Taxonomy, decide
from labelkin.audit import Audit, Crm, Difference, Fallback, FallbackPoint, Saving, audit
from labelkin.audit._advice import advise, fallback_sentence
from labelkin.audit._columns import Column
from labelkin.audit._paired import Paired
from labelkin.audit._risk import MOST_LEVELS, expected_risks, keys_of, level_risks
from labelkin.audit._scores import Scores
from labelkin.audit._sorted_keys import SortedKeys

PAIRS = Taxonomy.from_nested({"a": {"aa": ["0", "1"], "ab": ["2", "3"]}, "b": {"ba": ["4", "5"], "bb": ["6", "7"]}})


@cache
def drawn(sharpness: float = 2.0, count: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Logits of a model that mistakes classes for their kin, too sure of itself by a factor, and true classes."""
    random = np.random.default_rng(0)
    target = random.integers(8, size=count)
    near = 3 - PAIRS.distance("height")[target]
    logits = 0.9 * near + random.gumbel(size=near.shape)
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    chosen = np.array([random.choice(8, p=row) for row in probs])  # labels that follow the probabilities
    return sharpness * np.log(probs), chosen


@cache
def costly() -> np.ndarray:
    """Taking a class of one half for one of the other costs 9, the other way round 1; within a half 1."""
    half = np.arange(8) >= 4
    costs = np.where(half[:, None] & ~half, 9.0, 1.0)
    np.fill_diagonal(costs, 0)
    return costs


@cache
def audited(**given: Any) -> Audit:
    logits, target = drawn()
    return audit({"target": target, "logits": logits}, taxonomy=PAIRS, **given)


# The saving.


def saving(before: torch.Tensor, after: torch.Tensor) -> Saving:
    return Paired().add(before, after).saving()


def test_the_saving_is_one_minus_the_ratio_of_the_sums_and_its_interval_covers():
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        before = random.integers(0, 4, 400).astype(float)
        after = np.where(random.random(400) < 0.3, before / 2, before)
        found = saving(torch.from_numpy(before), torch.from_numpy(after))
        assert found.share == pytest.approx(1 - after.sum() / before.sum())
        hits += found.low <= 0.15 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


def test_the_saving_does_not_depend_on_the_unit_or_on_samples_that_cost_nothing_more():
    before, after = torch.tensor([4.0, 2, 0, 3, 1]), torch.tensor([2.0, 2, 0, 3, 0])
    assert saving(10 * before, 10 * after) == pytest.approx(saving(before, after))
    assert saving(before, before) == (0, 0, 0)
    assert saving(before, torch.zeros(5)) == (1, 1, 1)
    assert all(math.isnan(part) for part in saving(torch.zeros(5), after))
    assert saving(before[:1], after[:1]).share == 0.5
    assert math.isnan(saving(before[:1], after[:1]).low)


@pytest.mark.parametrize("by", ["taxonomy", "costs"])
def test_the_saving_of_an_audit_is_measured_on_the_half_that_did_not_fit(by: str):
    logits, target = drawn()
    found = audit({"target": target, "logits": logits}, taxonomy=PAIRS, costs=costly() if by == "costs" else None)
    costs = costly() if by == "costs" else PAIRS.distance("height")
    half = decide.split_halves(len(target), 0).measured.numpy()
    temperature = found.calibration.scaled.temperature
    probs = torch.from_numpy(logits[half] / temperature).softmax(-1).numpy()
    before, after = probs.argmax(1), (probs @ costs).argmin(1)
    spent = costs[target[half], before].sum()
    assert found.advice.by == by
    assert found.advice.saved.share == pytest.approx(1 - costs[target[half], after].sum() / spent)
    assert found.advice.saved == [part for part in found.crm if part.costs == by][-1].saved


# The headline.


@pytest.mark.long
def test_costs_of_ones_own_change_the_headline():
    by_tree = audited().advice
    logits, target = drawn()
    by_costs = audit({"target": target, "logits": logits}, taxonomy=PAIRS, costs=costly()).advice
    percent = 100 * by_costs.saved.share
    assert percent > 10
    assert by_costs.headline.startswith(
        f"Fit temperature {by_costs.temperature:.2f} and decide by least cost: a decision costs {percent:.0f} % less ["
    )
    assert by_costs.evidence == "95 % interval, 750 samples that did not choose the temperature"
    assert by_tree.headline != by_costs.headline
    assert (
        f"{100 * by_tree.saved.share:.1f} %" in by_tree.headline
        or f"{100 * by_tree.saved.share:.0f} %" in by_tree.headline
    )


def effect(before: float, after: float, low: float, high: float, *, differ: int = 50, temperature: float = 0.64) -> Crm:
    """The effect of least-cost decisions on 200 samples."""
    change = Difference(before, after, differ, after - before, low, high)
    saved = Saving(1 - after / before, -high / before, -low / before)
    nothing = Difference(0.9, 0.9, 0, 0.0, 0.0, 0.0)
    return Crm("taxonomy", temperature, 200, 9, 3, 2, nothing, None, change, None, None, saved)


@pytest.mark.parametrize(
    ("found", "headline"),
    [
        (
            effect(1.0, 0.93, -0.12, -0.02),
            "Fit temperature 0.64 and decide by least cost: a decision costs 7 % less [2, 12]",
        ),
        (effect(1.0, 0.93, -0.12, -0.02, temperature=1.0), "Decide by least cost: a decision costs 7 % less [2, 12]"),
        (effect(1.0, 1.04, 0.01, 0.07), "Keep the most probable class: deciding by least cost costs 4 % more [1, 7]"),
        (
            effect(1.0, 0.99, -0.03, 0.01),
            "Keep the most probable class: deciding by least cost is not shown to save anything (1.0 % less [-1.0, 3.0])",
        ),
        (
            effect(1.0, 0.93, -0.12, -0.02, differ=4),
            "Keep the most probable class: deciding by least cost changes the cost of only 4 of 200 decisions",
        ),
        (
            effect(1.0, 1.0, 0.0, 0.0, differ=0),
            "Keep the most probable class: deciding by least cost changes the cost of none of 200 decisions",
        ),
    ],
)
def test_the_headline_says_what_to_do_and_what_it_is_worth(found: Crm, headline: str):
    advice = advise([found], None, has_probs=True, has_costs=True)
    assert advice.headline == headline
    assert bool(advice.evidence) == ("[" in headline)
    assert advice.rule == ("crm" if "ecide by least cost: a" in headline else "argmax")


def test_the_advice_names_the_command_for_a_run():
    """`labelkin decide` takes no runs, and `labelkin predict` uses the temperature of the run."""
    better = effect(1.0, 0.93, -0.12, -0.02)
    for_file, for_run = (
        advise([better], None, has_probs=True, has_costs=True, of_run=of_run).sentence for of_run in (False, True)
    )
    assert "(labelkin decide --rule crm --temperature 0.640)" in for_file
    assert "(labelkin predict --decide crm)" in for_run
    assert for_file.partition(")")[2] == for_run.partition(")")[2]
    by_costs = better._replace(
        costs="costs", cost=better.distance_at_1
    )  # without them, both commands would decide by the tree
    for of_run, command in ((False, "decide --rule crm --temperature 0.640"), (True, "predict --decide crm")):
        said = advise([by_costs], None, has_probs=True, has_costs=True, of_run=of_run).sentence
        assert f"(labelkin {command} --costs FILE)" in said


def test_a_run_is_advised_by_its_own_probabilities():
    """`labelkin predict` decides by them and takes no temperature."""
    own, scaled = effect(1.0, 0.9, -0.12, -0.08, temperature=1.0), effect(1.0, 0.8, -0.25, -0.15)
    of_run, of_file = (advise([own, scaled], None, has_probs=True, has_costs=True, of_run=of) for of in (True, False))
    assert of_run.headline == "Decide by least cost: a decision costs 10 % less [8, 12]"
    assert of_run.temperature == 1
    assert of_file.headline == "Fit temperature 0.64 and decide by least cost: a decision costs 20 % less [15, 25]"


def test_a_saving_without_an_interval_says_why():
    found = effect(1.0, 0.93, -0.2, 0.06)
    found = found._replace(saved=Saving(0.07, math.nan, math.nan))
    advice = advise([found], None, has_probs=True, has_costs=True)
    assert advice.headline.endswith(
        "not shown to save anything (7 % less; too few samples cost anything for an interval)"
    )


def test_without_costs_or_probabilities_the_headline_says_what_is_needed():
    assert advise([], None, has_probs=False, has_costs=True).headline.startswith("Save logits or probabilities")
    nothing = advise([], None, has_probs=True, has_costs=False)
    assert nothing.headline == "Say what mistakes cost (--costs or --taxonomy)"
    assert (nothing.saved, nothing.evidence, nothing.fallback) == (None, "", "")


def points(
    *goals: float, unreachable: tuple[float, ...] = (), tree: str = "taxonomy", temperature: float = 1.0
) -> Fallback:
    always = FallbackPoint(math.nan, 0.0, 0.984, 1.0, 1.0, 0.0)
    chosen = [FallbackPoint(goal, 0.57, 0.952, 0.8, 0.61, 0.06) for goal in goals]
    return Fallback(tree, 300, (always, *chosen), (), unreachable, temperature, ())


def test_the_sentence_on_the_fallback_is_about_the_first_goal_that_needs_one():
    told = (
        "For 95 % right answers name an ancestor below a probability of 0.57: 61 % get a class, 33 % an ancestor, 6 % no "
        "answer"
    )
    assert fallback_sentence(points(0.9, 0.95, 0.99)) == f"{told} (measured: 95.2 % right)."
    assert fallback_sentence(points(0.99)).startswith("For 99 % right answers")
    assert fallback_sentence(points()) == "98.4 % of the answers are right without naming an ancestor."
    assert "No threshold of the fallback gives 95 %" in fallback_sentence(points(0.9, unreachable=(0.95, 0.99)))
    assert "a group of confused classes" in fallback_sentence(points(0.95, tree="learned"))
    scaled = points(0.95, temperature=0.64)
    assert "of 0.57 at temperature 0.64:" in fallback_sentence(scaled)
    assert "temperature" not in fallback_sentence(scaled, 0.64)
    assert fallback_sentence(None) == ""


def test_the_text_and_the_headline_have_the_numbers_of_the_fallback():
    found = audited()
    point = next(point for point in found.fallback.points if point.goal == 0.95)
    assert found.advice.fallback in str(found)
    assert f"below a probability of {point.threshold:g}" in found.advice.fallback
    assert f"{100 * point.leaf_share:.0f} % get a class" in found.advice.fallback


# Reliability before and after.


def test_the_two_reliability_diagrams_are_of_the_measured_half():
    logits, target = drawn()
    scaled = audited().calibration.scaled
    half = decide.split_halves(len(target), 0).measured.numpy()
    errors = (scaled.ece_before, scaled.ece_after)
    for diagram, divisor, error in zip((scaled.before, scaled.after), (1, scaled.temperature), errors, strict=True):
        probs = torch.from_numpy(logits[half] / divisor).softmax(-1).numpy()
        assert sum(diagram.samples) == len(half)
        gaps = [n * abs(confidence - accuracy) for n, confidence, accuracy in zip(*diagram, strict=True) if n]
        assert sum(gaps) / len(half) == pytest.approx(error)
        right = sum(n * accuracy for n, _, accuracy in zip(*diagram, strict=True) if n)
        assert right / len(half) == pytest.approx((probs.argmax(1) == target[half]).mean())
    assert scaled.ece_after < scaled.ece_before


# Risk and coverage.


def test_the_risk_is_that_of_all_orders_of_equally_confident_samples():
    confidence, wrong = [0.9, 0.5, 0.7, 0.5, 0.5], [False, True, True, False, False]
    sums = np.zeros(5)
    orders = [o for o in permutations(range(5)) if all(confidence[a] >= confidence[b] for a, b in pairwise(o))]
    for order in orders:
        sums += np.cumsum([wrong[i] for i in order]) / np.arange(1, 6)
    keys = SortedKeys()
    keys.add(keys_of(torch.tensor(confidence), torch.tensor(wrong)))
    found = np.concatenate(list(expected_risks(keys)))
    assert found.tolist() == pytest.approx((sums / len(orders)).tolist())


def test_the_risks_of_the_levels_are_the_literal_loop():
    logits, target = drawn()
    probs = torch.from_numpy(logits[:301]).softmax(-1)
    found = level_risks(Scores.of(probs), Column.of(torch.from_numpy(target[:301])), PAIRS)
    assert [(level.depth, level.groups, level.is_classes) for level in found] == [
        (3, 8, True),
        (2, 4, False),
        (1, 2, False),
    ]
    for level, size in zip(found, (1, 2, 4), strict=True):
        grouped = probs.numpy().reshape(301, -1, size).sum(-1)
        order = np.argsort(-grouped.max(1), kind="stable")
        wrong = grouped.argmax(1) != target[:301] // size
        assert level.coverage[-1] == 1
        assert level.risk[-1] == pytest.approx(wrong.mean())
        for share, risk in zip(level.coverage, level.risk, strict=True):
            count = round(share * 301)
            assert share == pytest.approx(count / 301)
            assert risk == pytest.approx(wrong[order[:count]].mean())
        assert level.mean_risk == pytest.approx(np.mean([wrong[order[:m]].mean() for m in range(1, 302)]))
    assert found[0].mean_risk > found[1].mean_risk > found[2].mean_risk


def test_the_risk_does_not_depend_on_the_order_of_samples_or_classes():
    logits, target = drawn()
    probs, true = torch.from_numpy(logits[:200]).softmax(-1), torch.from_numpy(target[:200])
    order, names = torch.randperm(200, generator=torch.Generator().manual_seed(0)), [5, 2, 7, 0, 1, 6, 3, 4]
    place = torch.tensor([names.index(k) for k in range(8)])
    expected = level_risks(Scores.of(probs), true, PAIRS)
    renamed = PAIRS.reorder([str(k) for k in names])
    for found in (
        level_risks(Scores.of(probs[order]), true[order], PAIRS),
        level_risks(Scores.of(probs[:, names]), place[true], renamed),
    ):
        for level, other in zip(found, expected, strict=True):
            assert level.risk == pytest.approx(other.risk)
            assert level[:3] == other[:3]


def test_levels_are_few_and_differ():
    deep: Any = ["0", "1"]
    for k in range(2, 12):
        deep = {f"n{k}": deep, f"l{k}": [str(k)]}
    tree = Taxonomy.from_nested({"only": deep}).reorder([str(k) for k in range(12)])
    probs = torch.full((5, 12), 1 / 12, dtype=torch.float64)
    found = level_risks(Scores.of(probs), torch.zeros(5, dtype=torch.long), tree)
    sizes = [level.groups for level in found]
    assert len(found) == MOST_LEVELS
    assert sizes[0] == 12
    assert found[0].is_classes
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 2  # below the single child of the root
    flat = level_risks(
        Scores.of(probs), torch.zeros(5, dtype=torch.long), Taxonomy.from_nested([str(k) for k in range(12)])
    )
    assert [level.groups for level in flat] == [12]
