"""Relations that need no K x K matrix, because a rule gives each row: groups, and distances in a tree."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number
from labelkin.functional import ClassTargets, DenseTargets, GroupedTargets
from labelkin.relations._matrices import read_numbers
from labelkin.relations._targets import Rows
from labelkin.structure import DISTANCES, DistanceKind, Ints, Taxonomy, subtree_sizes

LARGEST_KEPT = 2**22  # entries of a matrix of rows that is kept: 2,048 classes, 16 MiB in float32


class GroupRows(Rows):
    """Rows of the relation of groups: `1 / (n - 1)` for each of the other classes of a group of `n` classes (000 Eq. 4).

    A class that is alone in its group is isolated.

    Args:
        group: (K,) the number of each class's group.
        dtype: The dtype of the rows.

    Example:
        >>> import torch
        >>> from labelkin.relations import GroupRows
        >>> GroupRows([0, 0, 1])(torch.tensor([1]))
        tensor([[1., 0., 0.]], dtype=torch.float64)
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

    def class_targets(self) -> ClassTargets:
        nothing = torch.zeros_like(self.share)
        return GroupedTargets(self.group, nothing, self.share, nothing)


class TreeRows(Rows):
    """Rows `exp(-beta d(i, j) / max d)` of distances in a tree, divided by their sums.

    All distances follow from the depth or height of lowest common ancestors, which are running sums over the leaves, so memory
    does not exceed the size of the requested rows.

    Args:
        taxonomy: The tree.
        beta: How fast weights fall with distance, at least 0.
        distance: The kind of distance; see `Taxonomy.distance`.
        keep_diagonal: Keep the class itself, as in the soft labels of Bertinetto et al. (2020). False gives a relation.
            No class is isolated: all other classes have a weight above 0, except for underflow.
        dtype: The dtype of the rows.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.relations import TreeRows
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> TreeRows(tree, beta=2.0)(torch.tensor([0]))
        tensor([[0.0000, 0.7311, 0.2689]], dtype=torch.float64)
    """

    depth: Tensor  # (K,)
    place: Tensor  # (K,): position of each class in a depth-first walk over the leaves
    leaves: Tensor  # (K,): the nodes of the classes
    jumps: Tensor  # (levels, N + 1): the ancestor 1, 2, 4, ... steps up; N stands for "above the root"
    spans: Tensor  # (N + 1, 2): first position in the walk of the leaves below a node, and the position after the last
    steps: Tensor  # (N + 1, 2): depth (or height) of a node minus that of its parent, and the negative of it

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
        self._kept: Tensor | None = None  # all rows, for `class_targets`
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
        """Return (..., K) depths (or heights) of lowest common ancestors, as sums over the ancestors of each requested class.

        An ancestor adds its step to all leaves below it, which are contiguous in the depth-first walk.
        """
        upward = self.leaves[index].unsqueeze(-1)
        for jump in self.jumps:
            upward = torch.cat([upward, jump[upward]], -1)
        sums = torch.zeros(*index.shape, self.classes + 1, dtype=self.depth.dtype, device=index.device)
        sums = sums.scatter_add(-1, self.spans[upward].flatten(-2), self.steps[upward].flatten(-2).to(sums.dtype))
        return sums.cumsum(-1)[..., self.place]

    def _apart(self, index: Tensor, met: Tensor) -> Tensor:
        """Return (..., K) distances to all classes; the entry of the class itself is meaningless."""
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
        self._kept = None
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def isolated(self) -> Tensor:
        return torch.zeros(self.classes, dtype=torch.bool, device=self.depth.device)

    def class_targets(self) -> ClassTargets | None:
        """Return the matrix of all rows, which is built once, if there are not too many classes."""
        if self.classes**2 > LARGEST_KEPT:
            return None
        if self._kept is None or self._kept.dtype != self.depth.dtype or self._kept.device != self.depth.device:
            if self.depth.is_cuda and torch.cuda.is_current_stream_capturing():
                return None  # memory of a captured graph holds nothing before the graph runs
            with torch.no_grad():
                self._kept = self.dense()
        return DenseTargets(self._kept)

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
    """Return the largest distance between two classes, from one or two rows of the distance matrix.

    The node where the tree first branches is the lowest common ancestor of some pair of every leaf. Its height is the largest
    "height" distance, and also the largest "semantic" and "depth" distance, which the deepest leaf reaches. For "edges", the
    class farthest from any class is an end of a longest path.
    """
    everyone = np.arange(len(taxonomy.leaves))
    if distance != "edges":
        return float(taxonomy.distance("height", 0, everyone).max())
    end = taxonomy.distance("edges", 0, everyone).argmax()
    return float(taxonomy.distance("edges", end, everyone).max())
