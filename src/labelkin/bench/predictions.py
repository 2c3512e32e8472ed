"""Generated predictions: a tree of tens of tens, and logits that follow it."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from labelkin.structure import Taxonomy

EPOCHS = 200
DIMS = 512


class Predictions(NamedTuple):
    """Generated predictions, and what the metrics need beside them."""

    logits: Tensor  # (n, K) float32
    probs: Tensor
    predicted: Tensor
    target: Tensor
    taxonomy: Taxonomy
    distances: Tensor  # (K, K) semantic
    groups: Tensor  # (K,) ten classes a group
    vectors: Tensor  # (K, D) label vectors
    curve: list[float]  # accuracy after each epoch

    @property
    def superclasses(self) -> int:
        """Number of groups of classes."""
        return int(self.groups.max()) + 1

    def first(self, samples: int) -> Self:
        """Return the predictions of the first samples alone."""
        cut = {name: getattr(self, name)[:samples] for name in ("logits", "probs", "predicted", "target")}
        return self._replace(**cut)


def make(samples: int, classes: int) -> Predictions:
    """Generate predictions: two of three are right at 10,000 x 1,000, and mistakes stay near."""
    draw = torch.Generator().manual_seed(0)
    tree = Taxonomy.from_paths([f"all/hundred{i // 100}/ten{i // 10}/class{i}" for i in range(classes)])
    distances = torch.from_numpy(tree.distance("semantic"))
    target = torch.randint(classes, (samples,), generator=draw)
    logits = torch.randn(samples, classes, generator=draw) + 1.5 * (3 - distances.float())[target]
    logits[torch.arange(samples), target] += 0.5
    groups = torch.arange(classes) // 10
    noise = torch.randn(classes, DIMS, generator=draw)
    vectors = noise + torch.randn(classes // 10 + 1, DIMS, generator=draw)[groups]
    curve = (1 - torch.linspace(1, 0, EPOCHS).square()).tolist()
    return Predictions(logits, logits.softmax(-1), logits.argmax(-1), target, tree, distances, groups, vectors, curve)
