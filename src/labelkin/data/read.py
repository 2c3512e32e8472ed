"""What the readers share: their result before it is split, and class names from labels."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError, listed
from labelkin.data.dataset import Split
from labelkin.structure.taxonomy import Taxonomy


class Read(NamedTuple):
    """A set as its files have it: the splits that they give, and all else in `train`."""

    classes: tuple[str, ...]
    train: Split
    test: Split | None = None
    val: Split | None = None
    taxonomy: Taxonomy | None = None
    coarse_classes: tuple[str, ...] | None = None


def class_names(labels: Sequence[str]) -> tuple[str, ...]:
    """The different labels, whole numbers by value, else by the alphabet."""
    distinct = set(labels)
    if all(label.removeprefix("-").isdecimal() for label in distinct):
        return tuple(sorted(distinct, key=lambda label: (int(label), label)))
    return tuple(sorted(distinct))


def positions(labels: Sequence[str], classes: Sequence[str], *, source: str) -> Tensor:
    """Each label as its place in `classes`; one that is not there is refused."""
    place = {name: k for k, name in enumerate(classes)}
    unknown = sorted({label for label in labels if label not in place})
    if unknown:
        raise InputError(
            f"{source}: no training sample has the class {listed(unknown)}; every class must be trained on."
        )
    return torch.tensor([place[label] for label in labels], dtype=torch.int64)
