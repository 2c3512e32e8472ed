"""Time and memory of the cross entropy of a linear layer: in chunks, against whole logits and against Liger-Kernel."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count
from labelkin.bench import _loss_cases as loss_cases
from labelkin.bench import _references as references
from labelkin.bench._growth import Compared, Comparison, Growth, Measure, measured
from labelkin.bench._loss_cases import relative_error
from labelkin.bench._measure import machine
from labelkin.functional import ClassTargets, linear_cross_entropy

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # of features, weights and targets
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
KINDS = ("hard", *loss_cases.KINDS)
LARGEST_DENSE = 20_000  # classes of a dense matrix
CHECKED_ROWS = 16
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
LIGER = "liger_kernel.ops.fused_linear_cross_entropy"


def time_linear(
    *,
    device: str | None = None,
    rows: int = 0,
    features: int = 0,
    classes: int = 0,
    dtype: str = "",
    kinds: Sequence[str] | None = None,
    repeats: int = 10,
) -> Comparison:
    """Time `linear_cross_entropy` against a linear layer with cross entropy: forward and backward, hard targets for the peers.

    Losses and gradients of some rows are compared with float64 in the same run.

    Args:
        device: "cpu" or "cuda". Default: CUDA if there is a GPU.
        rows: number of samples. Default: 8,192, or 512 on the CPU.
        features: width of the features. Default: 2,048, or 256 on the CPU.
        classes: number of classes. Default: 131,072, or 8,192 on the CPU.
        dtype: "float32" or "bfloat16". Default: bfloat16, or float32 on the CPU.
        kinds: the targets: "hard", or kinds of class matrices; None for all. Matrices with K x K entries are left out above
            20,000 classes.
        repeats: number of steps; the median is reported.

    Returns:
        A row for each kind, growth over rows and classes for hard targets, and peers that are not installed.

    Example:
        >>> from labelkin.bench import time_linear
        >>> found = time_linear(device="cpu", rows=16, features=4, classes=12, kinds=["hard"], repeats=1)
        >>> [row.case for row in found.rows]
        ['hard, float32']
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_choice("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device: 'cuda' needs a GPU that torch can use, but there is none; use 'cpu'.")
    on_gpu = device == "cuda"
    sizes = {
        "rows": rows or (8192 if on_gpu else 512),
        "features": features or (2048 if on_gpu else 256),
        "classes": classes or (131_072 if on_gpu else 8192),
    }
    for name, size in sizes.items():
        check_count(name, size, least=4)
    check_count("repeats", repeats)
    dtype = dtype or ("bfloat16" if on_gpu else "float32")
    check_choice("dtype", dtype, tuple(DTYPES))
    kinds = KINDS if kinds is None else kinds
    for kind in kinds:
        check_choice("kind", kind, KINDS)
    run = partial(_measured, device=device, dtype=DTYPES[dtype], repeats=repeats)
    notes = [] if find_spec("liger_kernel") is not None else ["liger-kernel is not installed"]
    peers = {name: run(loss, sizes) for name, loss in _peers(on_gpu).items()}
    found = []
    for kind in kinds:
        if kind in ("dense", "scaled") and sizes["classes"] > LARGEST_DENSE:
            notes.append(f"{kind}: a matrix of {sizes['classes']:,} x {sizes['classes']:,} is left out")
            continue
        targets = None if kind == "hard" else loss_cases.class_targets(kind, sizes["classes"], device)
        error = _check(targets, sizes, device, DTYPES[dtype])
        found.append(Compared(f"{kind}, {dtype}", sizes, run(_ours(targets), sizes), peers, error))
    growth = [_growth(over, sizes, run) for over in ("rows", "classes")]
    return Comparison("linear", machine(device), found, growth, notes)


def _ours(targets: ClassTargets | None) -> Loss:
    return lambda x, weight, y: linear_cross_entropy(x, weight, y, targets=targets)


def _peers(on_gpu: bool) -> dict[str, Loss]:
    found: dict[str, Loss] = {"torch": lambda x, weight, y: F.cross_entropy(F.linear(x, weight), y)}
    if on_gpu and find_spec("liger_kernel") is not None:  # its kernels need a GPU
        liger = import_module(LIGER).LigerFusedLinearCrossEntropyFunction

        def fused(x: Tensor, weight: Tensor, y: Tensor) -> Tensor:
            result = liger.apply(x, weight, y)
            loss: Tensor = result[0] if isinstance(result, tuple) else result
            return loss

        found["liger-kernel"] = fused
    return found


def _inputs(sizes: dict[str, int], device: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator(device).manual_seed(0)
    rows, features, classes = sizes["rows"], sizes["features"], sizes["classes"]
    x = torch.randn(rows, features, generator=draw, device=device, dtype=dtype).requires_grad_()
    weight = torch.randn(classes, features, generator=draw, device=device, dtype=dtype).mul_(features**-0.5)
    return x, weight.requires_grad_(), torch.randint(classes, (rows,), generator=draw, device=device)


def _measured(loss: Loss, sizes: dict[str, int], *, device: str, dtype: torch.dtype, repeats: int) -> Measure:
    x, weight, y = _inputs(sizes, device, dtype)
    return measured(lambda: torch.autograd.grad(loss(x, weight, y), (x, weight)), repeats, cuda=device == "cuda")


def _growth(over: str, sizes: dict[str, int], run: Callable[[Loss, dict[str, int]], Measure]) -> Growth:
    steps = [sizes[over] // 4, sizes[over] // 2, sizes[over]]
    seconds = [run(_ours(None), {**sizes, over: size}).timing.median for size in steps]
    return Growth("hard targets", over, steps, seconds)


def _check(targets: ClassTargets | None, sizes: dict[str, int], device: str, dtype: torch.dtype) -> float:
    """Return the larger relative error of loss and gradient of the features, for rows spread over all chunks."""
    x, weight, y = _inputs(sizes, device, dtype)
    losses = linear_cross_entropy(x, weight, y, targets=targets, reduction="none")
    (grad,) = torch.autograd.grad(linear_cross_entropy(x, weight, y, targets=targets, reduction="sum"), x)
    rows = torch.linspace(0, len(x) - 1, CHECKED_ROWS, device=device).long()
    exact = x.detach()[rows].double().requires_grad_()
    logits = exact @ weight.detach().double().T
    if targets is None:
        expected = F.cross_entropy(logits, y[rows], reduction="none")
    else:
        expected = references.class_target_cross_entropy(logits, y[rows], targets)
    (expected_grad,) = torch.autograd.grad(expected.sum(), exact)
    error = max(relative_error(losses[rows], expected), relative_error(grad[rows], expected_grad))
    if not error < TOLERANCE[dtype]:
        raise ArithmeticError(f"linear cross entropy differs from float64 by {error:.1e}")
    return error
