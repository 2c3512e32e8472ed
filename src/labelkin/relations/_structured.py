"""Relations with a rule short enough that no matrix is kept: groups, and distances in a tree."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number
from labelkin.relations._matrices import read_numbers
from labelkin.relations._targets import Rows
from labelkin.structure import DISTANCES, DistanceKind, Ints, Taxonomy, subtree_sizes


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
    """`exp(-beta d(i, j) / max d)`, each row divided by its sum, from a tree.

    The diagonal is dropped (a relation), or kept with `keep_diagonal`: the soft labels of Bertinetto et al. (2020).
    Every other class gets a weight above zero (but for underflow), so that no class is isolated. `distance` is one of
    `Taxonomy.distance`'s kinds. All follow from the depth or height of the lowest common ancestor, a
    running sum over the leaves, with nothing larger than the rows asked for.
    """

    depth: Tensor  # (K,)
    place: Tensor  # (K,): position of each class in a depth-first walk over the leaves
    leaves: Tensor  # (K,): the nodes of the classes
    jumps: Tensor  # (levels, N + 1): the node 1, 2, 4, ... steps up; N stands for what is above the root
    spans: Tensor  # (N + 1, 2): where the leaves below a node begin and end in the walk
    steps: Tensor  # (N + 1, 2): what the depth (or height) of a node adds to its parent's, and its opposite

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
        self.register_buffer("depth", torch.tensor(taxonomy.depth[taxonomy.leaves], dtype=dtype))
        for name, array in _tree_arrays(taxonomy, taxonomy.height if distance == "height" else taxonomy.depth).items():
            self.register_buffer(name, torch.from_numpy(array))

    def forward(self, index: Tensor) -> Tensor:
        own = index.unsqueeze(-1)
        scores = self._apart(index, self._met(index)) * (-self.beta / self.farthest)
        return scores.scatter(-1, own, 0.0 if self.keeps_diagonal else -torch.inf).softmax(-1)

    def _met(self, index: Tensor) -> Tensor:
        """(..., K) depths (or heights) of the lowest common ancestors, as sums over the ancestors of each class asked for.

        An ancestor adds its step to all leaves below it, which are neighbors in the walk.
        """
        upward = self.leaves[index].unsqueeze(-1)
        for jump in self.jumps:
            upward = torch.cat([upward, jump[upward]], -1)
        sums = torch.zeros(*index.shape, self.classes + 1, dtype=self.depth.dtype, device=index.device)
        sums = sums.scatter_add(-1, self.spans[upward].flatten(-2), self.steps[upward].flatten(-2).to(sums.dtype))
        return sums.cumsum(-1)[..., self.place]

    def _apart(self, index: Tensor, met: Tensor) -> Tensor:
        """(..., K) distances; that of a class to itself means nothing."""
        if self.distance == "height":
            return met
        if self.distance == "depth":
            return self.deepest - met
        depth = self.depth[index].unsqueeze(-1)
        if self.distance == "edges":
            return depth + self.depth - 2 * met
        return torch.maximum(depth, self.depth) - met

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if prefix + "ancestors" in state_dict:  # saved by an earlier version; the tree's own arrays replace its tables
            del state_dict[prefix + "ancestors"], state_dict[prefix + "height"]
            state_dict.update({prefix + name: buffer for name, buffer in self.named_buffers() if name != "depth"})
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def isolated(self) -> Tensor:
        return torch.zeros(self.classes, dtype=torch.bool, device=self.depth.device)

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, beta={self.beta}, distance={self.distance!r}, keep_diagonal={self.keeps_diagonal}"
        )


def _tree_arrays(taxonomy: Taxonomy, values: Ints) -> dict[str, Ints]:
    """Build the buffers of `TreeRows` for a value of each node."""
    size, leaves = len(taxonomy), taxonomy.leaves
    order = np.argsort(taxonomy.preorder[leaves])
    walk = taxonomy.preorder[leaves[order]]
    spans = np.full((size + 1, 2), len(leaves))
    ends = taxonomy.preorder + subtree_sizes(taxonomy.parents)
    spans[:size] = np.searchsorted(walk, np.stack([taxonomy.preorder, ends], 1))
    steps = np.zeros((size + 1, 2), dtype=np.int64)
    steps[:size, 0] = values
    steps[1:size, 0] -= values[taxonomy.parents[1:]]
    steps[:, 1] = -steps[:, 0]
    up = np.append(taxonomy.parents, size)
    up[0] = size
    jumps = []
    while (up < size).any():
        jumps.append(up)
        up = up[up]
    return {
        "place": np.argsort(order),
        "leaves": leaves.copy(),
        "jumps": np.stack(jumps),
        "spans": spans,
        "steps": steps,
    }


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
