"""Training steps as CUDA graphs: a step is captured once and replayed, so that the GPU never waits for Python.

A graph repeats the same kernels on the same memory. Everything that changes from step to step is therefore read from tensors
with fixed addresses: the order of the samples, the random numbers of augmentations, the learning rates of an epoch, and the
position in them, which the graph itself advances. What Python decides, such as a term that begins at some epoch, is fixed at
capture; if it changes between epochs, the step is captured again.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin.data import Batches
from labelkin.training._capture import capturing
from labelkin.training._fleet_batches import FleetBatches
from labelkin.training._settings import Settings
from labelkin.training._steps import Steps, Workbench, plain_attributes

# Steps of each batch size that run before it is captured, so that libraries allocate and choose their kernels.
WARM_UP = 3
FEWEST_STEPS = 20  # in a run; with fewer, capturing takes longer than it saves


class CapturedSteps(Steps):
    """Update the weights by replaying CUDA graphs, one for each batch size.

    Args:
        bench: The model, the optimizer and the data.
        objective: The module whose Python state decides what a step computes.
        required: Whether to raise `InputError` if a step cannot be captured, instead of continuing without graphs.
        warm_up: The number of steps to run before one is captured.
    """

    def __init__(self, bench: Workbench, objective: nn.Module, *, required: bool, warm_up: int = WARM_UP) -> None:
        super().__init__(bench)
        self.objective, self.required, self.warm_up = objective, required, warm_up
        device = bench.place.device
        order, draws = bench.batches.visits(0)
        self._order, self._draws = torch.empty_like(order), torch.empty_like(draws)
        self._rates = torch.zeros(len(bench.batches), device=device)
        self._position = torch.zeros((), dtype=torch.int64, device=device)  # of the next sample in the epoch's order
        self._graphs: dict[int, tuple[Any, Tensor]] = {}  # by batch size: the graph and the loss it writes
        self._warmed: Counter[int] = Counter()
        self._fixed: list[Any] = []  # what the graphs rely on
        self._begun = False  # whether a step was taken; the objective may build what it needs in the first one
        self._stream: Any = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._group_rates: list[tuple[Tensor, float]] = []  # the rate of each group and its factor
        for group in bench.optimizer.param_groups:
            group["lr"] = torch.zeros((), device=device)
            self._group_rates.append((group["lr"], group.get("scale", 1.0)))
            if "capturable" in group and self._stream is not None:
                group["capturable"] = True

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Tensor]:
        steps, size = len(self.bench.batches), self.bench.batches.batch_size
        order, draws = self.bench.batches.visits(epoch)
        self._order.copy_(order)
        self._draws.copy_(draws)
        self._rates.copy_(torch.tensor([self.rate(epoch, step) for step in range(steps)]))
        self._position.fill_(start * size)
        if (fixed := self._dependencies()) != self._fixed:
            self._fixed = fixed
            self._graphs.clear()
            self._warmed = Counter({known: min(count, self.warm_up - 1) for known, count in self._warmed.items()})
        for step in range(start, steps):
            yield self._step(min(size, len(order) - step * size))

    def _step(self, size: int) -> Tensor:
        """Take a step by replaying its graph, which is captured first once the warm-up steps of its batch size are done."""
        if size not in self._graphs and self._warmed[size] >= self.warm_up and self.not_captured is None:
            self._capture(size)
        if size in self._graphs:
            graph, loss = self._graphs[size]
            graph.replay()
            return loss
        self._warmed[size] += 1
        loss = self._plain_step(size)
        if (found := self._dependencies()) != self._fixed and self.not_captured is None:
            if self._begun:
                self._refuse("the objective stores part of its state outside of tensors")
            self._fixed = found
        self._begun = True
        return loss

    def _plain_step(self, size: int) -> Tensor:
        """Take a step without a graph, on the stream that graphs are captured on."""
        if self._stream is None:
            return self._update_at_position(size)
        current = torch.cuda.current_stream(self.bench.place.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):  # the default stream cannot be captured, and autograd remembers streams
            loss = self._update_at_position(size)
        current.wait_stream(self._stream)
        return loss

    def _update_at_position(self, size: int) -> Tensor:
        """Take one step with the samples at the current position, and advance it; reads nothing from the device."""
        rows = self._position + torch.arange(size, device=self._position.device)
        batch = self.bench.batches.take(self._order[rows], self._draws[rows])
        step = (self._position // self.bench.batches.batch_size).view(1)
        rate = self._rates.index_select(0, step)[0]
        for own, scale in self._group_rates:
            own.copy_(rate * scale)
        loss = self.update(batch)
        self.bench.loss_sum.add(loss)
        self._position.add_(size)
        return loss

    def _capture(self, size: int) -> None:
        """Capture the step of a batch size; if CUDA cannot, continue without graphs."""
        self.bench.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        try:
            with capturing(graph, self.bench.place.device, self._stream):
                loss = self._update_at_position(size)
        except RuntimeError as error:  # the objective or the backbone waits for the device, or copies from the host
            self._refuse(str(error).strip().partition("\n")[0])
            return
        self._graphs[size] = (graph, loss)

    def _refuse(self, reason: str) -> None:
        if self.required:
            raise InputError(
                f"graph: the training step cannot be captured as a CUDA graph ({reason}); use graph 'auto'."
            )
        self.not_captured = reason
        self._graphs.clear()

    def _dependencies(self) -> list[Any]:
        """Return what a captured graph fixes: addresses of the model's tensors and plain attributes of the objective."""
        model = self.bench.forward
        found: list[Any] = [tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())]
        found += plain_attributes(self.objective)
        for module in self.objective.modules():
            found += [(name, value.data_ptr()) for name, value in vars(module).items() if isinstance(value, Tensor)]
        return found

    def optimizer_state(self) -> dict[str, Any]:
        state = super().optimizer_state()
        groups = [{**group, "lr": self.bench.settings.lr} for group in state["param_groups"]]
        return {**state, "param_groups": [_eager(group) for group in groups]}


def _eager(group: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter group in the form of an optimizer that is not captured."""
    return {**group, "capturable": False} if "capturable" in group else group


def make_steps(bench: Workbench, objective: nn.Module) -> Steps:
    """Return the steps of a run, captured as the settings request it.

    Args:
        bench: The model, the optimizer and the data.
        objective: The objective.
    """
    if bench.settings.graph == "off":
        return Steps(bench)
    reason = _reason_against(bench.settings, bench)
    if reason is None:
        return CapturedSteps(bench, objective, required=bench.settings.graph == "on")
    if bench.settings.graph == "on":
        raise InputError(f"graph: expected 'auto' or 'off', because {reason}; got 'on'.")
    return Steps(bench, not_captured=reason if bench.place.device.type == "cuda" else None)


def _reason_against(settings: Settings, bench: Workbench) -> str | None:
    """Return why the steps of a run cannot be captured, or None."""
    if bench.place.device.type != "cuda":
        return "CUDA graphs need an NVIDIA GPU"
    if bench.place.world > 1:
        return "several processes exchange gradients"
    if settings.accumulate > 1:
        return "gradients are accumulated"
    if settings.unfreeze_after:
        return "the backbone is trained only later (unfreeze_after)"
    if settings.ema:
        return "weights are averaged after each step (ema)"
    if not isinstance(bench.batches, (Batches, FleetBatches)):
        return "batches differ in length"
    if not bench.batches.in_memory:
        return "images are read from files"
    if getattr(bench.batches, "on_host", False):
        return "an augmentation draws its random numbers on the CPU"
    if settings.epochs * len(bench.batches) < FEWEST_STEPS:
        return f"the run has fewer than {FEWEST_STEPS} steps"
    return None
