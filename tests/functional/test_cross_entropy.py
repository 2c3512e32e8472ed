"""Flat losses against loops written from 000 Eq. 1, 002 Eq. 5-6 and 004 Eq. 1-7."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from labelkin.functional import (
    confidence_penalty,
    cross_entropy,
    infogain,
    mixed_rows,
    smoothed_cross_entropy,
    soft_cross_entropy,
)
from support import reference
from support.numeric import (
    GAP,
    check_alive,
    check_gradient,
    close,
    each,
    each_soft,
    gradient,
    positions,
    probabilities,
    relation,
    renamed,
    samples,
    values,
)

K = 5
H = values(90, K, K).abs()  # any matrix: neither symmetric nor with rows that sum to 1
LOSSES = {
    "cross_entropy": (cross_entropy, reference.cross_entropy),
    "smoothed": (partial(smoothed_cross_entropy, smoothing=0.3), partial(reference.label_smoothing, smoothing=0.3)),
    "confidence": (partial(confidence_penalty, strength=0.4), partial(reference.confidence_penalty, strength=0.4)),
    "infogain": (partial(infogain, matrix=H), partial(reference.infogain, matrix=H.tolist())),
}
every_loss = pytest.mark.parametrize(("loss", "loop"), LOSSES.values(), ids=LOSSES)
leads = pytest.mark.parametrize("lead", [(7,), (3, 4)])


@every_loss
@leads
def test_is_the_loop(loss, loop, lead):
    logits, target = values(0, *lead, K), positions(1, K, *lead)
    close(loss(logits, target), each(loop, logits, target))


@every_loss
@leads
@pytest.mark.parametrize("mass", ["one", "weighted"])
def test_soft_target_is_the_expected_loss(loss, loop, lead, mass):
    """Also where class weights were multiplied in, so that a target does not sum to 1."""
    logits, target = values(2, *lead, K), probabilities(3, *lead, K)
    if mass == "weighted":
        target = target * torch.tensor([0.5, 1.0, 2.0, 0.0, 3.0], dtype=torch.float64)
    close(loss(logits, target), each_soft(loop, logits, target))


@leads
def test_soft_cross_entropy_is_the_loop(lead):
    logits, rows = values(4, *lead, K), values(5, *lead, K).abs()
    expected = torch.empty(lead, dtype=torch.float64)
    for i in samples(lead):
        expected[i] = reference.soft_cross_entropy(logits[i].tolist(), rows[i].tolist())
    close(soft_cross_entropy(logits, rows), expected)


@leads
def test_mixed_rows_are_the_loop(lead):
    """One eps a class, and class 2 without kin, which stays one-hot whatever its eps."""
    kin, eps, target = relation(6, K, isolated=[2]), probabilities(7, K) / 2, positions(8, K, *lead)
    assert (target == 2).any()
    rows = mixed_rows(kin[target], eps[target], target)
    for i in samples(lead):
        close(rows[i], reference.mixed_row(kin.tolist(), eps.tolist(), int(target[i])))
    close(rows.sum(-1), torch.ones(lead))


@every_loss
def test_gradients(loss, loop):
    logits = values(9, 4, K)
    check_gradient(lambda x: loss(x, positions(10, K, 4)), logits)
    check_gradient(lambda x: loss(x, probabilities(11, 4, K)), logits)


def test_gradients_reach_learned_rows():
    target = torch.tensor([0, 3, 3, 1])
    check_gradient(soft_cross_entropy, values(12, 4, K), probabilities(13, 4, K))
    check_gradient(lambda rows, eps: mixed_rows(rows, eps, target), relation(14, K)[target], probabilities(15, 4) / 2)


def test_a_class_without_kin_gives_its_eps_no_gradient():
    target, kin = torch.tensor([0, 2, 1]), relation(16, K, isolated=[2])
    logits = values(17, 3, K)
    grad = gradient(
        lambda eps: soft_cross_entropy(logits, mixed_rows(kin[target], eps, target)), probabilities(18, 3) / 2
    )
    assert grad[1] == 0
    assert (grad[[0, 2]] != 0).all()


# What they come down to.


PLAIN = {
    "cross_entropy": cross_entropy,
    "no smoothing": partial(smoothed_cross_entropy, smoothing=0.0),
    "no penalty": partial(confidence_penalty, strength=0.0),
    "identity": partial(infogain, matrix=torch.eye(K)),
    "one-hot rows": lambda x, y: soft_cross_entropy(x, F.one_hot(y, K).double()),
    "sigma 0": lambda x, y: soft_cross_entropy(x, (0.0 * relation(20, K) + 1.0 * torch.eye(K))[y]),
    "eps 0": lambda x, y: soft_cross_entropy(x, mixed_rows(relation(20, K)[y], torch.zeros(len(y)).double(), y)),
}


@pytest.mark.parametrize("loss", PLAIN.values(), ids=PLAIN)
def test_reduces_to_torch_cross_entropy(loss):
    logits, target = values(21, 9, K), positions(22, K, 9)
    close(loss(logits, target), F.cross_entropy(logits, target, reduction="none"))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9, 1.0])
def test_smoothing_is_torchs(smoothing):
    logits, target = values(23, 9, K), positions(24, K, 9)
    expected = F.cross_entropy(logits, target, reduction="none", label_smoothing=smoothing)
    close(smoothed_cross_entropy(logits, target, smoothing), expected)


def test_a_diagonal_infogain_weights_the_classes():
    """`H_ii = min N / N_i` (004 Sec. 2)."""
    counts = torch.tensor([10.0, 20.0, 5.0, 40.0, 5.0], dtype=torch.float64)
    weight = counts.min() / counts
    logits, target = values(25, 20, K), positions(26, K, 20)
    expected = F.cross_entropy(logits, target, weight=weight, reduction="none")
    close(infogain(logits, target, torch.diag(weight)), expected)


def test_infogain_reads_columns():
    """`H_{i,y}`: only the entry [2, 0] is set, so only class 0 has a loss, and it is paid on output 2."""
    matrix = torch.zeros(K, K, dtype=torch.float64)
    matrix[2, 0] = 1
    logits = values(27, 1, K)
    close(infogain(logits, torch.tensor([0]), matrix), F.cross_entropy(logits, torch.tensor([2]), reduction="none"))
    close(infogain(logits, torch.tensor([2]), matrix), [0.0])


def test_mixing_evenly_is_label_smoothing_rescaled():
    """A relation that is uniform over the other K - 1 classes at eps gives smoothing eps K / (K - 1)."""
    eps, even = 0.2, (1 - torch.eye(K).double()) / (K - 1)
    logits, target = values(28, 9, K), positions(29, K, 9)
    rows = mixed_rows(even[target], torch.full((9,), eps, dtype=torch.float64), target)
    close(soft_cross_entropy(logits, rows), smoothed_cross_entropy(logits, target, eps * K / (K - 1)))


def test_the_confidence_penalty_rewards_doubt():
    sure, unsure = torch.tensor([[9.0, 0, 0]]), torch.tensor([[1.0, 0, 0]])
    y = torch.tensor([0])
    extra = [confidence_penalty(x, y, 1.0) - cross_entropy(x, y) for x in (sure, unsure)]
    assert extra[1] < extra[0] < 0


def test_the_loss_is_linear_in_eps():
    target, kin, logits = positions(30, K, 6), relation(31, K), values(32, 6, K)
    at = {
        eps: soft_cross_entropy(logits, mixed_rows(kin[target], torch.full((6,), eps, dtype=torch.float64), target))
        for eps in (0.0, 0.2, 0.4)
    }
    close(at[0.2], (at[0.0] + at[0.4]) / 2)


@pytest.mark.parametrize("mixing", ["shared", "class"])
def test_printed_gradients_hold(mixing):
    """004 Eq. 5 and 7, with the probabilities f(X) as independent variables."""
    kin = relation(33, K)
    eps = torch.full((K,), 0.35, dtype=torch.float64) if mixing == "shared" else probabilities(34, K) / 2
    target = torch.arange(K)
    f = probabilities(35, K, K)
    rows = mixed_rows(kin[target], eps[target], target)
    printed = torch.empty(K, K, dtype=torch.float64)
    for y in range(K):
        for j in range(K):
            weight = 1 - eps[y] if j == y else eps[y] * kin[y, j]
            printed[y, j] = -weight / f[y, j]
    close(gradient(lambda f: -(rows * f.log()).sum(-1), f), printed)
    # From log f as logits the softmax's normalisation is differentiated too: + 1 where f and the rows sum to 1.
    close(gradient(lambda f: soft_cross_entropy(f.log(), rows), f), printed + 1)


# Order and names mean nothing.


@every_loss
def test_sample_order(loss, loop):
    logits, target = values(40, 8, K), positions(41, K, 8)
    order, _ = renamed(42, 8)
    close(loss(logits[order], target[order]), loss(logits, target)[order])


def test_class_names():
    logits, target, soft = values(43, 8, K), positions(44, K, 8), probabilities(45, 8, K)
    order, place = renamed(46, K)
    kin, eps = relation(47, K, isolated=[1]), probabilities(48, K) / 2
    for loss in (cross_entropy, LOSSES["smoothed"][0], LOSSES["confidence"][0]):
        close(loss(logits[:, order], place[target]), loss(logits, target))
        close(loss(logits[:, order], soft[:, order]), loss(logits, soft))
    close(infogain(logits[:, order], place[target], H[order][:, order]), infogain(logits, target, H))
    rows = mixed_rows(kin[target], eps[target], target)
    new_kin, new_eps, new_target = kin[order][:, order], eps[order], place[target]
    close(mixed_rows(new_kin[new_target], new_eps[new_target], new_target), rows[:, order])


# The true class far below the best.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every_loss
def test_alive_200_below(loss, loop, dtype):
    logits = torch.zeros(2, K, dtype=dtype)
    logits[:, 3] = -GAP
    hard, soft = torch.tensor([3, 3]), F.one_hot(torch.tensor([3, 3]), K).to(dtype)
    for target in (hard, soft):
        values_, grad = check_alive(lambda x, target=target: loss(x, target), logits, 3)
        assert (values_ > 0.1 * GAP).all()
        assert (grad[:, 3] < 0).all()  # descent raises the true class


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_mixed_rows_alive_200_below(dtype):
    logits = torch.zeros(2, K, dtype=dtype)
    logits[:, 3] = -GAP
    target, kin = torch.tensor([3, 3]), relation(50, K).to(dtype)
    rows = mixed_rows(kin[target], torch.tensor([0.0, 0.35], dtype=dtype), target)
    check_alive(lambda x: soft_cross_entropy(x, rows), logits, 3)
    grad = gradient(
        lambda eps: soft_cross_entropy(logits, mixed_rows(kin[target], eps, target)), torch.full((2,), 0.2, dtype=dtype)
    )
    assert torch.isfinite(grad).all()
    assert (grad < 0).all()  # giving more away costs less here
