"""Masked classes: a logit of -inf or of the smallest finite number leaves loss and gradients finite off the target."""

import pytest
import torch
import torch.nn.functional as F

from support.cases import CASES, Case, each
from support.worlds import CLASSES, world

NO_CLASS_LOGITS = ("adaptive-labels", "static-labels", "haframe", "bilt", "hier-cos", "unit-sphere")
MASKED = ("c3", "c4", "made", "road")  # a whole subtree, with all that lies below it
CLASS_MASKED = (3, 4)
TARGET = torch.tensor([0, 1, 2, 5, 0, 1])
with_logits = pytest.mark.parametrize("case", [c for c in CASES if c.objective not in NO_CLASS_LOGITS], ids=str)
each_mask = pytest.mark.parametrize("mask", [-torch.inf, "lowest"], ids=str)
each_type = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def masked_outputs(case: Case, objective, mask, dtype, names=MASKED):
    names_of = case.columns(world(), objective)
    columns = [i for i, name in enumerate(names_of) if name in names]
    assert columns
    value = torch.finfo(dtype).min if mask == "lowest" else mask

    def change(part):
        part = part[: len(TARGET)].clone()
        part[:, columns] = value
        return part.requires_grad_()

    return each(case.sample(objective, seed=3, dtype=dtype).outputs, change)


def soft_target(dtype):
    other = torch.tensor([1, 2, 5, 0, 2, 0])
    return (0.7 * F.one_hot(TARGET, CLASSES) + 0.3 * F.one_hot(other, CLASSES)).to(dtype)


@pytest.mark.long
@with_logits
@each_mask
@each_type
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("names", [MASKED, ("c4",), ("c3",)], ids=str)
def test_losses_and_gradients_are_finite(case: Case, mask, dtype, soft, names):
    objective = case.settled(dtype=dtype)
    if soft and not objective.linear_in_target:
        pytest.skip("class probabilities have no meaning here")
    outputs = masked_outputs(case, objective, mask, dtype, names)
    target = soft_target(dtype) if soft else TARGET
    loss = objective.loss(outputs, target, index=torch.arange(len(TARGET)))
    loss.backward()
    assert torch.isfinite(loss)
    assert loss.abs() < 1e6
    for part in outputs if case.pair else [outputs]:
        assert torch.isfinite(part.grad).all()
        assert part.grad.any()
    for name, parameter in objective.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name


@pytest.mark.long
@with_logits
@each_mask
def test_predictions_never_hold_nan_and_never_name_a_masked_class(case: Case, mask):
    objective = case.settled().eval()
    outputs = masked_outputs(case, objective, mask, torch.float64)
    log_probs = objective.log_probs(outputs)
    assert not log_probs.isnan().any()
    assert (log_probs.exp()[:, CLASS_MASKED] == 0).all()
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(len(TARGET), dtype=torch.float64))


@with_logits
def test_a_masked_target_has_an_infinite_loss(case: Case):
    """A mask on the true class is a mistake of the caller, and the loss must show it."""
    objective = case.settled()
    outputs = masked_outputs(case, objective, -torch.inf, torch.float64)
    loss = objective.loss(outputs, torch.full_like(TARGET, 3), index=torch.arange(len(TARGET)))
    assert not torch.isfinite(loss)


@with_logits
def test_a_mask_is_the_limit_of_a_low_logit_where_the_target_has_no_share_in_it(case: Case):
    on = world()
    objective = case.settled()
    if case.objective not in ("one-hot", "conditional-softmax", "hierarchical", "hierarchical-cross-entropy"):
        pytest.skip("the target gives masked classes a share")
    low = masked_outputs(case, objective, -700.0, torch.float64)
    masked = masked_outputs(case, objective, -torch.inf, torch.float64)
    if "made" in case.columns(on, objective):  # below a masked node siblings may stand as they like
        assert torch.isfinite(objective.loss(low, TARGET))
    torch.testing.assert_close(objective.loss(masked, TARGET), objective.loss(low, TARGET))
