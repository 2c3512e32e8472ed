"""A random split of held-out samples into two disjoint halves."""

from typing import NamedTuple

import torch
from torch import Tensor

from labelkin._checks import check_count


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

    A guarantee needs the second half for itself: fit the temperature on `fitted` and the threshold of `GuaranteedFallback` on
    `measured`. The split must be random, since samples are often stored in the order of their classes.

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
    order = torch.randperm(int(count), generator=torch.Generator().manual_seed(int(seed)))
    return Halves(order[: count // 2].sort().values, order[count // 2 :].sort().values)
