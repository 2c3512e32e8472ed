"""Relations with a rule short enough that no matrix is kept: groups, and distances in a tree."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number
from labelkin.relations.matrices import read_numbers
from labelkin.relations.rows import Rows
from labelkin.structure.distances import DISTANCES, DistanceKind
from labelkin.structure.taxonomy import Taxonomy


class GroupRows(Rows):
    """`1/(n-1)` for each of the other classes of the group (000 Eq. 4), else 0; `group` holds a group id a class.

    A class alone in its group is isolated.
    """

    group: Tensor
    share: Tensor

    def __init__(self, group: Any, *, dtype: torch.dtype = torch.float64) -> None:
        ids = read_numbers("group", group)
        if ids.ndim != 1 or ids.is_floating_point() or len(ids) < 2:
            raise InputError(
                "group: expected a whole number for each of two classes or more, "
                f"got shape {tuple(ids.shape)} of {ids.dtype}."
            )
        super().__init__(len(ids), keeps_diagonal=False)
        _, place = torch.unique(ids, return_inverse=True)
        others = place.bincount()[place] - 1
        self.register_buffer("group", place.int())
        self.register_buffer("share", torch.where(others > 0, 1 / others.to(dtype), 0.0))

    def forward(self, index: Tensor) -> Tensor:
        own = index.unsqueeze(-1)
        together = self.group[own] == self.group  # (..., K)
        return (together * self.share[own]).scatter(-1, own, 0.0)

    def isolated(self) -> Tensor:
        return self.share == 0


class TreeRows(Rows):
    """`exp(-beta d(i, j) / max d)`, each row divided by its sum, from the tree's table of ancestors.

    The diagonal is dropped (a relation), or kept with `keep_diagonal`: the soft labels of Bertinetto et al. (2020).
    Every other class gets a weight above zero (but for underflow), so that no class is isolated. `distance` is one of
    `Taxonomy.distance`'s kinds. All follow from the depth of the deepest common ancestor, which is counted level by
    level, with nothing larger than the rows asked for.
    """

    ancestors: Tensor  # (levels, K): of each class, on each level below the root; its own leaf once it has ended
    height: Tensor  # (K, levels + 1): of the root, then of those ancestors
    depth: Tensor  # (K,)

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        beta: float,
        distance: DistanceKind = "height",
        keep_diagonal: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        check_number("beta", beta, low=0)
        check_choice("distance", distance, DISTANCES)
        super().__init__(len(taxonomy.leaves), keeps_diagonal=keep_diagonal)
        self.beta = beta
        self.distance = distance
        self.farthest = farthest(taxonomy, distance)
        self.deepest = int(taxonomy.depth.max())
        paths = taxonomy.paths[taxonomy.leaves]  # (K, deepest + 1)
        nodes = np.where(paths < 0, taxonomy.leaves[:, None], paths)
        # Below the last level on which two classes meet, nothing is shared.
        levels = sum(len(np.unique(level)) < self.classes for level in nodes.T[1:])
        self.register_buffer("ancestors", torch.tensor(nodes.T[1 : levels + 1], dtype=torch.int32))
        self.register_buffer("height", torch.tensor(taxonomy.height[nodes[:, : levels + 1]], dtype=dtype))
        self.register_buffer("depth", torch.tensor(taxonomy.depth[taxonomy.leaves], dtype=dtype))

    def forward(self, index: Tensor) -> Tensor:
        own = index.unsqueeze(-1)
        shared = torch.zeros(*index.shape, self.classes, dtype=torch.int16, device=index.device)
        for ancestor in self.ancestors:
            shared = shared + (ancestor[own] == ancestor)
        scores = self._apart(index, shared) * (-self.beta / self.farthest)
        return scores.scatter(-1, own, 0.0 if self.keeps_diagonal else -torch.inf).softmax(-1)

    def _apart(self, index: Tensor, shared: Tensor) -> Tensor:
        """(..., K) distances from the depths of the deepest common ancestors; that of a class to itself means nothing."""
        if self.distance == "height":
            return self.height[index].gather(-1, shared.long())
        depth = self.depth[index].unsqueeze(-1)
        if self.distance == "edges":
            return depth + self.depth - 2 * shared
        if self.distance == "depth":
            return (self.deepest - shared).to(depth.dtype)
        return torch.maximum(depth, self.depth) - shared

    def isolated(self) -> Tensor:
        return torch.zeros(self.classes, dtype=torch.bool, device=self.depth.device)

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, beta={self.beta}, distance={self.distance!r}, keep_diagonal={self.keeps_diagonal}"
        )


def farthest(taxonomy: Taxonomy, distance: DistanceKind) -> float:
    """The largest distance between two classes, from one or two rows of the distance matrix.

    The node where the tree first branches is above every pair. Its height is what every leaf finds as its largest
    "height" distance, and what "semantic" and "depth" reach from the deepest leaf. For "edges": the
    class farthest from any class is an end of a longest path.
    """
    everyone = np.arange(len(taxonomy.leaves))
    if distance != "edges":
        return float(taxonomy.distance("height", 0, everyone).max())
    end = taxonomy.distance("edges", 0, everyone).argmax()
    return float(taxonomy.distance("edges", end, everyone).max())
