"""Retrospection and static labels against their formulas written as loops."""

import pytest
import torch
import torch.nn.functional as F

from labelkin.functional import huber_to_vectors, retrospection
from support import reference
from support.numeric import (
    GAP,
    check_alive,
    check_gradient,
    close,
    gradient,
    positions,
    probabilities,
    renamed,
    samples,
    values,
)

K, TAU = 5, 5.0
SHARE = torch.tensor(0.36, dtype=torch.float64)


def inputs(*lead, seed=0):
    """Logits, targets, earlier probabilities with some exact zeros, and which samples have any."""
    soft = probabilities(seed + 2, *lead, K)
    soft = soft * (soft > 0.08)
    soft = soft / soft.sum(-1, keepdim=True)
    return values(seed, *lead, K), positions(seed + 1, K, *lead), soft, positions(seed + 3, 3, *lead) > 0


@pytest.mark.parametrize("lead", [(9,), (3, 4)])
@pytest.mark.parametrize("tau", [1.0, 5.0])
def test_retrospection_is_the_loop(lead, tau):
    logits, target, soft, recorded = inputs(*lead)
    assert (soft == 0).any()
    assert recorded.any()
    assert not recorded.all()
    found = retrospection(logits, target, soft, recorded, tau=tau, share=SHARE)
    for i in samples(lead):
        expected = reference.retrospection(
            logits[i].tolist(), int(target[i]), soft[i].tolist(), bool(recorded[i]), tau, float(SHARE)
        )
        close(found[i], expected)


def test_retrospection_gradient():
    logits, target, soft, recorded = inputs(6, seed=10)
    check_gradient(lambda x: retrospection(x, target, soft, recorded, tau=TAU, share=SHARE), logits)


def test_retrospection_without_share_or_record_is_cross_entropy():
    logits, target, soft, recorded = inputs(6, seed=20)
    plain = F.cross_entropy(logits, target, reduction="none")
    none, never = torch.zeros((), dtype=torch.float64), torch.zeros(6, dtype=torch.bool)
    close(retrospection(logits, target, soft, recorded, tau=TAU, share=none), plain)
    close(retrospection(logits, target, torch.zeros_like(soft), never, tau=TAU, share=SHARE), plain)


@pytest.mark.parametrize("tau", [0.5, 2.0, 5.0])
def test_tau_squared_keeps_the_scale_of_the_gradient(tau):
    """`d/dx tau^2 KL(s || softmax(x / tau)) = tau (softmax(x / tau) - s)`: without the factor it would be 1 / tau of this."""
    logits, target, soft, _ = inputs(6, seed=30)
    everyone, whole = torch.ones(6, dtype=torch.bool), torch.ones((), dtype=torch.float64)
    grad = gradient(lambda x: retrospection(x, target, soft, everyone, tau=tau, share=whole), logits)
    q = [reference.softmax([v / tau for v in row]) for row in logits.tolist()]
    expected = [[tau * (q[i][k] - soft[i, k].item()) for k in range(K)] for i in range(6)]
    close(grad, expected)


def test_nothing_is_left_to_learn_from_ones_own_outputs():
    """With the whole share on soft labels that are the present outputs, loss and gradient are zero."""
    logits, target, _, _ = inputs(6, seed=40)
    soft = torch.softmax(logits / TAU, -1)
    everyone, whole = torch.ones(6, dtype=torch.bool), torch.ones((), dtype=torch.float64)
    close(retrospection(logits, target, soft, everyone, tau=TAU, share=whole), torch.zeros(6))
    close(gradient(lambda x: retrospection(x, target, soft, everyone, tau=TAU, share=whole), logits), torch.zeros(6, K))


def test_order_and_names_mean_nothing():
    logits, target, soft, recorded = inputs(8, seed=50)
    plain = retrospection(logits, target, soft, recorded, tau=TAU, share=SHARE)
    rows, _ = renamed(51, 8)
    order, place = renamed(52, K)
    close(retrospection(logits[rows], target[rows], soft[rows], recorded[rows], tau=TAU, share=SHARE), plain[rows])
    close(retrospection(logits[:, order], place[target], soft[:, order], recorded, tau=TAU, share=SHARE), plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("known", [False, True])
def test_alive_200_below(dtype, known):
    """Recorded or not; the earlier outputs did not doubt the class."""
    logits = torch.zeros(2, K, dtype=dtype)
    logits[:, 3] = -GAP
    soft, recorded = F.one_hot(torch.tensor([3, 3]), K).to(dtype), torch.full((2,), known)
    loss, grad = check_alive(
        lambda x: retrospection(x, torch.tensor([3, 3]), soft, recorded, tau=TAU, share=SHARE.to(dtype)), logits, 3
    )
    assert (loss > 100).all()
    assert (grad[:, 3] < 0).all()


# Static labels.


@pytest.mark.parametrize("lead", [(9,), (3, 4)])
def test_huber_is_the_loop(lead):
    z, vectors = values(60, *lead, 6), values(61, *lead, 6)
    gaps = (z - vectors).abs()
    assert (gaps > 1).any()
    assert (gaps < 1).any()
    found = huber_to_vectors(z, vectors)
    for i in samples(lead):
        close(found[i], reference.huber(z[i].tolist(), vectors[i].tolist()))


def test_huber_gradient():
    check_gradient(huber_to_vectors, values(62, 6, 4), values(63, 6, 4))


def test_huber_worked_by_hand():
    """Gaps .5, 1 and 3: (.125 + .5 + 2.5) / 3."""
    z, vector = torch.tensor([[0.5, 1.0, -3.0]]), torch.zeros(1, 3)
    torch.testing.assert_close(huber_to_vectors(z, vector), torch.tensor([3.125 / 3]))
    torch.testing.assert_close(
        gradient(lambda z: huber_to_vectors(z, vector), z), torch.tensor([[0.5 / 3, 1 / 3, -1 / 3]])
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huber_alive_200_away(dtype):
    z, vector = torch.zeros(1, 3, dtype=dtype), torch.tensor([[0.0, GAP, 0.0]], dtype=dtype)
    check_alive(lambda z: huber_to_vectors(z, vector), z, 1)


def test_huber_order_of_samples_and_dimensions():
    z, vectors = values(64, 8, 6), values(65, 8, 6)
    rows, _ = renamed(66, 8)
    columns, _ = renamed(67, 6)
    close(huber_to_vectors(z[rows][:, columns], vectors[rows][:, columns]), huber_to_vectors(z, vectors)[rows])
