"""The optimizer and the learning rate, which is a pure function of the step and so needs no saved state."""

from math import cos, pi
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from labelkin.training._model import Model
from labelkin.training._settings import Settings


def make_optimizer(model: Model, settings: Settings) -> Optimizer:
    """Return the settings' optimizer.

    Weight decay applies to all parameters but those that the objective excludes (`Objective.no_weight_decay`). If the backbone
    has a separate learning rate, its parameters are in groups with a `scale`, by which their rate is multiplied.
    """
    groups = parameter_groups(model, weight_decay=settings.weight_decay)
    if settings.backbone_lr != 1:
        groups = _by_scale(groups, {id(p) for p in model.backbone.parameters()}, settings.backbone_lr)
    return optimizer_of(groups, settings)


def optimizer_of(groups: list[dict[str, Any]], settings: Settings) -> Optimizer:
    """Return the settings' optimizer for groups of parameters."""
    fused = groups[0]["params"][0].is_cuda  # one kernel updates all parameters
    if settings.optimizer == "sgd":
        return torch.optim.SGD(
            groups, lr=settings.lr, momentum=settings.momentum, nesterov=settings.nesterov, fused=fused
        )
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=settings.lr, fused=fused)


def parameter_groups(model: Model, **options: Any) -> list[dict[str, Any]]:
    """Return the parameters for an optimizer, with those that the objective excludes from weight decay in a separate group.

    Args:
        model: The model.
        **options: Options of the first group, such as `weight_decay`.

    >>> from labelkin import LabelEmbedding
    >>> model = Model(torch.nn.Linear(2, 4), LabelEmbedding(3, features=4))
    >>> [len(group["params"]) for group in parameter_groups(model, weight_decay=0.1)]
    [6, 1]
    """
    spared = {f"objective.{name}" for name in model.objective.no_weight_decay()}
    decayed = [p for name, p in model.named_parameters() if name not in spared]
    free = [p for name, p in model.named_parameters() if name in spared]
    groups: list[dict[str, Any]] = [{"params": decayed, **options}]
    return [*groups, {"params": free, "weight_decay": 0.0}] if free else groups


def _by_scale(groups: list[dict[str, Any]], scaled: set[int], scale: float) -> list[dict[str, Any]]:
    """Split the groups: parameters whose id is in `scaled` get groups with a `scale`."""
    split = []
    for group in groups:
        for inside, extra in ((True, {"scale": scale}), (False, {})):
            params = [p for p in group["params"] if (id(p) in scaled) == inside]
            split += [{**group, "params": params, **extra}] if params else []
    return split


def learning_rate(settings: Settings, step: int, steps_an_epoch: int) -> float:
    """Return the learning rate of a step.

    Warm-up rises linearly to `lr`, and the schedule covers the rest of the run. "linear" and "step" change the rate between
    epochs, as in the papers; "cosine" and "exponential" change it with every step. "exponential" ends at `lr * gamma`.

    Args:
        settings: The training settings.
        step: The step, counted from 0 over the whole run.
        steps_an_epoch: The number of steps in an epoch.

    >>> [learning_rate(Settings(lr=1.0, epochs=4, schedule="linear"), step, 1) for step in range(4)]
    [1.0, 0.75, 0.5, 0.25]
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


def match_memory_format(optimizer: Optimizer) -> None:
    """Give an optimizer's restored state the memory format of its parameters.

    Files do not store memory formats, and fused optimizers on a GPU need that of the parameters.
    """
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.shape == parameter.shape and value.stride() != parameter.stride():
                state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
