"""Plan the memory that NAA of some layers will need, before it is used."""

from collections.abc import Iterable, Mapping, Sized
from typing import NamedTuple

from torch import Tensor

from labelkin._checks import InputError, check_count
from labelkin.analysis.accumulate import MemoryNeed, correlation_need, gram_need
from labelkin.functional.naa import Form

GIB = 2**30


class Memory(NamedTuple):
    """Memory that the distances of some layers need; `forms` says how each layer's are computed.

    Example:
        >>> from labelkin.analysis import Memory
        >>> print(Memory(("conv",), (512,), ("gram",), 2**30))
        NAA needs 1 GiB for conv (512 features, gram)
    """

    layers: tuple[str, ...]
    features: tuple[int, ...]  # the width of each layer, flattened
    forms: tuple[Form, ...]
    bytes: int  # at most: held by all layers together, and what the largest needs on top at the end

    def __str__(self) -> str:
        parts = ", ".join(f"{n} ({f} features, {form})" for n, f, form in zip(*self[:3], strict=True))
        return f"NAA needs {self.bytes / GIB:.3g} GiB for {parts}"


def memory_for(
    activations: Mapping[str, Tensor], *, classes: int, limit: int, samples: int | None = None, form: Form = "auto"
) -> Memory:
    """Plan from a batch of each layer's activations (n, F); `samples` is the number that will come, if known."""
    if form == "gram" and samples is None:
        raise InputError(
            "samples: the Gram form holds every sample, and batches without a length do not say how many; give samples, "
            'or form="correlation".'
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
    """Return the form with the fewest multiplications among those that fit; if none fits, the smallest."""
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
    """Return the most samples that can come: the number given, or the batches times the size of the first one."""
    if samples is not None:
        check_count("samples", samples)
        return samples
    try:
        return len(batches) * first if isinstance(batches, Sized) else None
    except TypeError:  # a loader of a stream has a length that it cannot tell
        return None
