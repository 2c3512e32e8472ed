"""What goes into a loss besides the outputs, and what comes out of it."""

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """What a loss may need besides the outputs, with leading shapes flattened to (n,)."""

    target: Tensor  # (n,) class positions, or (n, K) class probabilities
    weight: Tensor  # (n,) sample weights; 0 is padding
    node: Tensor | None = None  # (n,) node indices where the fine class is unknown, -1 elsewhere
    index: Tensor | None = None  # type: ignore[assignment]  # (n,) sample ids; hides tuple.index


class Loss(NamedTuple):
    """A loss with its parts, and what the objective's state becomes if this is a training step."""

    total: Tensor  # the scalar to call backward() on
    terms: dict[str, Tensor]  # its parts, before their weights, and figures worth logging
    state: dict[str, Tensor] | None = None  # new values of buffers, by name
    predicted: Tensor | None = None  # class positions, where the outputs themselves were never whole
