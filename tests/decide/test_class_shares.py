"""Probabilities for other class shares: Bayes' rule by loops, and the guarantee where the shares change."""

from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor

from labelkin import InputError, Taxonomy, decide
from labelkin.decide._guarantee import threshold_of, weighted_threshold


def drawn(samples: int, classes: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)).softmax(-1)


def test_probabilities_are_those_of_a_loop():
    probs, shares, trained = drawn(20, 4), [3.0, 0.0, 1.0, 4.0], [1.0, 2.0, 3.0, 2.0]
    found = decide.adjust_shares(probs, torch.tensor(shares), torch.tensor(trained))
    for row, given in zip(found.tolist(), probs.tolist(), strict=True):
        factors = [
            p * (new / sum(shares)) / (old / sum(trained)) for p, new, old in zip(given, shares, trained, strict=True)
        ]
        assert row == pytest.approx([factor / sum(factors) for factor in factors])
    assert found[:, 1].eq(0).all()


def test_the_posterior_under_one_share_becomes_that_under_another():
    """Twelve inputs, whose probabilities given the class do not change."""
    given_class = drawn(3, 12, seed=1).T  # p(x | y), columns sum to 1
    old, new = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.05, 0.15, 0.8])
    before, after = ((joint := given_class * shares) / joint.sum(1, keepdim=True) for shares in (old, new))
    torch.testing.assert_close(decide.adjust_shares(before, new, old), after)
    marginal = (given_class * old).sum(1)
    torch.testing.assert_close(
        (before * marginal.unsqueeze(1)).sum(0), old.double()
    )  # means of probabilities are the shares


def test_counts_are_shares_and_adjusting_twice_is_adjusting_once():
    probs, first, second = drawn(9, 5), torch.tensor([1.0, 2, 3, 4, 5]), torch.tensor([5, 1, 1, 2, 9])
    even = torch.ones(5)
    torch.testing.assert_close(decide.adjust_shares(probs, second, second * 7), probs)
    twice = decide.adjust_shares(decide.adjust_shares(probs, first, even), second, first)
    torch.testing.assert_close(twice, decide.adjust_shares(probs, second, even))
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(twice[:, order], decide.adjust_shares(probs[:, order], second[order], even))


def test_a_sample_whose_classes_do_not_occur_gets_even_probabilities():
    probs = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    found = decide.adjust_shares(probs, torch.tensor([0, 1, 3]), torch.ones(3))
    assert found.tolist() == [[0, 0.5, 0.5], [0, 1, 0]]


def likelihood(probs: Tensor, shares: Tensor, trained: Tensor, prior: float) -> float:
    """The log-likelihood of the new samples, and of `prior` samples per class in the former shares."""
    former = trained / trained.sum()
    added = prior * len(former) * (former * shares.log()).sum()
    return float((probs * shares / former).sum(1).log().sum() + added)


@pytest.mark.parametrize("prior", [0.0, 1.0, 10.0])
def test_estimated_shares_have_the_greatest_likelihood(prior: float):
    """No small step to other shares has a greater one; the problem is concave, so no shares have."""
    trained = torch.tensor([1.0, 2, 3, 2])
    probs = decide.adjust_shares(drawn(60, 4, seed=9), trained, torch.ones(4))
    found = decide.estimate_shares(probs, trained, prior=prior)
    best = likelihood(probs, found, trained, prior)
    generator = torch.Generator().manual_seed(1)
    for size in (1e-3, 1e-2, 0.3):
        for _ in range(100):
            other = found * torch.exp(size * torch.randn(4, generator=generator, dtype=torch.float64))
            assert likelihood(probs, other / other.sum(), trained, prior) <= best + 1e-9
    assert float(found.sum()) == pytest.approx(1)


def test_sure_probabilities_are_counted_and_a_strong_prior_keeps_the_former_shares():
    probs, trained = torch.eye(3)[torch.tensor([0, 0, 1, 2, 2, 2])], torch.tensor([5.0, 3, 2])
    torch.testing.assert_close(decide.estimate_shares(probs, trained, prior=0), torch.tensor([2, 1, 3]).double() / 6)
    expected = (torch.tensor([2, 1, 3]) + 6 * trained / 10).double() / 12
    torch.testing.assert_close(decide.estimate_shares(probs, trained, prior=2), expected)
    torch.testing.assert_close(decide.estimate_shares(probs, trained, prior=1e9), trained.double() / 10)


def test_estimated_shares_come_close_to_the_true_ones():
    probs, _ = samples_with(SHARES, 20_000, torch.Generator().manual_seed(10))
    found = decide.estimate_shares(probs, torch.ones(6))
    torch.testing.assert_close(found, SHARES.double() / SHARES.sum(), atol=0.02, rtol=0)


REFUSED: dict[str, tuple[Any, str]] = {
    "one too few": (
        lambda p: decide.adjust_shares(p, torch.ones(2), torch.ones(3)),
        r"shares: expected shape \(3,\), a number",
    ),
    "a word": (
        lambda p: decide.adjust_shares(p, "even", torch.ones(3)),
        "shares: expected 3 numbers, one for each class, got 'e",
    ),
    "negative": (
        lambda p: decide.adjust_shares(p, torch.tensor([1, -1, 1]), torch.ones(3)),
        "at least 0, got a minimum of -1",
    ),
    "no share": (
        lambda p: decide.adjust_shares(p, torch.zeros(3), torch.ones(3)),
        "shares: expected at least one share above 0",
    ),
    "an old 0": (
        lambda p: decide.adjust_shares(p, torch.ones(3), torch.tensor([1, 0, 1])),
        "trained: expected shares above 0, got 0 for the class at position 1",
    ),
    "a prior below 0": (lambda p: decide.estimate_shares(p, torch.ones(3), prior=-1), "prior: "),
    "no probabilities": (
        lambda p: decide.adjust_shares(p / 2, torch.ones(3), torch.ones(3)),
        "probs: expected rows that sum to 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_adjusted_is_refused(case: str):
    work, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        work(drawn(4, 3))


# The guarantee.


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.3, 1 / 3])
def test_equal_weights_give_the_threshold_of_the_rank(alpha: float):
    generator = torch.Generator().manual_seed(2)
    for samples in range(1, 130):
        scores = torch.rand(samples, generator=generator, dtype=torch.float64).round(decimals=2)  # with ties
        expected = threshold_of(scores, alpha)
        for weight in (1.0, 0.3):
            found = weighted_threshold(scores, torch.full((samples,), weight, dtype=torch.float64), weight, alpha)
            assert found == pytest.approx(expected, nan_ok=True), (samples, weight)


def test_the_weighted_threshold_is_that_of_a_loop():
    generator = torch.Generator().manual_seed(3)
    for case in range(200):
        samples = 1 + case % 40
        scores = torch.rand(samples, generator=generator).mul(20).round().div(20)
        weights = torch.randint(0, 5, (samples,), generator=generator)
        if not weights.any():
            continue
        need = Fraction(9, 10) * (int(weights.sum()) + int(weights.max()))
        enough = [
            float(score)
            for score in sorted(set(scores.tolist()))
            if sum(int(weight) for other, weight in zip(scores.tolist(), weights, strict=True) if other <= score)
            >= need
        ]
        found = weighted_threshold(scores, weights.double(), float(weights.max()), 0.1)
        assert found == pytest.approx(
            enough[0] if enough and enough[0] < 1 else float("inf") if enough else float("nan"), nan_ok=True
        )


NAMES = [f"c{k}" for k in range(6)]
TREE = Taxonomy.from_nested({"easy": NAMES[:3], "hard": NAMES[3:]}).reorder(NAMES)
SHARES = torch.tensor([1.0, 1, 1, 6, 6, 6])


def samples_with(shares: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Probabilities that are right for even shares, and true classes in these shares; "hard" classes are hard to tell apart."""
    target = torch.multinomial(shares, count, replacement=True, generator=generator)
    noise = torch.randn(count, 6, generator=generator, dtype=torch.float64)
    apart = torch.tensor([3.0, 3, 3, 0.7, 0.7, 0.7], dtype=torch.float64)
    # Normal features with means apart_k * e_k: the log-likelihood of class k is apart_k x_k - apart_k ** 2 / 2 + const.
    features = noise + apart[target].unsqueeze(1) * torch.nn.functional.one_hot(target, 6)
    return (features * apart - apart**2 / 2).softmax(-1), target


@pytest.mark.parametrize("by", ["all", "predicted", "true"])
def test_the_guarantee_holds_for_new_shares(by: Any):
    """Over 150 fits on 300 samples with even shares, for new samples of which six of seven are hard."""
    generator = torch.Generator().manual_seed(4)
    ratios, right = SHARES / SHARES.sum() * 6, {"former": [], "new": []}
    for _ in range(150):
        probs, target = samples_with(torch.ones(6), 300, generator)
        probs_new, target_new = samples_with(SHARES, 400, generator)
        for name, given in (("former", None), ("new", ratios)):
            rule = decide.Rule("fallback", TREE, share_ratios=given)
            safe = decide.GuaranteedFallback(0.2, by).fit(
                decide.node_probs(rule.adjusted(probs), TREE), target, TREE, share_ratios=given
            )
            answer = safe.apply(decide.node_probs(rule.adjusted(probs_new), TREE), TREE).numpy()
            hits = torch.from_numpy(TREE.lca(answer, TREE.leaves[target_new.numpy()]) == answer)
            right[name].append(float(hits.double().mean()))
    means = {name: sum(values) / len(values) for name, values in right.items()}
    error = torch.tensor(right["new"]).std().item() / 150**0.5
    assert means["new"] >= 0.8 - 3 * error
    if by == "all":
        assert means["former"] < 0.76
        assert means["new"] < 0.84  # no more than the largest weight costs


@pytest.mark.parametrize("by", ["all", "predicted", "true"])
def test_equal_ratios_change_no_threshold(by: Any):
    probs, target = samples_with(torch.ones(6), 200, torch.Generator().manual_seed(8))
    below = decide.node_probs(probs, TREE)
    plain = decide.GuaranteedFallback(0.1, by).fit(below, target, TREE)
    assert (
        decide.GuaranteedFallback(0.1, by).fit(below, target, TREE, share_ratios=torch.full((6,), 3.0)).thresholds
        == plain.thresholds
    )


def test_a_threshold_for_a_true_subtree_weights_a_new_sample_by_the_classes_of_the_subtree():
    """The thresholds of "true" are those that each subtree alone would have, whatever the ratios of the other one are."""
    probs, target = samples_with(torch.ones(6), 200, torch.Generator().manual_seed(11))
    below = decide.node_probs(probs, TREE)
    found = []
    for easy in (1.0, 5.0):
        ratios = torch.tensor([easy, easy, easy, 1, 1, 2])
        found.append(decide.GuaranteedFallback(0.1, "true").fit(below, target, TREE, share_ratios=ratios).thresholds)
    assert found[0] == found[1]


def test_decisions_for_the_right_shares_cost_less():
    generator = torch.Generator().manual_seed(5)
    probs, target = samples_with(SHARES, 4000, generator)
    costs = torch.from_numpy(TREE.distance("height"))
    paid = [
        float(costs[target, decide.least_cost(given, TREE)].double().mean())
        for given in (probs, decide.adjust_shares(probs, SHARES, torch.ones(6)))
    ]
    assert paid[1] < 0.95 * paid[0]


def test_a_fitted_rule_measures_the_former_shares_on_the_half_of_the_temperature():
    generator = torch.Generator().manual_seed(6)
    probs, target = samples_with(torch.ones(6), 400, generator)
    fitted = decide.Rule("fallback", TREE).fitted(1.5 * probs.log(), target, coverage=0.8, shares=SHARES, seed=3)
    first, second = decide.split_halves(400, 3)
    value = decide.Temperature().fit(1.5 * probs[first].log(), target[first]).value
    assert value is not None
    calibrated = (1.5 * probs.log() / value).softmax(-1)
    ratios = SHARES / SHARES.sum() / calibrated[first].mean(0)
    assert fitted.rule.share_ratios is not None
    torch.testing.assert_close(fitted.rule.share_ratios, ratios.double())
    torch.testing.assert_close(fitted.probs, calibrated[second])
    expected = decide.GuaranteedFallback(0.2).fit(
        decide.node_probs(decide.adjust_shares(calibrated[second], SHARES, calibrated[first].mean(0)), TREE),
        target[second],
        TREE,
        share_ratios=ratios,
    )
    assert fitted.rule.guarantee is not None
    assert fitted.rule.guarantee.thresholds == pytest.approx(expected.thresholds)
    plain = decide.Rule("fallback", TREE).fitted(1.5 * probs.log(), target, coverage=0.8, seed=3)
    assert plain.rule.guarantee is not None
    assert plain.rule.guarantee.thresholds != pytest.approx(expected.thresholds)
    assert plain.rule.adjusted(calibrated) is calibrated


def test_a_guarantee_that_the_samples_cannot_give_is_refused():
    generator = torch.Generator().manual_seed(7)
    probs, target = samples_with(torch.ones(6), 60, generator)
    below = decide.node_probs(probs, TREE)
    rare = torch.tensor([0.0, 0, 0, 0, 0, 50])
    few = torch.where(target == 5, 0, target)
    with pytest.raises(
        InputError, match="share_ratios: too few calibration samples belong to classes that are frequent"
    ):
        decide.GuaranteedFallback(0.1).fit(below, few, TREE, share_ratios=rare)
    with pytest.raises(InputError, match="node_probs: too few calibration samples of 'hard' belong"):
        decide.GuaranteedFallback(0.1, by="true").fit(below, few, TREE, share_ratios=rare)
    with pytest.raises(InputError, match="confidence: it is known only where new samples have the same class shares"):
        decide.GuaranteedFallback(0.1, confidence=0.9).fit(below, target, TREE, share_ratios=SHARES)
    with pytest.raises(InputError, match=r"share_ratios: expected shape \(6,\)"):
        decide.GuaranteedFallback(0.1).fit(below, target, TREE, share_ratios=torch.ones(5))
