"""An exponential moving average of a model's weights, for evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import get_ema_multi_avg_fn


class WeightAverages:
    """Averages of the parameters of a model, and of the running statistics of its batch normalizations.

    After step t the averages are `d a + (1 - d) w`, with `d = min(decay, (1 + t) / (10 + t))`, so that the first steps are soon
    forgotten. Other buffers, such as the state of an objective, are not averaged.

    Args:
        model: The model whose weights are averaged.
        decay: The decay, between 0 and 1.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> averages = WeightAverages(model, 0.9)
    >>> _ = nn.init.ones_(model.weight)
    >>> averages.update()
    >>> with averages.applied():
    ...     round(float(model.weight.detach()), 4)
    0.8182
    >>> float(model.weight.detach())
    1.0
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
        running = [buffer for norm in norms for buffer in (norm.running_mean, norm.running_var) if buffer is not None]
        self.decay, self.steps = decay, 0
        self._current: list[Tensor] = [*model.parameters(), *running]
        self._averages: list[Tensor] = [tensor.detach().clone() for tensor in self._current]

    @torch.no_grad()
    def update(self) -> None:
        """Update the averages with the current weights; call this after every step."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        average = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        average(self._averages, [tensor.detach() for tensor in self._current], None)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the model the averaged weights for the duration of a `with` block."""
        kept = [tensor.detach().clone() for tensor in self._current]
        self.apply()
        try:
            yield
        finally:
            self._set(kept)

    def apply(self) -> None:
        """Give the model the averaged weights."""
        self._set(self._averages)

    def state(self) -> dict[str, Any]:
        """Return the averages, for a checkpoint."""
        return {"steps": self.steps, "averages": [average.clone() for average in self._averages]}

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state` returned."""
        self.steps = state["steps"]
        for average, kept in zip(self._averages, state["averages"], strict=True):
            average.copy_(kept)

    @torch.no_grad()
    def _set(self, values: list[Tensor]) -> None:
        for tensor, value in zip(self._current, values, strict=True):
            tensor.copy_(value)
