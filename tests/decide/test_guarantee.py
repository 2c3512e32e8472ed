"""The guarantee of `GuaranteedFallback` by a loop over thresholds and by simulated splits, and the check for shift."""

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import beta, ks_2samp
from torch import Tensor

from labelkin import InputError, Taxonomy, decide
from labelkin.decide._guarantee import least_samples, rank
from labelkin.decide._shift import largest_differences
from support.trees import KINDS, random_taxonomy

every_tree = pytest.mark.parametrize("kind", KINDS)
every_guarantee = pytest.mark.parametrize("by", ["all", "predicted", "true"])


def world(
    tree: Taxonomy, samples: int, seed: int = 0, sharper: float = 1.0, shares: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Node probabilities of a model that is `sharper` than the truth, and true classes drawn from the truth.

    With `shares`, classes are drawn from them first and logits are a fixed function of class and noise: the classes'
    shares change and the logits given the class do not.
    """
    generator = torch.Generator().manual_seed(seed)
    classes = len(tree.leaves)
    weights = torch.ones(classes) if shares is None else shares
    target = torch.multinomial(weights.double(), samples, replacement=True, generator=generator)
    near = -torch.from_numpy(tree.distance("height"))[target]
    hard = 0.5 + torch.arange(classes)[target].unsqueeze(-1) / classes  # the last classes are the hardest
    logits = near + hard * 1.5 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    return decide.node_probs((sharper * logits).softmax(-1), tree), target


def is_right(answer: Tensor, target: Tensor, tree: Taxonomy) -> Tensor:
    nodes = answer.numpy()
    return torch.from_numpy(np.asarray(tree.lca(nodes, tree.leaves[target.numpy()])) == nodes)


def two_level(classes: int = 12) -> Taxonomy:
    half = classes // 2
    names = [f"c{k:02}" for k in range(classes)]
    return Taxonomy.from_nested(
        {"easy": {"e1": names[: half // 2], "e2": names[half // 2 : half]}, "hard": names[half:]}
    ).reorder(names)


# The threshold.


def smallest_threshold_by_loop(row: Tensor, target: int, tree: Taxonomy) -> float:
    """Walk down all thresholds at which an answer can change; stop at the first wrong answer."""
    marks = sorted({0.0, *(min(p, 1.0) for p in row.tolist())}, reverse=True)
    smallest = math.inf
    for mark in (t for p in marks for t in (math.nextafter(p, math.inf), p)):
        if mark > 1:
            smallest = mark  # only the root is left
            continue
        answer = int(decide.fallback(row.unsqueeze(0), tree, mark))
        if answer not in tree.ancestors(int(tree.leaves[target])):
            return smallest
        smallest = mark
    return 0.0


@cache
def calibrated_by_loop(kind: str) -> tuple[Taxonomy, Tensor, Tensor, list[float]]:
    """A tree, 23 samples, and the thresholds that each of them needs, in ascending order."""
    tree = random_taxonomy(np.random.default_rng(3), 7, kind)
    nodes, target = world(tree, 23, seed=1)
    needed = [smallest_threshold_by_loop(row, int(y), tree) for row, y in zip(nodes, target, strict=True)]
    return tree, nodes, target, sorted(needed)


@every_tree
@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5])
def test_the_threshold_is_the_literal_quantile(kind: str, alpha: float):
    tree, nodes, target, needed = calibrated_by_loop(kind)
    expected = needed[math.ceil(24 * (1 - alpha)) - 1]
    found = decide.GuaranteedFallback(alpha).fit(nodes, target, tree)
    assert found.thresholds == {tree.names[0]: expected}
    assert torch.equal(found.apply(nodes, tree), decide.fallback(nodes, tree, min(expected, 1.0)))


@every_tree
def test_each_subtree_has_the_threshold_of_its_samples(kind: str):
    """By the walk's subtree the thresholds differ; by the true one, all samples get the largest."""
    tree = random_taxonomy(np.random.default_rng(5), 5, kind)
    nodes, target = world(tree, 400, seed=2)
    fork = 0
    while len(tree.children[fork]) == 1:
        fork = int(tree.children[fork][0])
    tops = [int(node) for node in tree.children[fork]]
    ends = decide.fallback(nodes, tree, 0.0).tolist()
    entered = [next(top for top in tops if top in tree.ancestors(end)) for end in ends]
    belongs = [next(top for top in tops if top in tree.ancestors(int(tree.leaves[y]))) for y in target]
    for by, groups in (("predicted", entered), ("true", belongs)):
        parts = {top: [i for i, group in enumerate(groups) if group == top] for top in tops}
        alone = [decide.GuaranteedFallback(0.2).fit(nodes[part], target[part], tree) for part in parts.values()]
        thresholds = [next(iter((part.thresholds or {}).values())) for part in alone]
        safe = decide.GuaranteedFallback(0.2, by).fit(nodes, target, tree)  # type: ignore[arg-type]
        if by == "true":
            assert safe.thresholds == {tree.names[0]: max(thresholds)}
            continue
        assert safe.thresholds == dict(zip((tree.names[top] for top in tops), thresholds, strict=True))
        answers = safe.apply(nodes, tree)
        for part, fitted in zip(parts.values(), alone, strict=True):
            assert torch.equal(answers[part], fitted.apply(nodes[part], tree))


def test_on_a_flat_tree_it_is_selective_classification():
    """Answer a class where its probability exceeds the split conformal quantile of the probabilities of mistakes."""
    tree = Taxonomy.from_nested([f"c{k}" for k in range(6)])
    nodes, target = world(tree, 200)
    probs = nodes[:, 1:]
    best, guess = probs.max(-1)
    scores = torch.where(guess == target, -1.0, best).sort().values
    quantile = float(scores[math.ceil(201 * 0.9) - 1])
    answers = decide.GuaranteedFallback(0.1).fit(nodes, target, tree).apply(nodes, tree)
    assert torch.equal(answers, torch.where(best > quantile, guess + 1, 0))
    assert 0 < int((answers == 0).sum()) < 200


def test_a_model_without_mistakes_always_answers_a_class():
    tree = two_level()
    target = torch.arange(12).repeat(4)
    nodes = decide.node_probs(torch.eye(12, dtype=torch.float64)[target], tree)
    for by in ("all", "predicted", "true"):
        alpha = 0.1 if by == "all" else 0.2
        safe = decide.GuaranteedFallback(alpha, by).fit(nodes, target, tree)  # type: ignore[arg-type]
        assert set((safe.thresholds or {}).values()) == {0.0}
        assert torch.equal(safe.apply(nodes, tree), torch.from_numpy(tree.leaves.copy())[target])


def test_a_model_that_is_always_sure_and_often_wrong_answers_nothing():
    tree = two_level()
    nodes = decide.node_probs(torch.eye(12)[torch.zeros(40, dtype=torch.long)], tree)
    safe = decide.GuaranteedFallback(0.1).fit(nodes, torch.full((40,), 11), tree)
    assert safe.thresholds == {"root": math.inf}
    assert safe.apply(nodes, tree).tolist() == [0] * 40


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_node_as_probable_as_the_mistake_is_not_answered(dtype: torch.dtype):
    """0.7 in float32 is more than 0.7: the comparison must not round the threshold to it."""
    tree = Taxonomy.from_nested(["a", "b"])
    nodes = decide.node_probs(torch.tensor([[0.7, 0.3]], dtype=dtype), tree)
    calibration, target = nodes.repeat(9, 1), torch.ones(9, dtype=torch.long)
    safe = decide.GuaranteedFallback(0.1).fit(calibration, target, tree)
    assert safe.apply(nodes, tree).tolist() == [0]
    surer = decide.node_probs(torch.tensor([[0.7001, 0.2999]], dtype=dtype), tree)
    assert safe.apply(surer, tree).tolist() == [1]


@every_guarantee
def test_order_of_samples_and_classes_does_not_matter(by: Any):
    tree = two_level()
    nodes, target = world(tree, 300)
    safe = decide.GuaranteedFallback(0.1, by).fit(nodes, target, tree)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(1))
    assert decide.GuaranteedFallback(0.1, by).fit(nodes[order], target[order], tree) == safe
    names = [tree.classes[k] for k in torch.randperm(12, generator=torch.Generator().manual_seed(2))]
    moved = tree.reorder(names)  # the nodes keep their numbers
    place = torch.tensor([names.index(name) for name in tree.classes])
    assert decide.GuaranteedFallback(0.1, by).fit(nodes, place[target], moved) == safe
    assert torch.equal(safe.apply(nodes, moved), safe.apply(nodes, tree))


@pytest.mark.parametrize("alpha", [0.05, 0.07, 0.1, 0.29, 0.3, 1 / 3, 1 - 0.95, 1 - 0.9])
def test_the_rank_is_that_of_the_decimal(alpha: float):
    exact = Fraction(round(alpha, 9)).limit_denominator(1000)
    for samples in range(1, 400):
        assert rank(samples, alpha) == math.ceil((samples + 1) * (1 - exact))
        assert (rank(samples, alpha) <= samples) == (samples >= least_samples(alpha))


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_the_rank_of_a_confidence_is_the_first_with_that_probability(alpha: float, confidence: float):
    """By exact sums of binomial probabilities; it is never below the rank of the mean."""
    wrong, sure = Fraction(str(alpha)), Fraction(str(confidence))
    found_least = False
    for samples in range(1, 130):
        below, expected = Fraction(0), 0  # P(fewer than `expected` right answers)
        while below < sure:
            below += math.comb(samples, expected) * (1 - wrong) ** expected * wrong ** (samples - expected)
            expected += 1
        expected = max(expected, rank(samples, alpha))
        assert rank(samples, alpha, confidence) == expected
        enough = expected <= samples
        assert enough == (samples >= least_samples(alpha, confidence))
        found_least |= enough
    assert found_least or least_samples(alpha, confidence) >= 130
    assert least_samples(0.05, 0.95) == 59


def test_the_least_number_of_samples_for_a_tiny_error_is_found_at_once():
    """It was counted up one by one."""
    found = least_samples(1e-12, 0.9)
    assert found == pytest.approx(math.log(10) * 1e12, rel=1e-3)


# The guarantee, by simulation.


def simulated(
    by: Any,
    alpha: float,
    *,
    splits: int = 400,
    sharper: float = 1.0,
    calibration: int = 100,
    confidence: float | None = None,
) -> Tensor:
    """(splits, 1 + subtrees) shares of right answers: of all samples, and of those that the guarantee names one by one."""
    tree = two_level()
    nodes, target = world(tree, 2500, sharper=sharper)
    entered = torch.from_numpy(tree.paths[decide.fallback(nodes, tree, 0.0).numpy(), 1].copy())
    belongs = torch.from_numpy(tree.level(1))[target]
    groups = {"all": torch.zeros(2500), "predicted": entered, "true": belongs}[by]
    generator = torch.Generator().manual_seed(7)
    shares = []
    for _ in range(splits):
        order = torch.randperm(2500, generator=generator)
        fitted, measured = order[:calibration], order[calibration:]
        safe = decide.GuaranteedFallback(alpha, by, confidence=confidence).fit(nodes[fitted], target[fitted], tree)
        right = is_right(safe.apply(nodes[measured], tree), target[measured], tree).double()
        shares.append([float(right.mean()), *(float(right[groups[measured] == g].mean()) for g in groups.unique())])
    return torch.tensor(shares, dtype=torch.float64)


@pytest.mark.long
@pytest.mark.parametrize("sharper", [1.0, 4.0])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_mean_coverage_over_splits_is_the_promise(alpha: float, sharper: float):
    """And no more than 1 / (n + 1) above it, with the spread of a Beta distribution; sharp models are no exception."""
    found = simulated("all", alpha, sharper=sharper)[:, 0]
    place = rank(100, alpha)
    theory = beta(place, 101 - place)
    assert float(theory.mean()) == pytest.approx(place / 101)
    error = float(found.std()) / math.sqrt(len(found))
    assert 1 - alpha - 3 * error <= float(found.mean()) <= place / 101 + 3 * error
    assert float(found.std()) == pytest.approx(float(theory.std()), rel=0.15)
    assert 0.3 < float((found < 1 - alpha).double().mean()) < 0.55  # a single split often falls below


@pytest.mark.long
@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("by", ["all", "predicted"])
def test_a_confidence_is_the_share_of_fits_that_keep_the_promise(by: Any, confidence: float):
    """For each subtree by itself; the rank is a whole number, so the share may be larger, but not by much."""
    found = simulated(by, 0.1, splits=500, calibration=150, confidence=confidence)
    kept = (found[:, 1:] >= 0.9).double().mean(0)
    error = math.sqrt(confidence * (1 - confidence) / len(found))
    assert bool((kept >= confidence - 3 * error).all())
    assert float(kept.min()) < 1
    assert float((found[:, 1:] > 0.97).double().mean()) < 0.5  # by answers, not by silence


@pytest.mark.long
@pytest.mark.parametrize("by", ["predicted", "true"])
def test_mean_coverage_of_every_subtree_is_the_promise(by: Any):
    found = simulated(by, 0.1, splits=500, calibration=150)
    assert found.shape == (500, 3)
    error = found.std(0) / math.sqrt(len(found))
    assert bool((found.mean(0) >= 0.9 - 3 * error).all())


def test_overall_thresholds_do_not_keep_the_promise_of_subtrees():
    """Otherwise the test above would show nothing."""
    tree = two_level()
    nodes, target = world(tree, 20_000)
    right = is_right(decide.GuaranteedFallback(0.1).fit(nodes, target, tree).apply(nodes, tree), target, tree)
    belongs = torch.from_numpy(tree.level(1))[target]
    shares = [float(right[belongs == top].double().mean()) for top in belongs.unique()]
    assert min(shares) < 0.88
    assert max(shares) > 0.92


@pytest.mark.long
def test_what_is_left_under_other_class_shares_and_noise():
    """More of the hard subtree: only the guarantee by true subtree holds. Noise: none does, and the check warns."""
    tree = two_level()
    nodes, target = world(tree, 20_000)
    shares = torch.tensor([0.1] * 6 + [1.0] * 6)
    moved, moved_target = world(tree, 20_000, seed=1, shares=shares)
    noise = torch.randn(20_000, 12, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    leaves = torch.from_numpy(tree.leaves.copy())
    noisy = decide.node_probs((nodes[:, leaves].log() + 2 * noise).softmax(-1), tree)
    covered: dict[str, list[float]] = {}
    for by in ("all", "true"):
        safe = decide.GuaranteedFallback(0.1, by).fit(nodes, target, tree)  # type: ignore[arg-type]
        covered[by] = [
            float(is_right(safe.apply(given, tree), true, tree).double().mean())
            for given, true in ((moved, moved_target), (noisy, target))
        ]
    assert covered["all"][0] < 0.88
    assert covered["true"][0] >= 0.895
    assert max(covered["all"][1], covered["true"][1]) < 0.85
    calibration = nodes[:500, leaves]
    for given in (moved, noisy):
        with pytest.warns(UserWarning, match="new samples differ from the calibration samples"):
            assert decide.check_shift(calibration, given[:500, leaves]).shifted


# The check for shift.


def test_the_largest_differences_are_scipys():
    generator = torch.Generator().manual_seed(0)
    left = torch.rand(57, 4, generator=generator, dtype=torch.float64)
    right = torch.rand(83, 4, generator=generator, dtype=torch.float64) ** 2
    left[:, 3], right[:, 3] = (4 * left[:, 3]).round(), (4 * right[:, 3]).round()  # ties
    found = largest_differences(left, right)
    expected = [ks_2samp(left[:, k].numpy(), right[:, k].numpy()).statistic for k in range(4)]
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.long
def test_false_alarms_are_as_rare_as_stated_and_a_shift_is_named():
    tree = two_level()
    leaves = torch.from_numpy(tree.leaves.copy())
    nodes, target = world(tree, 60_000)
    probs, alarms = nodes[:, leaves], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in range(0, 60_000, 300):
            batch = probs[start : start + 300]
            alarms += decide.check_shift(batch[:100], batch[100:], false_alarms=0.1).shifted
        assert 0 < alarms <= 0.1 * 200 + 2 * math.sqrt(200 * 0.1 * 0.9)
        only = probs[target != 4]
        found = decide.check_shift(probs[:5000], only[:5000])
    assert found.shifted
    assert found.column == 4
    assert found.p_value <= 0.01


def test_a_surer_model_differs_in_its_highest_probability():
    """Each class is among the two possible ones equally often, so that single classes differ less."""

    def two_of_ten(highest: float, seed: int) -> Tensor:
        order = torch.rand(400, 10, generator=torch.Generator().manual_seed(seed)).argsort(-1)
        values = torch.tensor([highest, 1 - highest, *([0.0] * 8)], dtype=torch.float64)
        return torch.empty(400, 10, dtype=torch.float64).scatter_(-1, order, values.expand(400, -1))

    with pytest.warns(UserWarning, match="of the highest probability are 1.00 apart"):
        found = decide.check_shift(two_of_ten(0.55, 0), two_of_ten(0.9, 1))
    assert found.column is None
    assert found.shifted


# Halves, and bad input.


def test_halves_are_disjoint_complete_and_random():
    first, second = decide.split_halves(101, seed=3)
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(101))
    assert first.tolist() == sorted(first.tolist())
    assert not torch.equal(first, decide.split_halves(101, seed=4).fitted)
    assert 15 < int((first < 50).sum()) < 35


def small(count: int, *, one_sided: bool = False) -> tuple[Tensor, Tensor, Taxonomy]:
    tree = two_level()
    shares = torch.tensor([1.0] * 6 + [0.0] * 6) if one_sided else None
    return *world(tree, count, shares=shares), tree


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "too few": (
        lambda: decide.GuaranteedFallback(0.05).fit(*small(18)),
        "expected at least 19 calibration samples for alpha = 0.05, got 18 samples; with fewer, only the root",
    ),
    "too few in a true subtree": (
        lambda: decide.GuaranteedFallback(0.05, "true").fit(*small(300, one_sided=True)),
        "'hard' has fewer than the 19 calibration samples",
    ),
    "too few everywhere": (
        lambda: decide.GuaranteedFallback(0.01, "predicted").fit(*small(90)),
        "'easy', 'hard' have fewer than the 99 calibration samples",
    ),
    "too few for a confidence": (
        lambda: decide.GuaranteedFallback(0.05, confidence=0.95).fit(*small(58)),
        "expected at least 59 calibration samples for alpha = 0.05 with a confidence of 0.95, got 58 samples",
    ),
    "too few for a confidence in a true subtree": (
        lambda: decide.GuaranteedFallback(0.05, "true", confidence=0.95).fit(*small(300, one_sided=True)),
        "'hard' has fewer than the 59 calibration samples that alpha = 0.05 with a confidence of 0.95 needs",
    ),
    "confidence of 1": (
        lambda: decide.GuaranteedFallback(0.1, confidence=1),
        "confidence: expected a number between 0 and 1, such as 0.9, got 1",
    ),
    "confidence of 95": (
        lambda: decide.GuaranteedFallback(0.1, confidence=95),
        r"confidence: expected a number in \[0, 1\]",
    ),
    "alpha of 0": (lambda: decide.GuaranteedFallback(0.0), "alpha: expected a number between 0 and 1"),
    "alpha of 95": (lambda: decide.GuaranteedFallback(95), r"alpha: expected a number in \[0, 1\]"),
    "by": (lambda: decide.GuaranteedFallback(0.1, "subtree"), "by: expected one of 'all'"),  # type: ignore[arg-type]
    "not fitted": (lambda: decide.GuaranteedFallback(0.1).apply(small(9)[0], two_level()), "no thresholds yet"),
    "another tree": (
        lambda: decide.GuaranteedFallback(0.1, "all", {"animal": 0.5}).apply(small(9)[0], two_level()),
        "no node 'animal'",
    ),
    "few new samples": (
        lambda: decide.check_shift(torch.full((20, 2), 0.5), torch.full((9, 2), 0.5)),
        "probs: expected at least 10 samples, got 9",
    ),
    "other classes": (lambda: decide.check_shift(torch.full((20, 2), 0.5), torch.full((20, 4), 0.25)), r"\(n, 2\)"),
    "one sample": (lambda: decide.split_halves(1), "count: expected a whole number of at least 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_a_sentence(case: str):
    call, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_predicted_subtree_without_a_threshold_is_not_answered():
    nodes, _, tree = small(200)
    entered = torch.from_numpy(tree.paths[decide.fallback(nodes, tree, 0.0).numpy(), 1].copy())
    answers = decide.GuaranteedFallback(0.1, "predicted", {"easy": 0.0}).apply(nodes, tree)
    assert torch.equal(answers == 0, entered == tree.node("hard"))


def test_a_predicted_subtree_with_too_few_samples_is_not_answered():
    nodes, target, tree = small(200)
    entered = torch.from_numpy(tree.paths[decide.fallback(nodes, tree, 0.0).numpy(), 1].copy())
    easy = entered == tree.node("easy")
    easy[(~easy).nonzero()[:5]] = True  # five of the other subtree
    with pytest.warns(UserWarning, match="'hard' has fewer than the 9 calibration samples"):
        safe = decide.GuaranteedFallback(0.1, "predicted").fit(nodes[easy], target[easy], tree)
    assert safe.thresholds is not None
    assert safe.thresholds["hard"] == math.inf
    answers = safe.apply(nodes, tree)
    assert not answers[entered == tree.node("hard")].any()
    assert bool(answers[entered == tree.node("easy")].any())
