"""Two random halves of held-out samples: one to fit on, one to measure on."""

from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import check_count

# Samples: more are split in a file, and so many positions are read at a time.
MOST_HELD, MOST_MAPPED = 2**20, 2**16


class Halves(NamedTuple):
    """Sample positions of the half that values are fitted on, and of the half that they are measured on.

    Example:
        >>> from labelkin import decide
        >>> halves = decide.split_halves(4, seed=0)
        >>> sorted([*halves.fitted.tolist(), *halves.measured.tolist()])
        [0, 1, 2, 3]
    """

    fitted: Tensor
    measured: Tensor


def split_halves(count: int, seed: int = 0) -> Halves:
    """Split `count` samples into two disjoint random halves.

    A guarantee needs samples that fitted nothing else: fit the temperature on `fitted` and the threshold of
    `GuaranteedFallback` on `measured`. The split must be random, since samples are often stored in the order of their classes.

    Args:
        count: The number of samples, at least 2. With an odd number, `measured` has one more.
        seed: The seed of the split.

    Returns:
        The positions of both halves, each in ascending order.

    Example:
        >>> from labelkin import decide
        >>> [len(half) for half in decide.split_halves(101)]
        [50, 51]
    """
    check_count("count", count, least=2)
    check_count("seed", seed, least=0)
    fitted = fitted_mask(int(count), int(seed))
    return Halves(fitted.nonzero().flatten(), (~fitted).nonzero().flatten())


def fitted_mask(count: int, seed: int) -> Tensor:
    """Return which samples (n,) are in the half `fitted` of `split_halves`; with many samples it is mapped from a file."""
    order, fitted = _tensor(count, np.int32 if count < 2**31 else np.int64), _tensor(count, np.bool_)
    torch.randperm(count, generator=torch.Generator().manual_seed(seed), out=order)
    for positions in torch.split(order[: count // 2], MOST_MAPPED):
        fitted[positions.long()] = True
    return fitted


def _tensor(count: int, dtype: npt.DTypeLike) -> Tensor:
    """Return zeros (n,), in a temporary file if there are many: the system may then give their memory to others."""
    if count <= MOST_HELD:
        return torch.from_numpy(np.zeros(count, dtype))
    with TemporaryFile() as file:  # the map keeps it
        return torch.from_numpy(np.memmap(file, dtype, "w+", shape=(count,)))
