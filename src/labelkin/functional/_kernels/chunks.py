"""A linear layer whose outputs exist for a chunk of samples at a time, with the gradients that are added up over the chunks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

ENTRIES = {"cuda": 2**24}  # outputs of a chunk, at least
ENTRIES_ELSEWHERE = 2**22
PART_OF_WEIGHTS = 4  # a chunk may be as large as the weights divided by this; their gradients take more memory anyway


def slices(rows: int, classes: int, features: int, device: torch.device) -> list[slice]:
    """Return chunks of nearly the same size that cover all rows."""
    least = ENTRIES.get(device.type, ENTRIES_ELSEWHERE)
    return split_rows(rows, max(least, classes * features // PART_OF_WEIGHTS) // classes)


def split_rows(rows: int, most: int) -> list[slice]:
    """Return chunks of nearly the same size with at most that many rows each, and at least one."""
    parts = max(1, -(-rows // max(1, most)))
    size = max(1, -(-rows // parts))
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def dtype_of(features: Tensor) -> torch.dtype:
    """Return the dtype in which a linear layer computes: that of autocast where it is on, except for float64."""
    kind = features.device.type
    if torch.is_autocast_enabled(kind) and features.dtype != torch.float64:
        return torch.get_autocast_dtype(kind)
    return features.dtype


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add `left @ right` to `total`, which may be more precise than the factors."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total.add_(left @ right)


def scale(gradient: Tensor, factor: Tensor) -> None:
    """Multiply a gradient by a scalar tensor in place, without rounding the scalar to the dtype of the gradient."""
    torch.mul(gradient, factor.reshape(1), out=gradient)


class Layer:
    """A linear layer and the requested gradients of features, weight and bias."""

    def __init__(
        self, features: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype, wanted: Sequence[bool]
    ) -> None:
        self._features, self._dtype_of_bias = features, weight.dtype if bias is None else bias.dtype
        self._weight, self._bias = weight.to(dtype), None if bias is None else bias.to(dtype)
        of_features, of_weight, of_bias = wanted
        self._of_features = torch.empty_like(features) if of_features else None
        self._of_weight = torch.zeros_like(weight) if of_weight else None
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        self._of_bias = bias.new_zeros(bias.shape, dtype=exact) if of_bias and bias is not None else None

    def __call__(self, rows: slice) -> Tensor:
        """Return the outputs of some rows."""
        return F.linear(self._features[rows].to(self._weight.dtype), self._weight, self._bias)

    def add(self, rows: slice, gradient: Tensor) -> None:
        """Add the contribution of some rows, from the gradient of their outputs, to the gradients; call it once per row."""
        if self._of_features is not None:
            self._of_features[rows] = gradient @ self._weight
        if self._of_weight is not None:
            add_product(self._of_weight, gradient.T, self._features[rows].to(self._weight.dtype))
        if self._of_bias is not None:
            self._of_bias.add_(gradient.sum(0, dtype=self._of_bias.dtype))

    def gradients(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the gradients of features, weight and bias."""
        of_bias = None if self._of_bias is None else self._of_bias.to(self._dtype_of_bias)
        return self._of_features, self._of_weight, of_bias


@contextmanager
def linear_layer(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    dtype: torch.dtype,
    wanted: Sequence[bool] = (False, False, False),
) -> Iterator[Layer]:
    """Create a layer and turn autocast off, which would convert the weights again for every chunk."""
    with torch.autocast(features.device.type, enabled=False):
        yield Layer(features, weight, bias, dtype, wanted)
