"""Two halves of the samples: what is fitted or chosen on one is measured on the other."""

from typing import NamedTuple

import torch
from torch import Tensor

LEAST = 20  # samples, below which a half tells nothing


class Halves(NamedTuple):
    fitted: Tensor  # positions of samples
    measured: Tensor


def halves_of(count: int, seed: int) -> Halves | None:
    """Drawn by `seed`; None where there are too few samples."""
    if count < LEAST:
        return None
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return Halves(order[: count // 2].sort().values, order[count // 2 :].sort().values)
