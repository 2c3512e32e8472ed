"""State that a step reads and then replaces, in code that may be compiled."""

import torch
from torch import Tensor


@torch.library.custom_op("labelkin::as_it_was", mutates_args=())
def _copy(value: Tensor) -> Tensor:
    return value.clone()


@_copy.register_fake
def _(value: Tensor) -> Tensor:
    return torch.empty_like(value)


def as_it_was(value: Tensor) -> Tensor:
    """`value` before this step replaces it in place.

    Compiled code may keep a buffer itself for the backward pass, and by then it holds the next step's value: gradients are
    silently wrong (seen in torch 2.13; a plain clone is optimised away). An operator that the compiler cannot look
    into is kept instead. Plain code needs no copy.
    """
    return _copy(value) if torch.compiler.is_compiling() else value


def finite_rows(values: Tensor) -> Tensor:
    """Return (..., 1): whether every entry of a row is finite. It reads no value, so compiled code needs no branch."""
    return torch.isfinite(values).all(-1, keepdim=True)
