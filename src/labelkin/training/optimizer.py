"""The optimizer and its learning rate, a pure function of the step, so that nothing of it needs saving."""

from math import cos, pi
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from labelkin.training.model import Model
from labelkin.training.settings import Settings


def make_optimizer(model: Model, settings: Settings) -> Optimizer:
    """Weight decay goes to every parameter but those that the objective wants left alone."""
    fused = next(model.parameters()).is_cuda  # one kernel for all parameters
    spared = {f"objective.{name}" for name in model.objective.no_weight_decay()}
    decayed = [p for name, p in model.named_parameters() if name not in spared]
    free = [p for name, p in model.named_parameters() if name in spared]
    groups: list[dict[str, Any]] = [{"params": decayed, "weight_decay": settings.weight_decay}]
    if free:
        groups.append({"params": free, "weight_decay": 0.0})
    if settings.optimizer == "sgd":
        return torch.optim.SGD(
            groups, lr=settings.lr, momentum=settings.momentum, nesterov=settings.nesterov, fused=fused
        )
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=settings.lr, fused=fused)


def learning_rate(settings: Settings, step: int, steps_an_epoch: int) -> float:
    """The rate of a step, counted from 0 over the whole run.

    Warm-up rises linearly to `lr`; what follows is stretched over the rest. "linear" and "step" move between epochs, as
    the papers have them; "cosine" and "exponential" move with every step. "exponential" ends at `lr * gamma`.
    """
    warm = settings.warmup * steps_an_epoch
    if step < warm:
        return settings.lr * (step + 1) / warm
    epoch = step // steps_an_epoch
    done = (step - warm) / (settings.epochs * steps_an_epoch - warm)
    if settings.schedule == "step":
        return settings.lr * float(settings.gamma ** sum(epoch >= m for m in settings.milestones))
    if settings.schedule == "linear":
        return settings.lr * (1 - (epoch - settings.warmup) / (settings.epochs - settings.warmup))
    if settings.schedule == "cosine":
        return settings.lr * 0.5 * (1 + cos(pi * done))
    if settings.schedule == "exponential":
        return settings.lr * float(settings.gamma**done)
    return settings.lr


def lay_out_as_parameters(optimizer: Optimizer) -> None:
    """Give restored moments the memory format of their parameters, as fused steps on a GPU demand; files keep none."""
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.shape == parameter.shape and value.stride() != parameter.stride():
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
