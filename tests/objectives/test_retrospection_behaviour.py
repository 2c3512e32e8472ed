"""What retrospection does from epoch to epoch (LWR, Deng & Zhang)."""

import warnings

import pytest
import torch
import torch.nn.functional as F

from labelkin import InputError, Retrospection
from support.worlds import default_dtype, generator

TAU, SAMPLES = 3.0, 8
LOGITS = torch.randn(4, 5, generator=generator(0), dtype=torch.float64)
Y = torch.tensor([0, 3, 1, 4])
INDEX = torch.tensor([6, 0, 3, 7])


def retrospection(every: int = 2) -> Retrospection:
    with default_dtype(torch.float64):
        return Retrospection(classes=5, samples=SAMPLES, tau=TAU, every=every)


def expected(logits: torch.Tensor, soft: torch.Tensor, share: float) -> torch.Tensor:
    hard = F.cross_entropy(logits, Y)
    divergence = F.kl_div(F.log_softmax(logits / TAU, -1), soft, reduction="none").sum(-1).mean()
    return (1 - share) * hard + share * TAU**2 * divergence


@pytest.mark.parametrize(("every", "recording"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4]), (3, [3]), (5, [5])])
def test_outputs_are_recorded_in_every_kth_epoch(every: int, recording: list[int]):
    objective = retrospection(every)
    recorded = []
    for epoch in range(5):
        objective.begin_epoch(epoch, 5)
        before = objective.get_extra_state()["soft"][:-1].clone()
        objective.loss(LOGITS + epoch * Y[:, None], Y, index=INDEX)
        objective.loss(LOGITS * (2 + epoch), Y, index=INDEX)
        if not torch.equal(before, objective.get_extra_state()["soft"][:-1]):
            recorded.append(epoch + 1)
            rows = objective.get_extra_state()["soft"][INDEX]
            torch.testing.assert_close(rows, torch.softmax(LOGITS * (2 + epoch) / TAU, -1))
    assert recorded == recording


def test_plain_cross_entropy_until_a_sample_is_recorded_and_then_its_own_past():
    objective = retrospection()
    for epoch in range(2):
        objective.begin_epoch(epoch, 10)
        torch.testing.assert_close(objective.loss(LOGITS, Y, index=INDEX), F.cross_entropy(LOGITS, Y))
    soft = torch.softmax(LOGITS / TAU, -1)
    for epoch in (2, 3, 9):
        objective.begin_epoch(epoch, 10)
        loss = objective.loss(2 * LOGITS, Y, index=INDEX)
        torch.testing.assert_close(loss, expected(2 * LOGITS, soft, 0.9 * (epoch + 1) / 10))
        if epoch == 3:
            soft = torch.softmax(2 * LOGITS / TAU, -1)
    others = torch.tensor([1, 2, 4, 5])
    torch.testing.assert_close(objective.loss(LOGITS, Y, index=others), F.cross_entropy(LOGITS, Y))


def test_the_past_is_a_constant():
    objective = retrospection(every=1)
    objective.begin_epoch(0, 2)
    objective.loss(LOGITS.clone().requires_grad_(), Y, index=INDEX)
    assert not objective.get_extra_state()["soft"].requires_grad
    z = LOGITS.clone().requires_grad_()
    objective.begin_epoch(1, 2)
    soft = torch.softmax(LOGITS / TAU, -1)
    ours = torch.autograd.grad(objective.loss(z, Y, index=INDEX), z)[0]
    torch.testing.assert_close(ours, torch.autograd.grad(expected(z, soft, 0.9), z)[0])


def test_evaluation_is_plain_cross_entropy_and_needs_no_index():
    objective = retrospection(every=1)
    objective.begin_epoch(0, 2)
    objective.loss(LOGITS, Y, index=INDEX)
    objective.begin_epoch(1, 2)
    objective.eval()
    torch.testing.assert_close(objective.loss(LOGITS, Y), F.cross_entropy(LOGITS, Y))


def test_label_vectors_are_class_means_of_the_outputs():
    objective = retrospection()
    target = torch.tensor([0, 3, 0, 4])
    objective.refresh([(LOGITS[:3], target[:3]), (LOGITS[3:], target[3:])])
    means = torch.zeros(5, 5, dtype=torch.float64)
    means[0], means[3], means[4] = (LOGITS[0] + LOGITS[2]) / 2, LOGITS[1], LOGITS[3]
    torch.testing.assert_close(objective.label_vectors(), means)


@pytest.mark.parametrize("wrong", [-1, SAMPLES, 100])
def test_positions_outside_the_training_set_are_refused(wrong: int):
    objective = retrospection()
    objective.begin_epoch(0, 2)
    with pytest.raises(InputError, match=r"index: expected positions from 0 to 7"):
        objective.loss(LOGITS, Y, index=torch.tensor([0, 1, 2, wrong]))


def test_what_is_missing_is_asked_for():
    objective = retrospection()
    with pytest.raises(InputError, match="begin_epoch"):
        objective.loss(LOGITS, Y, index=INDEX)
    objective.begin_epoch(0, 2)
    with pytest.raises(InputError, match="index"):
        objective.loss(LOGITS, Y)


def test_the_table_follows_the_type_of_the_objective():
    objective = Retrospection(classes=5, samples=SAMPLES, tau=TAU, every=1).double()
    objective.begin_epoch(0, 2)
    objective.loss(LOGITS, Y, index=INDEX)
    objective.begin_epoch(1, 2)
    soft = torch.softmax(LOGITS / TAU, -1)
    loss = objective.loss(2 * LOGITS, Y, index=INDEX)
    torch.testing.assert_close(loss, expected(2 * LOGITS, soft, 0.9), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("epochs", "every", "asked"), [(1, 2, True), (2, 2, True), (3, 2, False), (3, 3, True)])
def test_too_few_epochs_to_look_back_are_questioned(epochs: int, every: int, asked: bool):
    objective = Retrospection(classes=3, samples=5, every=every)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for epoch in range(epochs):
            objective.begin_epoch(epoch, epochs)
    said = [str(one.message) for one in caught]
    assert len(said) == asked
    assert not asked or (f"at least {every + 1} epochs" in said[0] and "trains as one-hot does" in said[0])
