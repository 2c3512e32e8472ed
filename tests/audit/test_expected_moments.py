"""Intervals that count costly mistakes which are too rare to occur: moments by loops, and coverage by simulation."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from labelkin import Taxonomy, decide
from labelkin.audit import audit
from labelkin.audit._expected_moments import expected_moments
from labelkin.audit._measures import mean_interval
from labelkin.audit._paired import Paired
from support.trees import KINDS, random_taxonomy


def drawn(classes: int, samples: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities, and two answers each, of which the first third are the same."""
    generator = torch.Generator().manual_seed(seed)
    probs = torch.rand(samples, classes, generator=generator, dtype=torch.float64).softmax(-1)
    before, after = (torch.randint(classes, (samples,), generator=generator) for _ in range(2))
    after[: samples // 3] = before[: samples // 3]
    return probs, before, after


def by_loop(probs: Tensor, before: Tensor, after: Tensor, costs: Tensor) -> list[list[float]]:
    found = []
    for row, first, second in zip(probs.tolist(), before.tolist(), after.tolist(), strict=True):
        sums = [0.0] * 5
        for true, prob in enumerate(row):
            one, other = float(costs[true, first]), float(costs[true, second])
            for place, product in enumerate((one, other, one * one, one * other, other * other)):
                sums[place] += prob * product
        found.append(sums)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_moments_in_a_tree_are_those_of_a_loop(kind: str):
    tree = random_taxonomy(np.random.default_rng(3), 8, kind)
    probs, before, after = drawn(len(tree.leaves), 30)
    expected = by_loop(probs, before, after, torch.from_numpy(tree.distance("height")))
    np.testing.assert_allclose(expected_moments(probs, before, after, tree, None).T, expected, rtol=1e-9, atol=1e-9)


def test_moments_of_costs_are_those_of_a_loop():
    probs, before, _ = drawn(5, 40)
    costs = torch.from_numpy(np.random.default_rng(0).random((5, 7)) * 9)  # the last two answers are actions
    after = torch.arange(40) % 7
    expected = by_loop(probs, before, after, costs)
    np.testing.assert_allclose(expected_moments(probs, before, after, None, costs).T, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_the_larger_variance_makes_the_interval(size: int):
    """With sure predictions it is the observed one; with unsure ones, that of costs whose true class is drawn from them."""
    probs, before, after = drawn(6, 60)
    costs = torch.from_numpy(np.random.default_rng(1).random((6, 6)) * 5)
    true = torch.randint(6, (60,), generator=torch.Generator().manual_seed(2))
    paid = costs[true, before], costs[true, after]
    means = [float(part.mean()) for part in paid]
    for sure in (False, True):
        believed = torch.nn.functional.one_hot(true, 6).double() if sure else probs
        paired = Paired()
        for part in torch.arange(60).split(size):
            moments = expected_moments(believed[part], before[part], after[part], None, costs)
            paired.add(paid[0][part], paid[1][part], expected=moments)

        def variances(ratio: float, believed: Tensor = believed) -> tuple[float, float]:
            """Those of the mean after less `ratio` times the mean before: observed, and expected."""
            every = costs[:, after].T - ratio * costs[:, before].T  # (n, K), by true class
            expected = float((believed * every**2).sum(-1).mean() - (believed * every).sum(-1).mean() ** 2) * 60 / 59
            return float((paid[1] - ratio * paid[0]).var()) / 60, expected / 60

        change, saving = paired.difference(), paired.saving()
        observed, expected = variances(1.0)
        assert (expected > observed * 1.0001) != sure
        assert change.high - change.low == pytest.approx(2 * 1.959964 * max(observed, expected) ** 0.5, rel=1e-6)
        for ratio in (1 - saving.low, 1 - saving.high):  # the difference is just significant there
            wanted = (means[1] - ratio * means[0]) ** 2
            assert 1.959964**2 * max(variances(ratio)) == pytest.approx(wanted, rel=1e-6)
        assert (saving.low <= 0 <= saving.high) == (change.low <= 0 <= change.high)


def rare(samples: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Calibrated probabilities of six classes, true classes drawn from them, and costs of 50 for one rare mistake."""
    random = np.random.default_rng(seed)
    target = random.integers(6, size=samples)
    shift = random.normal(size=(samples, 6))
    shift[np.arange(samples), target] += 2.5
    costs = 1 - torch.eye(6, dtype=torch.float64)
    costs[0, 1] = 50
    return torch.from_numpy(2.5 * shift).softmax(-1), torch.from_numpy(target), costs


@pytest.mark.long
def test_intervals_cover_savings_on_rare_mistakes():
    """In 400 draws of 300 samples; intervals of the observed variance alone, which are not Fieller's, cover less."""
    probs, target, costs = rare(200_000, 0)
    best, least = probs.argmax(-1), decide.least_cost(probs, costs)
    before, after = costs[target, best], costs[target, least]
    true = 1 - float(after.mean() / before.mean())
    random = np.random.default_rng(1)
    covered = {"linear": 0, "audit": 0, "mean": 0, "mean observed": 0}
    limited = 0
    for _ in range(400):
        rows = torch.from_numpy(random.integers(len(target), size=300))
        ratio = after[rows].sum() / before[rows].sum()
        reach = 1.96 * float((after[rows] - ratio * before[rows]).var() / 300) ** 0.5 / float(before[rows].mean())
        covered["linear"] += 1 - ratio - reach <= true <= 1 - ratio + reach
        moments = expected_moments(probs[rows], best[rows], least[rows], None, costs)
        found = Paired().add(before[rows], after[rows], expected=moments).saving()
        limited += not math.isnan(found.low)
        covered["audit"] += math.isnan(found.low) or found.low <= true <= found.high
        mean, _, square, *_ = moments.mean(1).tolist()
        for name, least_variance in (("mean observed", 0.0), ("mean", square - mean**2)):
            values, times = before[rows].unique(return_counts=True)
            interval = mean_interval(values, times, expected_variance=least_variance)
            covered[name] += interval.low <= float(before.mean()) <= interval.high
    assert limited > 100
    assert covered["linear"] < 0.8 * 400
    assert covered["audit"] > 0.93 * 400
    assert covered["mean observed"] < covered["mean"]
    assert covered["mean"] > 0.9 * 400


def test_an_audit_counts_mistakes_that_did_not_occur():
    """The mistake that costs 50 is none of the samples, so the observed saving is sure, and too large or too small."""
    probs, target, costs = rare(2000, 3)
    best = probs.argmax(-1)
    kept = (
        ((costs[target, best] < 50) & (costs[target, decide.least_cost(probs, costs)] < 50)).nonzero().flatten()[:120]
    )
    found = audit({"target": target[kept].numpy(), "probs": probs[kept].numpy()}, costs=costs.numpy())
    change = found.crm[0].cost
    assert change is not None
    assert change.high - change.low > 0.2
    assert math.isnan(found.crm[0].saved.low)
    assert found.cost is not None
    assert found.cost.interval.high - found.cost.interval.low > 0.5
    assert found.advice.rule == "argmax"


def test_an_audit_in_a_tree_widens_the_interval_of_the_distance():
    """Every sample saves 2, so the observed variance is 0; the probabilities expect changes of -2, -1 and +2."""
    tree = Taxonomy.from_nested({"a": ["x", "y"], "b": ["z"]})
    found = audit(
        {"target": np.zeros(40, int), "probs": np.tile([[0.35, 0.25, 0.4]], (40, 1))},
        taxonomy=tree,
        classes=list("xyz"),
    )
    change = found.crm[0].distance_at_1
    assert change is not None
    assert (change.before, change.after) == (2, 0)
    variance = 0.35 * 4 + 0.25 * 1 + 0.4 * 4 - (0.35 * -2 + 0.25 * -1 + 0.4 * 2) ** 2
    reach = 1.959964 * (variance / 39) ** 0.5
    assert (change.low, change.high) == pytest.approx((-2 - reach, -2 + reach), rel=1e-6)


def test_an_audit_in_which_no_decision_changes_has_no_interval_of_the_distance():
    tree = Taxonomy.from_nested({"a": ["x", "y"], "b": ["z"]})
    found = audit(
        {"target": np.array([0] * 39 + [1]), "probs": np.tile([[0.5, 0.2, 0.3]], (40, 1))},
        taxonomy=tree,
        classes=list("xyz"),
    )
    change = found.crm[0].distance_at_1
    assert change is not None
    assert change.before == change.after == pytest.approx(1 / 40)
    assert change.low == change.high == 0


def test_an_audit_widens_the_interval_of_what_actions_save():
    """Asking costs .3 more than the class in every sample; the probabilities expect that it saves .7 in 40 % of the samples."""
    table = {"x": {"x": 0, "y": 1, "ask": 0.3}, "y": {"x": 1, "y": 0, "ask": 0.3}}
    data = {"target": np.zeros(40, int), "probs": np.tile([[0.6, 0.4]], (40, 1))}
    change = audit(data, costs=table, classes=["x", "y"]).crm[0].cost_by_actions
    assert change is not None
    assert (change.before, change.after) == pytest.approx((0, 0.3))
    reach = 1.959964 * ((0.6 * 0.3**2 + 0.4 * 0.7**2 - (0.6 * 0.3 - 0.4 * 0.7) ** 2) / 39) ** 0.5
    assert (change.low, change.high) == pytest.approx((0.3 - reach, 0.3 + reach), rel=1e-6)
