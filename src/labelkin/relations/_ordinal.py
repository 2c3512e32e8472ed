"""Class similarity from an order: the closer the values of two classes, the more similar they are."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number, counted
from labelkin.relations._matrices import count_classes, kin_softmax, read_numbers


def ordinal(classes: int | Sequence[str], *, power: float = 1.0, values: Any = None) -> Tensor:
    """Compute the relation `1 / |v_i - v_j|^power` with rows divided by their sums (000 Eq. 2-3).

    Args:
        classes: The number of classes, or their names.
        power: How fast similarity falls with distance. 1 is the paper's rule; 0 makes all other classes equal, and a large
            power leaves only the nearest.
        values: (K,) the value of each class, all different. None means 0, 1, 2, ...

    Returns:
        (K, K) float64 relation. No class is isolated. It is not symmetric: a class in the middle has more neighbors.

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
        raise InputError(
            f"values: expected {counted(count, 'number')}, one per class, got shape {tuple(places.shape)}."
        )
    order = places.argsort(stable=True)
    twice = (places[order].diff() == 0).nonzero().flatten().tolist()
    if twice:
        first, second = order[twice[0]].item(), order[twice[0] + 1].item()
        raise InputError(
            f"values: classes {first} and {second} both have the value {places[int(first)].item()}; "
            "give each class a different value."
        )
    return places
