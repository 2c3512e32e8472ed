"""One training step taken and everything that it made, so that two ways to the same step can be compared."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelkin import Objective, OneHot
from support.cases import Sample, each

TIGHT = {"rtol": 1e-9, "atol": 1e-11}


@dataclass(frozen=True)
class Step:
    loss: Tensor
    terms: dict[str, Tensor]
    outputs: Any  # the gradient of the outputs
    parameters: dict[str, Tensor | None]  # the gradients of the parameters
    state: dict[str, Tensor]  # the state after the step

    def assert_close(self, other: "Step", *, outputs: bool = True, **tolerance: float) -> None:
        tolerance = tolerance or TIGHT
        pairs = {"loss": (self.loss, other.loss), "gradients": (self.parameters, other.parameters)}
        pairs |= {"state": (self.state, other.state), "terms": (self.terms, other.terms)}
        if outputs:
            pairs["outputs"] = (self.outputs, other.outputs)
        for name, (ours, theirs) in pairs.items():
            torch.testing.assert_close(ours, theirs, **tolerance, msg=lambda text, name=name: f"{name}: {text}")


def step(objective: Objective, sample: Sample, **batch: Any) -> Step:
    """The loss, its gradients, and the state it leaves."""
    outputs = each(sample.outputs, lambda part: part.detach().clone().requires_grad_())
    objective.zero_grad(set_to_none=True)
    result = objective.loss_terms(outputs, sample.target, **{"index": sample.index, **batch})
    result.total.backward()
    return Step(
        loss=result.total.detach(),
        terms={name: term.detach() for name, term in result.terms.items()},
        outputs=each(outputs, lambda part: part.grad),
        parameters={name: parameter.grad for name, parameter in objective.named_parameters()},
        state=snapshot(objective),
    )


def steps(objective: Objective, samples: Iterable[Sample], **batch: Any) -> list[Step]:
    return [step(objective, sample, **batch) for sample in samples]


def snapshot(objective: torch.nn.Module) -> dict[str, Any]:
    """A copy of the state_dict, with Retrospection's table laid flat and without its last row, which is nobody's."""
    found: dict[str, Any] = {}
    for name, value in objective.state_dict().items():
        if not isinstance(value, dict):
            found[name] = value.clone()
            continue
        for key, part in value.items():
            found[f"{name}.{key}"] = part[:-1].clone() if isinstance(part, Tensor) else torch.tensor(part)
    return found


class CountedSteps(OneHot):
    """An objective that counts steps in Python, which neither a CUDA graph nor a batched fleet can see."""

    steps = 0

    def compute(self, outputs: Any, batch: Any) -> Any:
        self.steps = self.steps + 1
        return super().compute(outputs, batch)
