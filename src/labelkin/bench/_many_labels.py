"""Memory and time of a training step: the compressed label embedding against a linear layer with cross entropy."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import check_count
from labelkin.bench._measure import Machine, Timing, machine, timed
from labelkin.objectives import CompressedLabelEmbedding


class Step(NamedTuple):
    """Time and peak memory of a training step."""

    timing: Timing
    peak_bytes: int | None  # including parameters, gradients and moments; measured on a GPU only


class ManyLabels(NamedTuple):
    """A step with a linear layer and cross entropy, and one with the compressed label embedding.

    Example:
        >>> from labelkin.bench import time_many_labels
        >>> found = time_many_labels(labels=50, features=4, tokens=8, rank=3, repeats=1)
        >>> found.times_time == found.ours.timing.median / found.plain.timing.median
        True
    """

    labels: int
    features: int
    tokens: int
    rank: int
    machine: Machine
    plain: Step
    ours: Step

    @property
    def times_memory(self) -> float | None:
        """Peak memory as a multiple of that of the linear layer; None without a GPU."""
        if self.plain.peak_bytes is None or self.ours.peak_bytes is None:
            return None
        return self.ours.peak_bytes / self.plain.peak_bytes

    @property
    def times_time(self) -> float:
        """Time as a multiple of that of the linear layer."""
        return self.ours.timing.median / self.plain.timing.median


def time_many_labels(
    *,
    labels: int = 50_000,
    features: int = 512,
    tokens: int = 1024,
    rank: int = 100,
    optimizer: bool = False,
    repeats: int = 20,
) -> ManyLabels:
    """Time a training step over many labels, on a GPU if there is one.

    Args:
        labels: Number of labels.
        features: Width of the features.
        tokens: Number of samples in a batch.
        rank: Rank of the compressed label embedding.
        optimizer: Whether to include an update by Adam; otherwise only forward and backward are timed.
        repeats: Number of steps; the median is reported.

    Returns:
        Time and memory of both steps.

    Example:
        >>> from labelkin.bench import time_many_labels
        >>> time_many_labels(labels=50, features=4, tokens=8, rank=3, repeats=1).labels
        50
    """
    for argument, value in (("labels", labels), ("features", features), ("tokens", tokens), ("repeats", repeats)):
        check_count(argument, value, least=2 if argument == "labels" else 1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    hidden = torch.randn(tokens, features, device=device, requires_grad=True)
    target = torch.randint(labels, (tokens,), device=device)

    def plain() -> Step:
        head = nn.Linear(features, labels, device=device)
        return _measured(head, lambda: F.cross_entropy(head(hidden), target), hidden, optimizer, repeats)

    def ours() -> Step:
        objective = CompressedLabelEmbedding(classes=labels, rank=rank, features=features).to(device)
        loss = lambda: objective.loss_from_features(hidden, target).total  # noqa: E731
        return _measured(objective, loss, hidden, optimizer, repeats)

    return ManyLabels(labels, features, tokens, rank, machine(device), plain(), ours())


def _measured(module: nn.Module, loss: Callable[[], Tensor], hidden: Tensor, optimizer: bool, repeats: int) -> Step:
    on_gpu = hidden.is_cuda
    updates = torch.optim.Adam(module.parameters(), fused=on_gpu) if optimizer else None

    def step() -> None:
        module.zero_grad(set_to_none=True)
        hidden.grad = None
        loss().backward()  # type: ignore[no-untyped-call]
        if updates is not None:
            updates.step()

    wait = torch.cuda.synchronize if on_gpu else lambda: None
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    timing = timed(step, repeats, warm_up=3, clock=time.perf_counter, wait=wait)
    return Step(timing, torch.cuda.max_memory_allocated() if on_gpu else None)


def many_labels_as_dict(found: ManyLabels) -> dict[str, Any]:
    """Return the results as plain values for JSON."""
    steps = {
        name: {**step.timing._asdict(), "peak_bytes": step.peak_bytes}
        for name, step in (("plain", found.plain), ("ours", found.ours))
    }
    times = {"times_memory": found.times_memory, "times_time": found.times_time}
    return {"benchmark": "many-labels", **found._asdict(), "machine": found.machine._asdict(), **steps, **times}
