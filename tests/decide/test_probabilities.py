"""One check of probabilities and one of class positions, with the same rule in every room."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from labelkin import InputError, OneHot, Taxonomy, audit, decide, metrics
from labelkin._arrays import check_class_positions, check_probs, class_positions, ranked, sum_tolerance

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def softmax_batches(classes: int, dtype: torch.dtype, count: int = 20) -> list[Tensor]:
    draw = torch.Generator().manual_seed(classes)
    return [(3 * torch.randn(64, classes, generator=draw)).to(dtype).softmax(-1) for _ in range(count)]


def tree_of(classes: int) -> Taxonomy:
    return Taxonomy.from_nested([str(k) for k in range(classes)])


CHECKS: dict[str, Callable[[Tensor], object]] = {
    "metrics": lambda probs: metrics.brier_score(probs, torch.zeros(len(probs), dtype=torch.long)),
    "decide": decide.argmax,
    "node probabilities": lambda probs: decide.fallback(
        decide.node_probs(probs, tree_of(probs.shape[1])), tree_of(probs.shape[1]), 0.5
    ),
    "soft targets": lambda probs: OneHot(classes=probs.shape[1]).loss_terms(torch.zeros(probs.shape), probs),
}
every_check = pytest.mark.parametrize("check", CHECKS)


@pytest.mark.long
@every_check
@every_dtype
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_a_softmax_of_any_precision_is_probabilities(check: str, dtype: torch.dtype, classes: int):
    for probs in softmax_batches(classes, dtype, 20 if classes < 1000 else 2):
        CHECKS[check](probs)


@every_check
@every_dtype
def test_sums_beyond_the_tolerance_are_refused(check: str, dtype: torch.dtype):
    probs = torch.full((3, 4), 0.25, dtype=dtype)
    wrong = probs.clone()
    wrong[1, 2] += 2 * sum_tolerance(dtype, 4)
    CHECKS[check](probs)
    with pytest.raises(InputError, match="expected rows that sum to 1"):
        CHECKS[check](wrong)


def test_the_tolerance_follows_its_rule():
    """max(1e-3, eps / 2 x (2 + log2 K)), and half the smallest number for each class."""
    assert sum_tolerance(torch.float64, 1000) == sum_tolerance(torch.float32, 1000) == pytest.approx(1e-3)
    assert sum_tolerance(torch.bfloat16, 16) == pytest.approx(2**-8 * 6)
    assert sum_tolerance(torch.float16, 2) == pytest.approx(2**-11 * 3 + 2**-24)
    assert sum_tolerance(torch.float16, 100_000) == pytest.approx(2**-11 * (2 + math.log2(100_000)) + 1e5 * 2**-25)


def test_float16_underflow_of_many_classes_is_within_the_tolerance():
    """Probabilities below the smallest number become 0; the sum then misses as many halves of it as there are classes."""
    classes = 60_000
    probs = torch.full((1, classes), 0.4999 * 2**-24, dtype=torch.float64)
    probs[0, 0] = 1 - probs[0, 1:].sum()
    check_probs("probs", probs.half())


def test_a_file_of_rounded_decimals_has_its_own_tolerance():
    """Three decimals, stored as float64: the type says nothing of how they were rounded."""
    probs = np.array([[0.333, 0.333, 0.333 - 0.003], [0.5, 0.25, 0.25]])
    assert audit.audit({"target": np.array([0, 0]), "probs": probs}).samples == 2
    with pytest.raises(InputError, match="expected rows that sum to 1"):
        check_probs("probs", torch.from_numpy(probs))
    check_probs("probs", torch.from_numpy(probs), tolerance=1e-2)


@pytest.mark.parametrize("values", [torch.tensor([0.0, 1.0]), torch.tensor([True]), torch.tensor([1j])], ids=str)
def test_classes_are_whole_numbers(values: Tensor):
    with pytest.raises(InputError, match="target: expected class positions as integers, got torch"):
        check_class_positions("target", values, 3)


@pytest.mark.parametrize(("wrong", "got"), [([0, 3], 3), ([-1, 0], -1)])
def test_classes_lie_within_their_count(wrong: list[int], got: int):
    for check in (check_class_positions, class_positions):
        with pytest.raises(InputError, match=f"target: expected class positions from 0 to 2, got {got}"):
            check("target", torch.tensor(wrong), 3)


@pytest.mark.parametrize("given", [[0, 2], (0, 2), np.array([0, 2], dtype=np.uint8), torch.tensor([0, 2])], ids=repr)
def test_positions_are_read_from_arrays_and_lists(given: object):
    found = class_positions("target", given, 3)
    assert found.dtype == torch.int64
    assert found.tolist() == [0, 2]


@pytest.mark.parametrize("given", [["cat"], None, [[0, 1], [2]], [0.5], [math.nan]], ids=repr)
def test_what_holds_no_positions_is_refused(given: object):
    with pytest.raises(InputError, match="classes: expected class positions"):
        class_positions("classes", given, 3)


# Ranking: the lowest position wins a tie.


@every_dtype
@pytest.mark.parametrize("k", [1, 3, 10])
def test_ranking_is_a_stable_sort(dtype: torch.dtype, k: int):
    draw = torch.Generator().manual_seed(0)
    scores = torch.randint(4, (200, 10), generator=draw).to(dtype)
    expected = [sorted(range(10), key=lambda i: (-row[i], i))[:k] for row in scores.tolist()]
    assert ranked(scores, k).tolist() == expected
    assert torch.equal(ranked(scores, 1)[:, 0], scores.argmax(-1))


@every_dtype
def test_top_1_accuracy_is_accuracy(dtype: torch.dtype):
    draw = torch.Generator().manual_seed(1)
    scores = torch.randn(4000, 100, generator=draw).to(dtype).softmax(-1)
    target = torch.randint(100, (4000,), generator=draw)
    target[:2000] = scores[:2000].argmax(-1)
    top = metrics.top_k_accuracy(scores, target, k=1).values
    assert torch.equal(top, metrics.accuracy(scores.argmax(-1), target).values)
    tree = tree_of(100)
    far = metrics.average_distance(scores, target, tree, k=1).values
    assert torch.equal(far == 0, top)
    for k in (2, 5):
        among = (ranked(scores, k) == target.unsqueeze(1)).any(-1)
        assert torch.equal(metrics.top_k_accuracy(scores, target, k=k).values, among)
