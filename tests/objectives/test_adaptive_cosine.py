"""Adaptive labels by cosines: the loss and the labels against loops, their schedule, and which rule options mean."""

import pytest
import torch
import torch.nn.functional as F

from labelkin import AdaptiveLabels, InputError
from labelkin.functional import anchored_labels, class_sums, running_means
from support import reference
from support.numeric import check_gradient, close, positions, values
from support.worlds import default_dtype

K, D, N = 4, 5, 14


def cosine(**options) -> AdaptiveLabels:
    with default_dtype(torch.float64):
        return AdaptiveLabels(classes=K, **{"dims": D, **options})


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Outputs, targets without class 3, and weights of which one is 0."""
    weight = values(seed + 1, N).abs()
    weight[2] = 0
    return values(seed, N, D), positions(seed, K - 1, N), weight


def test_it_is_the_default():
    objective = cosine()
    assert (objective.preset, objective.share, objective.momentum, objective.scale) == ("cosine", 0.3, 0.95, "learned")
    assert objective.log_scale.exp().item() == pytest.approx(16)
    assert objective.needs == set()
    assert torch.equal(objective.label_vectors(), torch.eye(K, D, dtype=torch.float64))


@pytest.mark.parametrize("epochs", [None, 8])
def test_steps_are_the_loop(epochs: int | None):
    """Three steps in each of four epochs; without `begin_epoch` the share is there from the start."""
    objective = cosine(preset="cosine", share=0.4, momentum=0.8)
    means = [[0.0] * D for _ in range(K)]
    for epoch in range(4):
        if epochs:
            objective.begin_epoch(epoch, epochs)
        share = 0.4 * min(1.0, epoch / (epochs / 4)) if epochs else 0.4
        for seed in range(3):
            z, target, weight = batch(10 * epoch + seed)
            rows = zip(z.tolist(), target.tolist(), strict=True)
            losses = [reference.cosine_labels_loss(row, y, means, share, 16.0) for row, y in rows]
            expected = sum(w * loss for w, loss in zip(weight.tolist(), losses, strict=True)) / float(weight.sum())
            close(objective.loss(z, target, weight=weight).detach(), expected)
            given = (z.tolist(), target.tolist(), weight.tolist())
            means = [reference.moved_mean(means[k], *given, k, 0.8) for k in range(K)]
            close(objective.means, means)
            close(objective.label_vectors(), [reference.anchored_label(means, k, share) for k in range(K)])
    assert not objective.means[3].any()


def test_gradients_reach_outputs_and_scale_but_not_labels():
    objective = cosine()
    for seed in range(3):
        objective.loss(*batch(seed)[:2])
    z, target, _ = batch(9)
    objective.eval()  # the same loss, without a step
    check_gradient(lambda z: objective.loss(z, target), z)
    objective.loss(z, target).backward()
    assert objective.log_scale.grad.abs() > 0
    objective.train()
    before = objective.label_vectors().clone()
    at = z.clone().requires_grad_()
    expected = F.cross_entropy(16 * F.normalize(at, dim=-1) @ before.T, target)
    ours, wanted = (torch.autograd.grad(loss, at)[0] for loss in (objective.loss(at, target), expected))
    close(ours, wanted)


def test_with_a_share_of_0_it_is_cross_entropy_of_cosines_with_the_dimensions():
    objective = cosine(share=0.0, scale=5.0, preset="cosine")
    for seed in range(3):
        z, target, _ = batch(seed)
        close(objective.loss(z, target), F.cross_entropy(5 * F.normalize(z, dim=-1)[:, :K], target))


def test_the_length_of_an_output_does_not_matter():
    first, second = cosine(), cosine()
    for seed in range(3):
        z, target, _ = batch(seed)
        length = values(seed + 5, N, 1).exp()
        close(second.loss(length * z, target).detach(), first.loss(z, target).detach())
    close(second.means, first.means)


def test_losses_of_samples():
    objective, other = cosine(reduction="none"), cosine()
    z, target, weight = batch(0)
    losses = objective.loss(z, target, weight=weight)
    close(losses.sum() / weight.sum(), other.loss(z, target, weight=weight))
    with pytest.raises(InputError, match="AdaptiveLabels has no loss for a single sample"):
        cosine(preset="paper", reduction="none")


def test_labels_follow_class_means():
    """Two classes whose outputs agree get labels that agree more than those of the others."""
    objective = cosine(dims=K, share=0.3, momentum=0.0, preset="cosine")
    centers = torch.eye(K, dtype=torch.float64)
    centers[1] = centers[0] + 0.2 * centers[1]
    target = torch.arange(K).repeat_interleave(20)
    objective.loss(centers[target] + 0.05 * values(1, len(target), K), target)
    labels = objective.label_vectors()
    close(labels.norm(dim=-1), torch.ones(K))
    between = labels @ labels.T
    assert between[0, 1] > between.masked_fill(torch.eye(K, dtype=torch.bool), -1)[2:].max() + 0.05


@pytest.mark.parametrize(
    ("options", "preset"),
    [
        ({}, "cosine"),
        ({"dims": 9}, "cosine"),
        ({"share": 0.1}, "cosine"),
        ({"preset": "cosine", "momentum": 0.5, "scale": 2.0}, "cosine"),
        ({"memory": 30.0}, "memory"),
        ({"momentum": 0.5}, "memory"),
        ({"scale": 1.0, "memory": 0.0, "leave_one_out": False}, "memory"),
        ({"detach": False}, "memory"),
        ({"preset": "memory"}, "memory"),
        ({"preset": "paper"}, "paper"),
        ({"preset": "paper", "repel": 10.0}, "paper"),
    ],
)
def test_the_rule_that_options_mean(options: dict[str, object], preset: str):
    """Options that were there before presets mean what they meant, and so give the same results."""
    assert AdaptiveLabels(classes=4, **options).preset == preset
    assert AdaptiveLabels.revision_of(options) == (3 if preset == "cosine" else 2)


def test_presets_are_the_options_that_they_stand_for():
    z, target, weight = batch(3)
    named = [cosine(preset="paper"), cosine(preset="memory")]
    spelled = [
        cosine(memory=0.0, leave_one_out=False, scale=1.0, eval_labels="last"),
        cosine(memory=30.0, leave_one_out=True, scale="learned"),
    ]
    for ours, theirs in zip(named, spelled, strict=True):
        for _ in range(2):
            assert ours.loss(z, target, weight=weight) == theirs.loss(z, target, weight=weight)
        assert ours.eval_labels == theirs.eval_labels


def test_anchored_labels_are_the_loop():
    means = values(40, K, D)
    means[2] = 0
    for share in (0.0, 0.3, 1.0):
        close(anchored_labels(means, share), [reference.anchored_label(means.tolist(), k, share) for k in range(K)])
    close(anchored_labels(torch.zeros(K, D).double(), 0.7), torch.eye(K, D))


def test_running_means_are_the_loop():
    z, target, weight = batch(41)
    unit, means = F.normalize(z, dim=-1), values(42, K, D)
    means[0] = 0
    found = running_means(means, class_sums(unit, target, weight, K), 0.7)
    given = (z.tolist(), target.tolist(), weight.tolist())
    close(found, [reference.moved_mean(means[k].tolist(), *given, k, 0.7) for k in range(K)])
