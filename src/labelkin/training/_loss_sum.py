"""The sum of an epoch's losses, kept on the device so that no step waits for it."""

from collections.abc import Callable

import torch
from torch import Tensor


class LossSum:
    """Add up losses on a device without reading them: scalars, or one loss for each member of a fleet.

    The CPU sums in float64. Other devices sum in float32 with Kahan's compensation, since some (MPS) have no float64; the
    result is as good as a float64 sum to about nine digits. The sum is read only by `value`, `mean` and `parts`.

    Args:
        device: The device of the losses.
        exact: Whether to sum in float64; by default only on the CPU.
        members: The number of losses that each call of `add` brings; None for a scalar. The sums of several members are read
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
