"""Training steps, computed one operation at a time. The sum of their losses stays on the device: no step waits for it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from labelkin.functional import sum_over_processes
from labelkin.training._optimizer import learning_rate
from labelkin.training._settings import Settings
from labelkin.training._task import Place, Task


class LossSum:
    """Add up losses on a device without reading them: scalars, or one loss for each member of a fleet.

    The CPU sums in float64. Other devices sum in float32 with Kahan's compensation, since some (MPS) have no float64; the
    result is as good as a float64 sum to about nine digits. The sum is read only by `value`, `mean` and `parts`.

    Args:
        device: The device of the losses.
        exact: Whether to sum in float64; by default only on the CPU.
        members: The number of losses in each call of `add`; None for a scalar. The sums of several members are read
            with `split`.

    >>> total = LossSum(torch.device("cpu"))
    >>> for loss in (0.5, 0.25):
    ...     total.add(torch.tensor(loss))
    >>> total.value()
    0.75
    """

    def __init__(self, device: torch.device, *, exact: bool | None = None, members: int | None = None) -> None:
        exact = device.type == "cpu" if exact is None else exact
        self.dtype = torch.float64 if exact else torch.float32
        self.device = device
        self._sum = torch.zeros(() if members is None else (members,), dtype=self.dtype, device=device)
        self._error = torch.zeros_like(self._sum)

    def split(self) -> "list[LossSum]":
        """Return the sum of each member; they share memory with this one.

        >>> total = LossSum(torch.device("cpu"), members=2)
        >>> total.add(torch.tensor([0.5, 2.0]))
        >>> [one.value() for one in total.split()]
        [0.5, 2.0]
        """
        parts = []
        for own, error in zip(self._sum, self._error, strict=True):
            part = LossSum(self.device, exact=self.dtype == torch.float64)
            part._sum, part._error = own, error
            parts.append(part)
        return parts

    def zeros(self) -> Tensor:
        """Return zeros of the shape of the losses, in float32."""
        return torch.zeros(self._sum.shape, device=self.device)

    def reset(self) -> None:
        """Begin again at 0."""
        self._sum.zero_()
        self._error.zero_()

    @torch.no_grad()
    def add(self, loss: Tensor) -> None:
        """Add a loss in place; nothing is read from the device, so CUDA can capture it."""
        loss = loss.detach().to(self.dtype)
        if self.dtype == torch.float64:
            self._sum.add_(loss)
            return
        corrected = loss - self._error
        after = self._sum + corrected
        self._error.copy_((after - self._sum) - corrected)
        self._sum.copy_(after)

    def value(self) -> float:
        """Return the sum; waits for the device."""
        return float(self._sum) - float(self._error)

    def mean(self, count: int, gather: Callable[[Tensor], Tensor]) -> float:
        """Return the mean over `count` losses on each process; every process must call this.

        Args:
            count: How many losses each process has added.
            gather: Stacks a tensor of every process, as `Place.gather`.
        """
        parts = self.parts(gather)
        return float(sum(total - error for total, error in parts)) / (count * len(parts))

    def parts(self, gather: Callable[[Tensor], Tensor]) -> list[tuple[float, float]]:
        """Return the arguments of `restore` for each process; every process calls this."""
        return [(total, error) for total, error in gather(torch.stack([self._sum, self._error])).tolist()]

    def restore(self, total: float, error: float = 0.0) -> None:
        """Continue from a sum and its error, as `parts` returns them, with the same bits."""
        self._sum.fill_(total)
        self._error.fill_(error)


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
    clip: Callable[[float], Tensor]  # clips the gradients to a norm, and returns the norm before


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
            group["lr"] = rate * group.get("scale", 1.0)


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
