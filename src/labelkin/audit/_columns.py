"""Whole numbers of samples, such as class positions: in memory or in a file, so that memory does not depend on their number."""

import weakref
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any, BinaryIO, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin.decide import fitted_mask

IN_MEMORY = 2**20  # bytes of a column; more stay in a file
ROWS = 2**15  # the maximum number of rows read at a time: with few classes, results take more memory than scores
LEAST_SAMPLES = 20  # fewer samples are not split into halves
Array = npt.NDArray[Any]


class Column:
    """One whole number per sample (n,), read as int64; `column[3]` is a number, and `column[3:9]` a tensor."""

    def __init__(self, count: int, dtype: npt.DTypeLike, held: Array | BinaryIO) -> None:
        self._count, self._dtype, self._held = count, np.dtype(dtype), held

    @classmethod
    def of(cls, values: Tensor) -> "Column":
        """Return the column of a tensor (n,)."""
        return cls(len(values), np.int64, values.numpy())

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Tensor: ...
    def __getitem__(self, at: int | slice) -> int | Tensor:
        if isinstance(at, slice):
            return self._read(at.start or 0, self._count if at.stop is None else min(at.stop, self._count))
        if not 0 <= at < self._count:
            raise IndexError(at)
        return int(self._read(at, at + 1))

    def blocks(self) -> Iterator[Tensor]:
        """Yield the numbers, some at a time."""
        for start in range(0, self._count, ROWS):
            yield self[start : start + ROWS]

    def take(self, half: "Half") -> "Column":
        """Return the numbers of the samples in a half."""
        taken, start = ColumnWriter(self._dtype), 0
        for block in self.blocks():
            taken.add(block[half.mask(slice(start, start + len(block)))].numpy())
            start += len(block)
        return taken.column()

    def tensor(self) -> Tensor:
        """Return all numbers (n,), in memory."""
        return self[:]

    def _read(self, start: int, stop: int) -> Tensor:
        if isinstance(self._held, np.ndarray):
            part = self._held[start:stop]
        else:
            self._held.seek(start * self._dtype.itemsize)
            part = np.frombuffer(self._held.read((stop - start) * self._dtype.itemsize), self._dtype)
        return torch.from_numpy(part.astype(np.int64))


class ColumnWriter:
    """Collects a column part by part: in memory, or in a temporary file if it is long."""

    def __init__(self, dtype: npt.DTypeLike = np.int32) -> None:
        self._dtype, self._parts, self._count = np.dtype(dtype), list[Array](), 0
        self._file: BinaryIO | None = None

    def add(self, values: npt.ArrayLike) -> None:
        """Add numbers (m,)."""
        part = np.array(values, dtype=self._dtype)
        self._parts.append(part)
        self._count += len(part)
        if self._file is None and self._count * self._dtype.itemsize > IN_MEMORY:
            self._file = TemporaryFile()  # noqa: SIM115 - it is open for as long as the column is used
        if self._file is not None:
            for kept in self._parts:
                self._file.write(kept.data)
            self._parts = []

    def column(self) -> Column:
        """Return the numbers that were added."""
        if self._file is None:
            return Column(self._count, self._dtype, np.concatenate([np.zeros(0, self._dtype), *self._parts]))
        found = Column(self._count, self._dtype, self._file)
        weakref.finalize(found, self._file.close)
        return found


class Half:
    """One of the two halves of the samples."""

    def __init__(self, marks: Column, mark: int, count: int) -> None:
        self._marks, self._mark, self._count = marks, mark, count

    def __len__(self) -> int:
        return self._count

    def mask(self, place: slice) -> Tensor:
        """Return which of the samples in a slice are in this half."""
        return self._marks[place] == self._mark


class Halves:
    """The half of the samples that values are fitted on, and the half that they are measured on; see `split_halves`."""

    def __init__(self, count: int, seed: int) -> None:
        writer = ColumnWriter(np.uint8)
        for part in torch.split(fitted_mask(count, seed), ROWS):
            writer.add(part.numpy())
        marks = writer.column()
        self.fitted, self.measured = Half(marks, 1, count // 2), Half(marks, 0, count - count // 2)

    def __iter__(self) -> Iterator[Half]:
        return iter((self.fitted, self.measured))


def split_if_enough(count: int, seed: int) -> Halves | None:
    """Split `count` samples into random halves; None if there are too few samples."""
    return None if count < LEAST_SAMPLES else Halves(count, seed)
