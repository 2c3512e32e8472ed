"""What adaptive labels do from step to step (001 Alg. 1)."""

import pytest
import torch

from labelkin import AdaptiveLabels
from support.cases import PUBLISHED
from support.worlds import default_dtype, generator

Z = torch.tensor([[1.0, 2.0, 0.0], [3.0, 0.0, 4.0], [5.0, 5.0, 5.0], [0.0, 0.0, 9.0]], dtype=torch.float64)
Y = torch.tensor([0, 0, 1, 1])
MEANS = torch.tensor([[2.0, 1.0, 2.0], [2.5, 2.5, 7.0]], dtype=torch.float64)


def adaptive(classes: int = 3, **options) -> AdaptiveLabels:
    with default_dtype(torch.float64):
        return AdaptiveLabels(classes=classes, **{**PUBLISHED, **options})


def test_labels_start_at_unit_vectors():
    assert torch.equal(adaptive(dims=5).labels, torch.eye(3, 5, dtype=torch.float64))
    assert torch.equal(adaptive().label_vectors(), torch.eye(3, dtype=torch.float64))


def test_labels_become_class_means_and_absent_classes_keep_theirs():
    objective = adaptive()
    objective.loss(Z, Y)
    torch.testing.assert_close(objective.labels[:2], MEANS)
    assert objective.labels[2].tolist() == [0, 0, 1]
    objective.loss(Z[:1], Y[:1])
    torch.testing.assert_close(objective.labels[0], Z[0])
    torch.testing.assert_close(objective.labels[1], MEANS[1])


@pytest.mark.parametrize(
    ("every", "warmup", "due"),
    [
        (1, 0, [0, 1, 2, 3, 4, 5]),
        (2, 0, [0, 2, 4]),
        (3, 0, [0, 3]),
        (1, 2, [2, 3, 4, 5]),
        (2, 1, [1, 3, 5]),
        (3, 2, [2, 5]),
    ],
)
def test_labels_move_when_they_are_due(every: int, warmup: int, due: list[int]):
    objective = adaptive(every=every, warmup=warmup)
    moved = []
    for taken in range(6):
        before = objective.labels.clone()
        objective.loss(Z + taken, Y)
        if not torch.equal(before, objective.labels):
            moved.append(taken)
    assert moved == due


def test_between_updates_labels_are_constants():
    """The loss is cross entropy on distances to the labels as they stand, and repel is silent."""
    objective = adaptive(every=2, repel=10.0)
    objective.loss(Z, Y)
    labels, z = objective.labels.clone(), (Z + 1).requires_grad_()
    result = objective.loss_terms(z, Y)
    expected = torch.nn.functional.cross_entropy(-(z[:, None] - labels).norm(dim=-1), Y)
    torch.testing.assert_close(result.total, expected)
    assert result.terms["repel"] == 0
    ours, wanted = (torch.autograd.grad(loss, z)[0] for loss in (result.total, expected))
    torch.testing.assert_close(ours, wanted)


def test_on_due_steps_the_gradient_flows_through_the_labels_unless_detached():
    def gradient(detach: bool) -> torch.Tensor:
        z = Z.clone().requires_grad_()
        adaptive(detach=detach).loss(z, Y).backward()
        return z.grad

    def expected(detach: bool) -> torch.Tensor:
        z = Z.clone().requires_grad_()
        labels = torch.stack([z[:2].mean(0), z[2:].mean(0), torch.eye(3, dtype=torch.float64)[2]])
        distances = (z[:, None] - (labels.detach() if detach else labels)).norm(dim=-1)
        torch.nn.functional.cross_entropy(-distances, Y).backward()
        return z.grad

    for detach in (False, True):
        torch.testing.assert_close(gradient(detach), expected(detach))
    assert not torch.allclose(gradient(True), gradient(False))


def test_momentum_takes_a_step_from_where_the_labels_stand():
    start = torch.eye(3, dtype=torch.float64)[:2]
    objective = adaptive(momentum=0.75)
    objective.loss(Z, Y)
    torch.testing.assert_close(objective.labels[:2], 0.75 * start + 0.25 * MEANS)
    objective.loss(Z + 4, Y)
    torch.testing.assert_close(objective.labels[:2], 0.75 * (0.75 * start + 0.25 * MEANS) + 0.25 * (MEANS + 4))
    assert objective.labels[2].tolist() == [0, 0, 1]


def test_with_memory_a_label_counts_as_so_many_samples():
    """Class 0 has two samples and class 1 one, beside a label that counts as three."""
    start = torch.eye(3, dtype=torch.float64)
    objective = adaptive(memory=3.0)
    objective.loss(Z[:3], Y[:3])
    torch.testing.assert_close(objective.labels[0], (3 * start[0] + Z[0] + Z[1]) / 5)
    torch.testing.assert_close(objective.labels[1], (3 * start[1] + Z[2]) / 4)
    assert objective.labels[2].tolist() == [0, 0, 1]
    left_out = adaptive(memory=3.0, leave_one_out=True)
    labels = torch.stack([(3 * start[0] + Z[0] + Z[1]) / 5, (3 * start[1] + Z[2]) / 4, start[2]])
    distances = (Z[:3, None] - labels).norm(dim=-1)
    distances[0, 0] = (Z[0] - (3 * start[0] + Z[1]) / 4).norm()
    distances[1, 0] = (Z[1] - (3 * start[0] + Z[0]) / 4).norm()
    distances[2, 1] = (Z[2] - start[1]).norm()
    expected = torch.nn.functional.cross_entropy(-distances, Y[:3])
    torch.testing.assert_close(left_out.loss(Z[:3], Y[:3]), expected)


def test_memory_is_the_published_rule_where_classes_have_many_samples():
    """With 3,000 samples a class, memory and leaving one out change the loss by less than a percent."""
    draw = generator(0)
    target = torch.arange(3).repeat_interleave(3000)
    z = torch.eye(3, dtype=torch.float64)[target] * 2 + torch.randn(9000, 3, generator=draw, dtype=torch.float64)
    with default_dtype(torch.float64):
        ours = AdaptiveLabels(classes=3, preset="memory").loss(z, target)
    torch.testing.assert_close(ours, adaptive().loss(z, target), rtol=1e-2, atol=0)


def test_left_out_a_sample_is_told_apart_from_its_own_label():
    """Of two samples, each is held to the other; a class present once keeps the label it had."""
    z, target = Z[[0, 1, 2]], torch.tensor([0, 0, 1])
    objective = adaptive(leave_one_out=True)
    labels = torch.stack([MEANS[0], Z[2], torch.eye(3, dtype=torch.float64)[2]])
    distances = (z[:, None] - labels).norm(dim=-1)
    distances[0, 0] = distances[1, 0] = (z[0] - z[1]).norm()
    distances[2, 1] = (z[2] - torch.eye(3, dtype=torch.float64)[1]).norm()
    expected = torch.nn.functional.cross_entropy(-distances, target)
    torch.testing.assert_close(objective.loss(z, target), expected)


def test_a_learned_scale_multiplies_distances():
    objective = adaptive(scale="learned")
    assert objective.loss(Z, Y) == adaptive().loss(Z, Y)
    with torch.no_grad():
        objective.log_scale.fill_(torch.tensor(3.0).log())
    torch.testing.assert_close(objective.loss(Z, Y), adaptive(scale=3.0).loss(Z, Y), rtol=1e-6, atol=0)


def test_refresh_takes_the_exact_class_means_of_all_batches():
    objective = adaptive(classes=4, dims=4)
    objective.loss(torch.randn(3, 4, dtype=torch.float64), torch.tensor([0, 1, 3]))
    last = objective.labels.clone()
    outputs = torch.randn(90, 4, generator=generator(0), dtype=torch.float64)
    target = torch.randint(3, (90,), generator=generator(1))
    objective.refresh([(outputs[:50], target[:50]), (outputs[50:].view(4, 10, 4), target[50:].view(4, 10))])
    expected = torch.stack([outputs[target == k].mean(0) for k in range(3)] + [last[3]])
    torch.testing.assert_close(objective.epoch_labels, expected)
    assert torch.equal(objective.labels, last)


@pytest.mark.parametrize("eval_labels", ["epoch", "last"])
def test_evaluation_predicts_with_the_labels_asked_for(eval_labels: str):
    objective = adaptive(eval_labels=eval_labels)
    assert objective.needs == ({"refresh"} if eval_labels == "epoch" else set())
    objective.loss(Z, Y)
    objective.refresh([(2 * Z, Y)])
    last, epoch = torch.eye(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64)
    last[:2], epoch[:2] = MEANS, 2 * MEANS
    assert torch.equal(objective.label_vectors(), last)
    objective.eval()
    labels = epoch if eval_labels == "epoch" else last
    torch.testing.assert_close(objective.label_vectors(), labels)
    expected = torch.log_softmax(-(Z[:, None] - labels).norm(dim=-1), -1)
    torch.testing.assert_close(objective.log_probs(Z), expected)
    torch.testing.assert_close(objective.loss(Z, Y), torch.nn.functional.nll_loss(expected, Y))


def test_evaluation_before_the_first_epoch_ends_uses_the_last_labels():
    objective = adaptive()
    objective.loss(Z, Y)
    objective.eval()
    torch.testing.assert_close(objective.label_vectors()[:2], MEANS)


def test_momentum_is_exact_in_float64_whatever_the_default_type():
    objective = AdaptiveLabels(classes=3, **{**PUBLISHED, "momentum": 0.9}).double()
    objective.loss(Z, Y)
    start = torch.eye(3, dtype=torch.float64)[:2]
    torch.testing.assert_close(objective.labels[:2], 0.9 * start + 0.1 * MEANS, rtol=1e-12, atol=0)
