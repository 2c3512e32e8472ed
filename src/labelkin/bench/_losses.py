"""Time of the fused losses compared with `F.cross_entropy`: forward and backward, checked in the timed run."""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import LIBRARY_ERRORS, InputError, check_choice, check_count
from labelkin.bench import _loss_cases as loss_cases
from labelkin.bench._loss_cases import Case, relative_error
from labelkin.bench._measure import Machine, machine

AT_LEAST_BYTES = 200 * 2**20  # total size of the rotating inputs, several times the L2 cache
CHECKED_ROWS = 128
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}


class Measured(NamedTuple):
    call: float  # median seconds of a step, launches included
    replay: float | None  # median seconds of a step inside a CUDA graph
    peak_bytes: int | None


class Result(NamedTuple):
    case: str
    batch: int
    dtype: str
    ours: Measured
    flat: Measured
    loss_error: float
    grad_error: float

    @property
    def ratio(self) -> float:
        return self.ours.call / self.flat.call

    @property
    def replay_ratio(self) -> float | None:
        return None if self.ours.replay is None or not self.flat.replay else self.ours.replay / self.flat.replay


def measure(
    loss: Callable[[Tensor, Tensor], Tensor],
    inputs: Sequence[tuple[Tensor, Tensor]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Measured:
    """Time forward and backward passes over rotating inputs; `clock` is used on the CPU."""

    def step(number: int) -> Tensor:
        logits, target = inputs[number % len(inputs)]
        return torch.autograd.grad(loss(logits, target).mean(), logits)[0]

    for number in range(3):
        step(number)
    if not inputs[0][0].is_cuda:
        taken = []
        for number in range(repeats):
            begun = clock()
            step(number)
            taken.append(clock() - begun)
        return Measured(statistics.median(taken), None, None)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step(0)
    peak = torch.cuda.max_memory_allocated() - before
    return Measured(_events(step, repeats), _replayed(step, len(inputs), repeats), peak)


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _events(step: Callable[[int], object], repeats: int) -> float:
    marks = [_event() for _ in range(repeats + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for number in range(repeats):
        step(number)
        marks[number + 1].record()
    torch.cuda.synchronize()
    taken: list[float] = [a.elapsed_time(b) for a, b in pairwise(marks)]
    return statistics.median(taken) / 1e3


def _replayed(step: Callable[[int], object], steps: int, repeats: int) -> float:
    """Return the time of a step in a CUDA graph that contains one step per input."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(0)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(steps):
            step(number)
    graph.replay()
    return _events(lambda _: graph.replay(), max(5, repeats // steps)) / steps


def check(case: Case, logits: Tensor, target: Tensor) -> tuple[float, float]:
    """Return the relative errors of loss and gradient against float64; the memory of the outputs is filled with NaN first."""
    poison = [torch.full_like(logits, float("nan")) for _ in range(2)]
    poison += [torch.full((len(target), width), float("nan"), device=logits.device) for width in (1, 2, 8, 16, 32)]
    del poison  # the allocator reuses this memory for the outputs
    weight = torch.linspace(0.5, 1.5, len(target), device=logits.device)
    losses = case.ours(logits, target)
    (grad,) = torch.autograd.grad((losses.float() * weight).sum(), logits)
    if not (torch.isfinite(losses).all() and torch.isfinite(grad).all()):
        raise ArithmeticError("the kernel returned NaN or infinity")
    rows = torch.randperm(len(target), device=logits.device)[:CHECKED_ROWS]
    exact = logits.detach()[rows].double().requires_grad_()
    expected = case.reference(exact, target[rows])
    (expected_grad,) = torch.autograd.grad((expected * weight[rows].double()).sum(), exact)
    return relative_error(losses[rows], expected), relative_error(grad[rows], expected_grad)


def run(
    case: Case, *, device: str, dtype: torch.dtype, repeats: int, flat: dict[Any, Measured], clock: Callable[[], float]
) -> Result:
    inputs = _inputs(case.batch, case.width, case.labels, case.seed, device, dtype)
    loss_error, grad_error = check(case, *inputs[0])
    if not max(loss_error, grad_error) < TOLERANCE[dtype]:
        raise ArithmeticError(f"relative error of the loss {loss_error:.1e}, of the gradient {grad_error:.1e}")
    ours = measure(case.ours, inputs, repeats, clock)
    key = (case.batch, case.classes, dtype)
    if key not in flat:
        leaves = _inputs(case.batch, case.classes, torch.arange(case.classes), case.seed, device, dtype)
        flat[key] = measure(partial(F.cross_entropy, reduction="none"), leaves, repeats, clock)
    return Result(case.name, case.batch, str(dtype)[6:], ours, flat[key], loss_error, grad_error)


def _inputs(
    batch: int, width: int, labels: Tensor, seed: int, device: str, dtype: torch.dtype
) -> list[tuple[Tensor, Tensor]]:
    size = batch * width * dtype.itemsize
    count = 2 if device == "cpu" else max(2, min(64, -(-AT_LEAST_BYTES // size)))
    draw = torch.Generator(device).manual_seed(seed)
    made = []
    for _ in range(count):
        logits = torch.randn(batch, width, generator=draw, device=device, dtype=dtype).mul_(2).requires_grad_()
        place = torch.randint(len(labels), (batch,), generator=draw, device=device)
        made.append((logits, labels.to(device)[place]))
    return made


class LossTimes(NamedTuple):
    """The results of all cases, and the error messages of failed cases by name."""

    machine: Machine
    results: list[Result]
    failures: dict[str, str]


def time_losses(
    *,
    device: str | None = None,
    dtype: str = "float32",
    trees: Path | None = None,
    only: str = "",
    small: bool = False,
    repeats: int = 50,
    cpu_time: bool = False,
) -> LossTimes:
    """Time the fused losses against flat cross entropy over the same classes; a failed case does not stop the others.

    Args:
        device: "cpu" or "cuda". Default: CUDA if there is a GPU.
        dtype: "float32" or "bfloat16".
        trees: a folder with imagenet.csv and inat21.csv. Without it, trees of that size are generated.
        only: run the cases whose names contain this text.
        small: use small sizes, for a quick check.
        repeats: number of steps; the median is reported.
        cpu_time: measure processor time on the CPU, for a machine that other processes use too.

    Returns:
        The machine, a result for each case, and the failures.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_choice("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device: 'cuda' needs a GPU that torch can use, but there is none; use 'cpu'.")
    check_choice("dtype", dtype, ("float32", "bfloat16"))
    check_count("repeats", repeats)
    clock = time.process_time if cpu_time else time.perf_counter
    results: list[Result] = []
    failures: dict[str, str] = {}
    flat: dict[Any, Measured] = {}
    for name, batch, make in loss_cases.cases(device, trees, small=small):
        if only not in name:
            continue
        try:
            results.append(
                run(make(batch), device=device, dtype=getattr(torch, dtype), repeats=repeats, flat=flat, clock=clock)
            )
        except LIBRARY_ERRORS as error:  # the other cases continue
            failures[f"{name}, batch {batch}"] = f"{type(error).__name__}: {error}"
        if device == "cuda":
            torch.cuda.empty_cache()
    return LossTimes(machine(device), results, failures)


def loss_times_as_dict(found: LossTimes) -> dict[str, object]:
    """Return the results as plain values for JSON."""
    rows = [
        {
            **row._asdict(),
            "ours": row.ours._asdict(),
            "flat": row.flat._asdict(),
            "ratio": row.ratio,
            "replay_ratio": row.replay_ratio,
        }
        for row in found.results
    ]
    return {"benchmark": "losses", "machine": found.machine._asdict(), "rows": rows, "failures": found.failures}
