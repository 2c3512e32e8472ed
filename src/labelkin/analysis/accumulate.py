"""Two exact ways to accumulate the activations of a layer into NAA distances, and the memory that each needs.

`"correlation"` keeps one sum of outer products per class, K x F x F, and streams: the number of samples costs nothing.
`"gram"` keeps the activations, N x F, and compares all pairs of samples at the end.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.functional.naa import GRAM_ENTRIES, naa_similarity, naa_similarity_gram

DOUBLE = 8  # bytes
WAITING = 16  # rows wait until adding them costs less than reading the sums; at most 1/16 of the sums' memory


class Accumulator(Protocol):
    """Interface of both ways: add batches, then compute the distances."""

    def add(self, activations: Tensor, targets: Tensor) -> None: ...

    def distances(self) -> Tensor: ...


class CorrelationSums:
    """Stream the sums of `z z^T` over the samples of each class (000 Eq. 5 times m, which Eq. 6 cancels)."""

    def __init__(self, classes: int, features: int) -> None:
        self.sums = torch.zeros(classes, features, features, dtype=torch.float64)
        self.waiting: list[tuple[Tensor, Tensor]] = []

    def add(self, activations: Tensor, targets: Tensor) -> None:
        self.waiting.append((activations, targets))
        rows = sum(len(held) for _, held in self.waiting)
        if rows * WAITING >= self.sums.shape[0] * self.sums.shape[1]:
            self._flush()

    def _flush(self) -> None:
        if not self.waiting:
            return
        activations, targets = (torch.cat(parts) for parts in zip(*self.waiting, strict=True))
        self.waiting.clear()
        order = targets.argsort(stable=True)
        counts = targets.bincount(minlength=len(self.sums)).tolist()
        for k, own in enumerate(torch.split(activations[order], counts)):
            if len(own):
                z = own.double()
                self.sums[k].addmm_(z.T, z)

    def distances(self) -> Tensor:
        self._flush()
        squares = self.sums.diagonal(dim1=1, dim2=2)  # no other entry is larger than the largest of these
        if not torch.isfinite(squares).all():
            raise InputError('activations: too large for their products in float64; use form="gram".')
        return 1 - naa_similarity(self.sums)


class StoredSamples:
    """Keep every sample until the distances are computed."""

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.kept: list[tuple[Tensor, Tensor]] = []

    def add(self, activations: Tensor, targets: Tensor) -> None:
        self.kept.append((activations, targets))

    def distances(self) -> Tensor:
        activations, targets = (torch.cat(parts) for parts in zip(*self.kept, strict=True))
        self.kept.clear()
        return 1 - naa_similarity_gram(activations, targets, self.classes)


class MemoryNeed(NamedTuple):
    """Memory and work that a form needs in one layer."""

    held: int  # bytes, while batches come
    at_end: int  # bytes on top, at the end
    work: int  # multiplications

    @property
    def peak(self) -> int:
        return self.held + self.at_end


def correlation_need(classes: int, features: int, samples: int | None) -> MemoryNeed:
    """Return the need of the sums and of the rows that wait; at the end a scaled copy of the sums."""
    sums = DOUBLE * classes * features**2
    return MemoryNeed(sums + sums // WAITING, sums, ((samples or 0) + classes**2) * features**2)


def gram_need(samples: int, features: int, itemsize: int) -> MemoryNeed:
    """Return the need of the activations; at the end two float64 copies, and at most GRAM_ENTRIES products with squares."""
    entries = samples * features
    at_end = 2 * DOUBLE * (entries + min(samples**2, GRAM_ENTRIES))
    return MemoryNeed(entries * itemsize, at_end, samples * entries // 2)
