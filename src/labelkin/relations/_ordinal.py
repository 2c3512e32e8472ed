"""Kin by order: the nearer two values, the closer the classes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.relations._matrices import count_classes, kin_softmax, read_numbers


def ordinal(classes: int | Sequence[str], *, power: float = 1.0, values: Any = None) -> Tensor:
    """`1 / |v_i - v_j|^power` for every other class, each row divided by its sum (000 Eq. 2-3).

    `classes` is their number or their names, `values` the value of each class (0, 1, 2, ... unless given; no two the
    same). Power 1 is the paper's rule; 0 makes all other classes equal, a large one leaves the nearest alone.

    Returns (K, K) float64, entries in [0, 1], zero diagonal. No class is isolated. Not symmetric: a class in the middle
    shares its weight among more neighbours.

    Example:
        >>> from labelkin import relations
        >>> relations.ordinal(3)
        tensor([[0.0000, 0.6667, 0.3333],
                [0.5000, 0.0000, 0.5000],
                [0.3333, 0.6667, 0.0000]], dtype=torch.float64)
    """
    count = count_classes(classes)
    check_number("power", power, low=0)
    places = torch.arange(count, dtype=torch.float64) if values is None else _checked_values(values, count)
    gaps = (places[:, None] - places).abs()
    return kin_softmax(-power * gaps.fill_diagonal_(1.0).log())


def _checked_values(values: Any, count: int) -> Tensor:
    places = read_numbers("values", values).double()
    if places.shape != (count,):
        raise InputError(f"values: expected {count} numbers, one a class, got shape {tuple(places.shape)}.")
    order = places.argsort(stable=True)
    twice = (places[order].diff() == 0).nonzero().flatten().tolist()
    if twice:
        first, second = order[twice[0]].item(), order[twice[0] + 1].item()
        raise InputError(
            f"values: classes {first} and {second} both have {places[int(first)].item()}; "
            "every class needs a value of its own."
        )
    return places
