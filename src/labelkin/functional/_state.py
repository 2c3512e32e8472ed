"""Helpers for state that a step reads and then replaces, also in compiled code."""

import torch
from torch import Tensor


@torch.library.custom_op("labelkin::as_it_was", mutates_args=())
def _copy(value: Tensor) -> Tensor:
    return value.clone()


@_copy.register_fake
def _(value: Tensor) -> Tensor:
    return torch.empty_like(value)


def as_it_was(value: Tensor) -> Tensor:
    """Return a copy of `value` in compiled code, and `value` itself in eager code.

    Compiled code may keep the buffer for the backward pass. By then it holds the next step's value, so gradients would be
    silently wrong (seen in torch 2.13, which optimizes a plain clone away). The compiler cannot look into this operator.
    """
    return _copy(value) if torch.compiler.is_compiling() else value


def finite_rows(values: Tensor) -> Tensor:
    """Return (..., 1): whether every entry of a row is finite. It reads no value, so compiled code needs no branch."""
    return torch.isfinite(values).all(-1, keepdim=True)
