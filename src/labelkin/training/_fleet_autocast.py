# ruff: noqa: SIM905
"""Mixed precision inside `torch.func.vmap`, which hides most operations from autocast.

`vmap` replaces an operation by its batched form before autocast sees it, so a convolution, or a linear layer with a bias, would
be computed in float32. Here the arguments are cast before `vmap` sees the operation, by autocast's own rules.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

PRODUCTS = frozenset(
    "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d matmul __matmul__ __rmatmul__ mm mv bmm "
    "addmm addmv addr addbmm baddbmm einsum scaled_dot_product_attention".split()
)
LOSSES = frozenset(
    "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy_with_logits "
    "cosine_embedding_loss cdist".split()
)
NORMS = frozenset(
    ["batch_norm", "instance_norm", "layer_norm", "group_norm"]
)  # weights in float32, inputs in any precision
EXACT = {  # by type of device: computed in float32
    "cpu": LOSSES,
    "cuda": LOSSES
    | frozenset(
        "softmax log_softmax softplus exp expm1 log log1p log2 log10 pow __pow__ __rpow__ reciprocal rsqrt norm normalize "
        "cosine_similarity layer_norm group_norm sum prod cumsum cumprod".split()
    ),
}


class Autocast(TorchFunctionMode):
    """Cast the arguments of operations as autocast does, for the duration of a `with` block.

    Args:
        dtype: The precision of products.
        exact: The names of the operations that are computed in float32.

    >>> with Autocast(torch.bfloat16, LOSSES):
    ...     product = torch.ones(2, 2) @ torch.ones(2, 2)
    >>> product.dtype
    torch.bfloat16
    """

    def __init__(self, dtype: torch.dtype, exact: frozenset[str]) -> None:
        super().__init__()
        self.dtype, self.exact = dtype, exact

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in PRODUCTS:
            args, given = _cast((args, given), torch.float32, self.dtype)
        elif name in self.exact:
            args, given = _cast((args, given), self.dtype, torch.float32)
        elif name in NORMS and (args[0] if args else given["input"]).dtype == self.dtype:
            args, given = _cast((args, given), self.dtype, torch.float32)
            return func(*args, **given).to(self.dtype)
        return func(*args, **given)


def _cast(arguments: Any, before: torch.dtype, after: torch.dtype) -> Any:
    """Cast the tensors among the arguments from the precision `before` to `after`; others are not changed."""
    return tree_map(lambda x: x.to(after) if isinstance(x, Tensor) and x.dtype == before else x, arguments)


def as_outside(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context that applies the autocast which is active on a device; to be entered inside `vmap`."""
    if not torch.is_autocast_enabled(device.type):
        return nullcontext()
    return Autocast(torch.get_autocast_dtype(device.type), EXACT.get(device.type, LOSSES))
