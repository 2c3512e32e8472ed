"""The end of an epoch, as an objective expects it from any training loop."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from labelkin._checks import InputError
from labelkin.objectives import Objective


@torch.no_grad()
def end_epoch(model: nn.Module, objective: Objective, outputs: Callable[[], Iterable[tuple[Any, ...]]]) -> None:
    """Refresh the objective's state if it needs that, and exchange it between processes; every process calls this.

    Args:
        model: The network, which is in evaluation mode while the outputs are computed.
        objective: The objective.
        outputs: Returns (outputs, target), or (outputs, target, weight), for each batch of the training set. It is
            called only if the objective needs a pass over the training set.
    """
    if "refresh" in objective.needs:
        with evaluation_mode(model):
            objective.refresh(outputs())
    objective.synchronize()


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode for the duration of a `with` block; each module returns to its own mode.

    >>> net = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
    >>> with evaluation_mode(net):
    ...     net[0].training
    False
    >>> net[0].training, net[1].training
    (True, False)
    """
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def check_trainable(objective: Objective, batches: int) -> None:
    """Refuse an objective that does not average its losses, or does not average over all batches of a step."""
    if batches > 1 and not objective.accumulates:
        raise InputError(
            f"gradient accumulation: expected 1 batch per step for {type(objective).__name__}, whose loss is computed over "
            f"the whole batch, got {batches}."
        )
    if objective.reduction != "mean":
        raise InputError(f"reduction: training expects 'mean', got {objective.reduction!r}.")
