"""Differentiable sums over all processes.

A plain `dist.all_reduce` gives the right loss but wrong gradients: the gradients that other processes have with respect
to a sum must return to the process that contributed to it. Here the backward pass is itself a sum over processes, in
eager and compiled code.

Data-parallel training averages gradients over processes. To make this average the gradient of the joined batch, a sum over
local samples is divided by the weight of *all* samples and multiplied by the number of processes.
"""

from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import Tensor


def world_size() -> int:
    """Return the number of processes, 1 without distributed training.

    Returns:
        The size of the default process group.

    Example:
        >>> from labelkin.functional import world_size
        >>> world_size()
        1
    """
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
    """Sum a tensor over all processes, differentiably.

    Args:
        values: a tensor of the same shape in every process.

    Returns:
        The sum; `values` itself if there is only one process.

    Example:
        >>> import torch
        >>> from labelkin.functional import sum_over_processes
        >>> sum_over_processes(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    if world_size() == 1:
        return values
    return _SumOverProcesses.apply(values)  # type: ignore[no-any-return,no-untyped-call]


def global_sum(values: Tensor, weight: Tensor) -> Tensor:
    """Compute `sum(weight * values)`, scaled so that the average over processes is the sum over all samples.

    Args:
        values: (n,) values of this process's samples.
        weight: (n,) their weights.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> from labelkin.functional import global_sum
        >>> global_sum(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.5]))
        tensor(2.)
    """
    return (weight * values).sum() * world_size()


def global_mean(values: Tensor, weight: Tensor) -> Tensor:
    """Compute this process's part of the weighted mean over the samples of all processes.

    Args:
        values: (n,) values of this process's samples.
        weight: (n,) their weights.

    Returns:
        A scalar whose average over processes is the mean; 0 if all weights are 0.

    Example:
        >>> import torch
        >>> from labelkin.functional import global_mean
        >>> global_mean(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0]))
        tensor(2.)
    """
    total = sum_over_processes(weight.sum().detach())
    return global_sum(values, weight) / torch.where(total > 0, total, torch.ones_like(total))
