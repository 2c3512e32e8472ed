"""Scores of samples in memory or in a file, read in blocks of rows, so that memory does not depend on their number."""

import weakref
from collections.abc import Callable, Iterator
from tempfile import TemporaryFile
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from labelkin._numpy_files import StoredArray
from labelkin.audit._columns import ROWS, Column, Half
from labelkin.audit._schema import Floats

BLOCK = 2**21  # numbers that are read at a time
IN_MEMORY = 2**22  # bytes of scores; more stay in a file
Change = Callable[[Tensor], Tensor]


class Scores:
    """A table (n, K) of float64 numbers.

    Attributes:
        shape: The shape.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        read: Callable[[], Iterator[Tensor]],
        whole: Tensor | None = None,
        made: "tuple[Scores, Change] | None" = None,
    ) -> None:
        self.shape, self._read, self._whole, self._made = shape, read, whole, made

    @classmethod
    def of(cls, values: Tensor) -> "Scores":
        """Return the scores of a tensor (n, K)."""
        rows = block_rows(values.shape[1])
        return cls((values.shape[0], values.shape[1]), lambda: iter(torch.split(values, rows)), values)

    @classmethod
    def stored(cls, array: StoredArray) -> "Scores":
        """Return scores that are read from their file whenever they are needed."""
        rows = block_rows(array.shape[1])
        return cls(
            array.shape,
            lambda: (torch.from_numpy(block.astype(np.float64)) for block in array.blocks(rows)),
        )

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield the rows in blocks, each with its positions."""
        start = 0
        for block in self._read():
            yield slice(start, start + len(block)), block
            start += len(block)

    def map(self, change: Change) -> "Scores":
        """Apply a row-by-row function to the scores: at once if they are in memory, otherwise whenever they are read."""
        if self._whole is not None:
            return Scores.of(change(self._whole))
        return Scores(self.shape, lambda: map(change, self._read()), made=(self, change))

    def take(self, half: Half) -> "Scores":
        """Return the rows of the samples in a half."""
        if self._whole is not None:
            return Scores.of(self._whole[half.mask(slice(0, len(self)))])
        if self._made is not None:  # rows that are not taken need not be changed
            source, change = self._made
            return source.take(half).map(change)

        def read() -> Iterator[Tensor]:
            for place, block in self.blocks():
                rows = block[half.mask(place)]
                if len(rows):
                    yield rows

        return Scores((len(half), self.shape[1]), read)

    def beside(self, *columns: Column) -> Iterator[tuple[Tensor, ...]]:
        """Yield the rows in blocks, each with the same rows of `columns`."""
        for place, block in self.blocks():
            yield (block, *(column[place] for column in columns))

    def mean(self, compute: Callable[..., Tensor], *columns: Column) -> Tensor:
        """Return the mean over all samples; `compute` returns the mean over a block of them."""
        total: Tensor | None = None
        for block, *own in self.beside(*columns):
            share = compute(block, *own) * (len(block) / len(self))
            total = share if total is None else total + share
        assert total is not None
        return total

    def tensor(self) -> Tensor:
        """Return all rows (n, K), in memory."""
        return torch.cat(list(self._read())) if self._whole is None else self._whole


class Spool:
    """Collects the scores of a table chunk by chunk: in memory, or in a temporary file if there are many."""

    def __init__(self) -> None:
        self._parts: list[Floats] = []
        self._first: Floats | None = None
        self._shape = (0, 0)
        self._file: BinaryIO | None = None

    def add(self, rows: Floats) -> None:
        """Add rows (m, K), as wide as those before."""
        self._first = rows if self._first is None else self._first
        self._shape = (self._shape[0] + len(rows), rows.shape[1])
        self._parts.append(rows)
        if self._file is None and self._shape[0] * rows.shape[1] * rows.itemsize > IN_MEMORY:
            self._file = TemporaryFile()  # noqa: SIM115 - it is open for as long as its scores are used
        if self._file is not None:
            for part in self._parts:
                self._file.write(np.ascontiguousarray(part).data)
            self._parts = []

    def sample(self) -> Floats:
        """Return all rows if they are in memory, otherwise the first ones."""
        if self._file is not None and self._first is not None:
            return self._first
        self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def scores(self) -> Scores:
        """Return the scores that were added."""
        file, (count, width) = self._file, self._shape
        if file is None:
            return Scores.of(torch.from_numpy(self.sample()))

        def read() -> Iterator[Tensor]:
            for start in range(0, count, rows):
                block = torch.empty(min(rows, count - start), width, dtype=torch.float64)
                file.seek(start * width * block.element_size())
                block.numpy().reshape(-1)[:] = np.frombuffer(file.read(block.nbytes))
                yield block

        rows = block_rows(width)
        found = Scores((count, width), read)
        weakref.finalize(found, file.close)
        return found


def block_rows(width: int) -> int:
    """Return how many rows of this width are read at a time."""
    return max(1, min(ROWS, BLOCK // max(1, width)))
