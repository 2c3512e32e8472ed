"""Training steps, computed one operation at a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from labelkin.functional import sum_over_processes
from labelkin.training._loss_sum import LossSum
from labelkin.training._optimizer import learning_rate
from labelkin.training._settings import Settings
from labelkin.training._task import Place, Task


class Workbench(NamedTuple):
    """Everything that a training step works with."""

    fabric: Any
    forward: Any  # the model as Fabric wraps it
    optimizer: Any
    task: Task
    batches: Any
    settings: Settings
    place: Place
    loss_sum: LossSum
    clip: Callable[[float], Tensor]  # clips the gradients to a norm, and returns what it was


class Steps:
    """Update the weights once per batch.

    Args:
        bench: The model, the optimizer and the data.
        not_captured: Why the steps are not captured as CUDA graphs, for a note to the user.
    """

    def __init__(self, bench: Workbench, *, not_captured: str | None = None) -> None:
        self.bench, self.not_captured = bench, not_captured

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Tensor]:
        """Take the steps of an epoch and yield the loss of each, which stays on the device.

        Args:
            epoch: The epoch, counted from 0.
            start: The number of steps to skip.
        """
        for step, batch in enumerate(self.bench.batches.epoch(epoch, start=start), start):
            self._set_rate(self.rate(epoch, step))
            loss = self.update(batch)
            self.bench.loss_sum.add(loss)
            yield loss

    def rate(self, epoch: int, step: int) -> float:
        """Return the learning rate of a step of an epoch."""
        steps = len(self.bench.batches)
        return learning_rate(self.bench.settings, epoch * steps + step, steps)

    def update(self, batch: Any) -> Tensor:
        """Update the weights and return the batch's loss, or the losses of a fleet's members, which stay on the device.

        With gradient accumulation the batch is computed in parts, and each part's loss is scaled by its share of the
        batch's weight.
        """
        fabric, forward, optimizer, task, _, settings, _, loss_sum, clip = self.bench
        optimizer.zero_grad(set_to_none=True)
        parts = task.parts(batch, settings.accumulate)
        total = loss_sum.zeros()
        for number, (part, share) in enumerate(zip(parts, _shares(parts), strict=True)):
            with fabric.no_backward_sync(forward, enabled=number < len(parts) - 1):
                loss = task.loss(forward, part) * share
                fabric.backward(loss.sum() if loss.dim() else loss)  # a fleet has one loss for each member
            total += loss.detach()
        if settings.clip is not None:
            norm = clip(settings.clip)
            total = torch.where(norm.isfinite(), total, norm.to(total.dtype))  # reported at the end of the epoch
        optimizer.step()
        return total

    def optimizer_state(self) -> dict[str, Any]:
        """Return the optimizer's state; it is the same whether steps are captured or not."""
        state: dict[str, Any] = self.bench.optimizer.state_dict()
        return state

    def _set_rate(self, rate: float) -> None:
        for group in self.bench.optimizer.param_groups:
            group["lr"] = rate


def plain_attributes(module: nn.Module) -> list[tuple[str, Any]]:
    """Return the numbers, texts and Nones among the attributes of a module and its parts, which decide what it computes."""
    kinds = (bool, int, float, str, type(None))
    return [(name, v) for part in module.modules() for name, v in vars(part).items() if isinstance(v, kinds)]


def _shares(parts: Sequence[Any]) -> Sequence[Tensor | float]:
    """Return each part's share of the batch's sample weight, over all processes."""
    if len(parts) == 1:
        return [1.0]
    weights = sum_over_processes(torch.stack([part.weight.sum() for part in parts]))
    return (weights / weights.sum()).unbind()
