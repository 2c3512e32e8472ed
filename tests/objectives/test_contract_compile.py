"""Compiled training: the same losses, gradients and state as plain code, and no graph made twice."""

import copy
import shutil

import pytest
import torch

from labelkin import Objective
from support.cases import CASES, Case, Sample, each
from support.later import Later
from support.requires import skip_unless
from support.steps import snapshot

dynamo = Later("torch._dynamo.utils")
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def train(objective: Objective, samples: list[Sample], loss) -> list[tuple]:
    """Three steps that also move the parameters; after each, the loss, the outputs' gradients and the state."""
    found = []
    for sample in samples:
        outputs = each(sample.outputs, lambda part: part.clone().requires_grad_())
        objective.zero_grad()
        value = loss(outputs, sample.target, index=sample.index)
        value.backward()
        with torch.no_grad():
            for parameter in objective.parameters():
                parameter -= 0.1 * parameter.grad
        found.append((value.detach(), each(outputs, lambda part: part.grad), snapshot(objective)))
    return found


def compiled_equals_plain(case: Case, backend: str) -> None:
    torch._dynamo.reset()
    dynamo.counters.clear()
    plain = case.settled(class_weight=True)
    other = copy.deepcopy(plain)
    samples = [case.sample(plain, seed=seed) for seed in (0, 1, 2)]
    compiled = torch.compile(other.loss, fullgraph=True, backend=backend)
    graphs = []

    def counted(*arguments, **keywords):
        value = compiled(*arguments, **keywords)
        graphs.append(dynamo.counters["stats"]["unique_graphs"])
        return value

    ours, theirs = train(other, samples, counted), train(plain, samples, plain.loss)
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)
    assert graphs[0] >= 1
    assert graphs[2] == graphs[1], "compiled again after the second step"


@pytest.mark.slow
@every_case
def test_compiled_training_equals_plain(case: Case):
    compiled_equals_plain(case, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adaptive-labels-all", "label-embedding-text", "retrospection-plain"])
def test_code_generated_for_the_processor_equals_plain(name: str):
    skip_unless(shutil.which("g++") is not None, "a C++ compiler", "compiler")
    compiled_equals_plain(next(case for case in CASES if str(case) == name), "inductor")
