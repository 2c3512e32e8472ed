"""Gather a layer's activations into NAA distances, and estimate the memory this needs.

`"correlation"` keeps one sum of outer products per class, K x F x F, and needs no more memory for more samples.
`"gram"` keeps the activations, N x F, and compares all pairs of samples at the end.
"""

from collections.abc import Iterable, Mapping, Sized
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, counted
from labelkin.functional import GRAM_ENTRIES, Form, naa_similarity, naa_similarity_gram

DOUBLE = 8  # bytes
WAITING = 16  # rows are buffered, up to 1/16 of the sums' memory, so that the sums are updated less often


class Accumulator(Protocol):
    """Interface of both forms: add batches, then compute the distances."""

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
        squares = self.sums.diagonal(dim1=1, dim2=2)  # the largest entry is on the diagonal
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

    held: int  # bytes while batches are added
    at_end: int  # additional bytes while the distances are computed
    work: int  # multiplications

    @property
    def peak(self) -> int:
        return self.held + self.at_end


def correlation_need(classes: int, features: int, samples: int | None) -> MemoryNeed:
    """Return the memory of the sums and the buffered rows; at the end, a scaled copy of the sums is added."""
    sums = DOUBLE * classes * features**2
    return MemoryNeed(sums + sums // WAITING, sums, ((samples or 0) + classes**2) * features**2)


def gram_need(samples: int, features: int, itemsize: int) -> MemoryNeed:
    """Return the memory of the activations; at the end, two float64 copies and at most GRAM_ENTRIES products are added."""
    entries = samples * features
    at_end = 2 * DOUBLE * (entries + min(samples**2, GRAM_ENTRIES))
    return MemoryNeed(entries * itemsize, at_end, samples * entries // 2)


GIB = 2**30


class Memory(NamedTuple):
    """Memory needed for the distances of some layers; `forms` is the form used for each layer.

    Example:
        >>> from labelkin.analysis import Memory
        >>> print(Memory(("conv",), (512,), ("gram",), 2**30))
        NAA needs 1 GiB for conv (512 features, gram)
    """

    layers: tuple[str, ...]
    features: tuple[int, ...]  # the width of each layer, flattened
    forms: tuple[Form, ...]
    bytes: int  # upper bound: the sum over all layers, plus the largest additional need at the end

    def __str__(self) -> str:
        parts = ", ".join(f"{n} ({counted(f, 'feature')}, {form})" for n, f, form in zip(*self[:3], strict=True))
        return f"NAA needs {self.bytes / GIB:.3g} GiB for {parts}"


def memory_for(
    activations: Mapping[str, Tensor], *, classes: int, limit: int, samples: int | None = None, form: Form = "auto"
) -> Memory:
    """Plan the memory from one batch of each layer's activations (n, F); `samples` is the total number, if known."""
    if form == "gram" and samples is None:
        raise InputError(
            "samples: the Gram form needs the number of samples, but the batches have no length; give samples, "
            'or use form="correlation".'
        )
    widths = tuple(batch.shape[1] for batch in activations.values())
    chosen: list[tuple[Form, MemoryNeed]] = []
    for width, batch in zip(widths, activations.values(), strict=True):
        needs: dict[Form, MemoryNeed] = {"correlation": correlation_need(classes, width, samples)}
        if samples is not None:
            needs["gram"] = gram_need(samples, width, batch.element_size())
        taken = _cheapest(needs, limit) if form == "auto" else form
        chosen.append((taken, needs[taken]))
    held, at_end = sum(need.held for _, need in chosen), max((need.at_end for _, need in chosen), default=0)
    return Memory(tuple(activations), widths, tuple(name for name, _ in chosen), held + at_end)


def _cheapest(needs: Mapping[Form, MemoryNeed], limit: int) -> Form:
    """Return the form with the fewest multiplications that fits the limit; if none fits, the one with the least memory."""
    fitting = [form for form, need in needs.items() if need.peak <= limit]
    return min(fitting, key=lambda form: needs[form].work) if fitting else min(needs, key=lambda form: needs[form].peak)


def check_limit(memory: Memory, limit: int) -> None:
    """Raise if the memory is above the limit."""
    if memory.bytes > limit:
        raise InputError(
            f"limit: {memory}, more than the {limit / GIB:.3g} GiB allowed; name fewer or narrower layers, "
            "give fewer samples with the Gram form, or raise the limit."
        )


def count_samples(batches: Iterable[object], first: int, samples: int | None) -> int | None:
    """Return the maximum number of samples: the given number, or the number of batches times the size of the first."""
    if samples is not None:
        check_count("samples", samples)
        return samples
    try:
        return len(batches) * first if isinstance(batches, Sized) else None
    except TypeError:  # the loader of an iterable dataset has `__len__`, but it raises
        return None
