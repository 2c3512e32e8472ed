"""The bases of tree objectives: a taxonomy in class order, its index arrays as buffers, and nodes as targets.

`LeafObjective` is the base of those that score the classes alone.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import torch
from torch import Tensor

from labelkin.functional import is_soft, open_log_softmax, open_subtree_logsumexp, path_columns, path_sum, take
from labelkin.objectives import _validation as inputs
from labelkin.objectives._base import Objective
from labelkin.objectives._options import Shared
from labelkin.objectives._tree_buffers import in_class_order
from labelkin.structure import Taxonomy

if TYPE_CHECKING:
    from labelkin.objectives._context import Context


class TreeObjective(Objective):
    """An objective with one logit for each non-root node, in the order of `taxonomy.names[1:]`.

    A target is a position in `taxonomy.leaves`; `node=` gives a node where the fine class is unknown (-1 where it is
    known), below which nothing contributes. `classes=` may name the taxonomy's classes in another order, and targets and
    scores follow it.
    """

    softmax_logits: ClassVar[bool] = False

    linear_in_target: ClassVar[bool] = True
    takes_nodes: ClassVar[bool] = True

    taxonomy: Taxonomy

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        classes: int | Sequence[str] | None = None,
        _width: int | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        taxonomy = in_class_order(taxonomy, classes)
        width = len(taxonomy) - 1 if _width is None else _width
        super().__init__(taxonomy.classes, taxonomy=taxonomy, _width=width, **shared)

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().defaults(context, options), "taxonomy": options.get("taxonomy") or context.tree()}

    def node_log_probs(self, outputs: Tensor) -> Tensor:
        """Return (..., N - 1) log-probabilities of all non-root nodes, in the order of `taxonomy.names[1:]`."""
        return path_sum(open_log_softmax(inputs.single(self, outputs), self.tree()), self.tree())

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return (..., K) log-probabilities of the leaves."""
        return take(self.node_log_probs(outputs), self.tree().leaves - 1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return (K, N - 1): 1 for the leaf of a class and every node above it."""
        leaves = self.tree().leaves[self._rows(classes, width=len(self.taxonomy) - 1)]
        paths, lengths = path_columns(leaves, self.tree()), self.tree().lengths[leaves]
        on_path = torch.arange(paths.shape[-1], device=paths.device) < lengths.unsqueeze(-1)
        vectors = torch.zeros(len(leaves), len(self.taxonomy) - 1, device=paths.device)
        return vectors.scatter_add(-1, paths, on_path.to(vectors.dtype))


def grouped_target(target: Tensor, group_of_class: Tensor, groups: int) -> Tensor:
    """Return the groups (n,) of the target classes, or for class probabilities (n, K) their sums over groups (n, groups)."""
    if is_soft(target):
        return target.new_zeros(len(target), groups).index_add(-1, group_of_class, target)
    return group_of_class[target]


class LeafObjective(TreeObjective):
    """A tree objective without logits of inner nodes and without inner nodes as targets.

    A subclass implements `compute` and `log_probs`; probabilities of inner nodes are sums over their classes. Outputs are K
    wide unless the subclass gives another width.
    """

    takes_nodes: ClassVar[bool] = False

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        classes: int | Sequence[str] | None = None,
        _width: int | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        leaves = (
            len(taxonomy.leaves) if isinstance(taxonomy, Taxonomy) else None
        )  # the base class refuses anything but a tree
        super().__init__(taxonomy, classes=classes, _width=leaves if _width is None else _width, **shared)

    def node_log_probs(self, outputs: Tensor) -> Tensor:
        """Return (..., N - 1) log-probabilities of all non-root nodes, from sums over their classes."""
        return open_subtree_logsumexp(self.log_probs(outputs), self.tree())[..., 1:]

    def _products(self, values: Tensor, vectors: Tensor) -> Tensor:
        """Return (..., K) inner products with vectors (K, D) in the precision of the values, also under autocast."""
        with torch.autocast(values.device.type, enabled=False):
            return values @ vectors.to(values.dtype).T

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return (..., K) log-probabilities of the classes."""
        raise NotImplementedError
