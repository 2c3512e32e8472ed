"""What turns texts into vectors, whatever it is made of."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from torch import Tensor


class Encoder(ABC):
    """Texts in, vectors (n, D) of float32 out; `name` is what a user calls it by."""

    name: str

    def fitted(self, texts: Sequence[str]) -> Self:
        """An encoder that has seen the training texts; one that was trained elsewhere stays as it is."""
        return self

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Tensor:
        """One row a text, in their order."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain values and tensors that `restored` makes the same encoder from."""
