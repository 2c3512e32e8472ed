"""Fused losses as differentiable functions: an autograd function in eager mode, a custom operator under `torch.compile`.

A kind of kernel has a forward function, which returns one loss per row and a small tensor for the backward pass; a
backward function; and a composed form of differentiable torch operations, for second derivatives.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from labelkin.functional._kernels import composed

Operands = Sequence[Tensor]
Options = Sequence[float]
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
COMPOSED: dict[str, Callable[[Tensor, Operands, Options], Tensor]] = {
    "leaves": composed.leaves,
    "nodes": composed.nodes,
    "classes": composed.classes,
}
SAVED: dict[str, Callable[[Operands, bool], int]] = {  # columns of what is saved, without and with Triton
    "leaves": lambda operands, triton: (
        (operands[4].shape[1] + 1) * (2 if len(operands) > 6 else 1)
        if triton
        else operands[4].shape[1] + 1 + operands[4].shape[0]
    ),
    "nodes": lambda operands, triton: composed.saved_by_nodes(operands),
    "classes": lambda operands, triton: 2,
}


@cache
def has_triton() -> bool:
    return find_spec("triton") is not None


def uses_triton(logits: Tensor) -> bool:
    return logits.is_cuda and has_triton()


def transformed() -> bool:
    """Return whether `torch.func` or forward-mode autograd is active, which kernels do not support."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def supports(logits: Tensor) -> bool:
    """Return whether kernels support these logits: on the CPU, or on CUDA with Triton, but not in forward-mode autograd."""
    if not logits.numel() or transformed():
        return False
    if logits.device.type == "cpu":
        return logits.dtype in (*FLOATS, torch.float64)
    return uses_triton(logits) and logits.dtype in FLOATS


def fused(kind: str, logits: Tensor, target: Tensor, operands: Operands, options: Options) -> Tensor:
    """Compute one loss per sample (...,) from `logits` (..., C); kernels get `operands` after the flattened target."""
    rows = logits.reshape(-1, logits.shape[-1])
    rows = rows if rows.stride(-1) == 1 else rows.contiguous()
    given = [target.reshape(-1).long(), *operands]
    if torch.compiler.is_compiling():
        loss: Tensor = torch.ops.labelkin.fused(kind, rows, given, list(options))[0]
    else:
        loss = _Fused.apply(rows, kind, given, options)  # type: ignore[no-untyped-call]
    dtype = torch.float32 if torch.is_autocast_enabled(logits.device.type) else logits.dtype
    return loss.to(dtype).reshape(target.shape)


def _by_triton(logits: Tensor) -> bool:
    return uses_triton(logits) and logits.dtype in FLOATS


def module(kind: str, logits: Tensor) -> Any:
    """Return the module with the kernels of a kind for the device of the logits; without Triton, torch operations."""
    backend = "triton" if _by_triton(logits) else "cpu"
    return import_module(f"labelkin.functional._kernels.{backend}_{kind}")


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, kind: str, operands: Operands, options: Options) -> Tensor:
        loss, saved = module(kind, logits).forward(logits, operands, options)
        ctx.save_for_backward(logits, saved)
        ctx.kind, ctx.operands, ctx.options = kind, operands, options
        found: Tensor = loss
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        logits, saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative was requested
            loss = COMPOSED[ctx.kind](logits, ctx.operands, ctx.options)
            return *torch.autograd.grad(loss, logits, grad, create_graph=True), None, None, None
        result = module(ctx.kind, logits).backward(grad.contiguous(), logits, saved, ctx.operands, ctx.options)
        return result, None, None, None


@torch.library.custom_op("labelkin::fused", mutates_args=())
def _fused(kind: str, logits: Tensor, operands: list[Tensor], options: list[float]) -> tuple[Tensor, Tensor]:
    loss, saved = module(kind, logits).forward(logits, operands, options)
    return loss, saved


@_fused.register_fake
def _(kind: str, logits: Tensor, operands: list[Tensor], options: list[float]) -> tuple[Tensor, Tensor]:
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    rows = logits.shape[0]
    return logits.new_empty(rows, dtype=dtype), logits.new_empty(
        (rows, SAVED[kind](operands, _by_triton(logits))), dtype=dtype
    )


@torch.library.custom_op("labelkin::fused_backward", mutates_args=())
def _fused_backward(
    kind: str, grad: Tensor, logits: Tensor, saved: Tensor, operands: list[Tensor], options: list[float]
) -> Tensor:
    result: Tensor = module(kind, logits).backward(grad.contiguous(), logits, saved, operands, options)
    return result


@_fused_backward.register_fake
def _(kind: str, grad: Tensor, logits: Tensor, saved: Tensor, operands: list[Tensor], options: list[float]) -> Tensor:
    return logits.new_empty(logits.shape)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    kind, logits, operands, options = inputs
    ctx.save_for_backward(logits, output[1], *operands)
    ctx.kind, ctx.options = kind, options


def _custom_backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[None, Tensor, list[None], None]:
    logits, saved, *operands = ctx.saved_tensors
    result = torch.ops.labelkin.fused_backward(ctx.kind, grad, logits, saved, operands, ctx.options)
    return None, result, [None] * len(operands), None


_fused.register_autograd(_custom_backward, setup_context=_setup)
