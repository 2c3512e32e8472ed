"""Rows of a sparse matrix that become dense some at a time, so that the whole matrix never does."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

AT_ONCE, NUMBERS = 1024, 2**19  # the maximum of rows, and of their numbers if they are sparse


class SparseRows:
    """The rows of a sparse matrix, which are read like those of a tensor (n, D): `rows[index]` is a dense tensor.

    Args:
        matrix: A matrix of scipy in CSR format, (n, D).
        dense: Returns the tensor (m, D) of some rows of it.
        dtype: The dtype of these tensors.
    """

    ndim = 2

    def __init__(
        self, matrix: Any, dense: Callable[[Any], Tensor], dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> None:
        self.shape, self.dtype = tuple(matrix.shape), dtype
        self._matrix, self._dense, self._device = matrix, dense, device

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Tensor) -> Tensor:
        return self._dense(self._matrix[index.cpu().numpy()]).to(self._device)

    def to(self, device: torch.device | str) -> "SparseRows":
        """Return the same rows, which become dense tensors on a device."""
        return SparseRows(self._matrix, self._dense, self.dtype, device)

    def take(self, index: Tensor) -> "SparseRows":
        """Return some of the rows, still sparse."""
        return SparseRows(self._matrix[index.cpu().numpy()], self._dense, self.dtype, self._device)


def row_blocks(rows: Tensor | SparseRows) -> Iterator[Tensor]:
    """Yield rows as dense tensors, some at a time."""
    if isinstance(rows, Tensor):
        yield from rows.split(AT_ONCE)  # type: ignore[no-untyped-call]
        return
    size = max(1, min(AT_ONCE, NUMBERS // max(1, int(rows.shape[1]))))
    for start in range(0, len(rows), size):
        yield rows[torch.arange(start, min(start + size, len(rows)))]
