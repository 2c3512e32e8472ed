"""Class positions as they come from users, checked."""

from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.relations.matrices import read_numbers


def class_positions(argument: str, values: Any, classes: int) -> Tensor:
    """(n,) int64 on the CPU, each from 0 to `classes - 1`."""
    given = read_numbers(argument, values).cpu()
    if given.ndim != 1 or given.is_floating_point() or given.dtype == torch.bool:
        raise InputError(
            f"{argument}: expected class positions, a whole number for each sample, got {given.dtype} "
            f"{tuple(given.shape)}."
        )
    outside = given[(given < 0) | (given >= classes)]
    if len(outside):
        raise InputError(f"{argument}: expected class positions from 0 to {classes - 1}, got {outside[0].item()}.")
    return given.long()
