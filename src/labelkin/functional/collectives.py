"""Sums over every process, with the right gradients.

A plain `dist.all_reduce` gives the right loss and the wrong gradients: what other processes do with a sum must flow back
to the one that contributed to it. Here the backward pass is itself a sum over processes, in eager and compiled code.

Data-parallel training averages gradients over processes. So that this average is the gradient of the joined batch, a sum
over local samples is divided by the weight of *all* samples and scaled by the number of processes.
"""

from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import Tensor


def world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class _SumOverProcesses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return _reduce(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _reduce(gradient)


def _reduce(values: Tensor) -> Tensor:
    group = dist.group.WORLD
    assert group is not None
    reduced: Tensor = funcol.wait_tensor(funcol.all_reduce(values.contiguous(), "sum", group))  # type: ignore[no-untyped-call]
    return reduced


def sum_over_processes(values: Tensor) -> Tensor:
    """The sum of `values` over all processes, differentiable; `values` itself where there is one process."""
    if world_size() == 1:
        return values
    return _SumOverProcesses.apply(values)  # type: ignore[no-any-return,no-untyped-call]


def global_sum(values: Tensor, weight: Tensor) -> Tensor:
    """`sum(weight * values)` of this process, scaled so that the average over processes is the sum over all samples."""
    return (weight * values).sum() * world_size()


def global_mean(values: Tensor, weight: Tensor) -> Tensor:
    """The weighted mean over the samples of all processes, as this process's share of it; 0 where all weights are 0."""
    total = sum_over_processes(weight.sum().detach())
    return global_sum(values, weight) / torch.where(total > 0, total, torch.ones_like(total))
