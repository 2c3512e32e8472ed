"""Half types in, float32 inside: what bf16 and fp16 outputs give, with and without autocast."""

import copy

import pytest
import torch

from labelkin import Objective
from support.cases import CASES, Case, Sample, each
from support.steps import snapshot, step

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def float32(case: Case) -> tuple[Objective, Sample]:
    objective = case.settled(class_weight=True, features=4, dtype=torch.float32)
    return objective, case.sample(objective, dtype=torch.float32)


def dtypes(objective: Objective) -> dict[str, torch.dtype]:
    return {name: value.dtype for name, value in snapshot(objective).items()}


@pytest.mark.long
@every_case
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_half_outputs_are_computed_in_float32(case: Case, half: torch.dtype):
    objective, sample = float32(case)
    other, before = copy.deepcopy(objective), dtypes(objective)
    narrow = Sample(each(sample.outputs, lambda t: t.to(half)), sample.target, sample.index)
    wide = Sample(each(narrow.outputs, lambda t: t.float()), sample.target, sample.index)
    ours, theirs = step(objective, narrow), step(other, wide)
    ours.assert_close(theirs, outputs=False, rtol=0, atol=0)
    torch.testing.assert_close(ours.outputs, each(theirs.outputs, lambda t: t.to(half)), rtol=0, atol=0)
    assert ours.loss.dtype == torch.float32
    assert dtypes(objective) == before
    objective.eval()
    torch.testing.assert_close(objective.scores(narrow.outputs), objective.scores(wide.outputs), rtol=0, atol=0)


@pytest.mark.long
@every_case
def test_autocast_is_close_to_float32(case: Case):
    objective, sample = float32(case)
    other = copy.deepcopy(objective)
    features = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        ours = objective.loss_from_features(features, sample.target, index=sample.index).total
        scores = objective.scores(objective(features))
    theirs = other.loss_from_features(features, sample.target, index=sample.index).total
    assert ours.dtype == scores.dtype == torch.float32
    torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.01)
    ours.backward()
    theirs.backward()
    for (name, mine), reference in zip(objective.named_parameters(), other.parameters(), strict=True):
        scale = reference.grad.abs().max()
        torch.testing.assert_close(mine.grad / scale, reference.grad / scale, rtol=0, atol=0.1, msg=name)
    assert dtypes(objective) == dtypes(other)


@pytest.mark.long
@every_case
def test_the_loss_itself_is_not_cast(case: Case):
    objective, sample = float32(case)
    other = copy.deepcopy(objective)
    with torch.autocast("cpu", torch.bfloat16):
        ours = objective.loss(sample.outputs, sample.target, index=sample.index)
    assert ours == other.loss(sample.outputs, sample.target, index=sample.index)
