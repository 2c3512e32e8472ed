"""The base of objectives that take a tree but score the classes alone."""

from collections.abc import Sequence
from typing import ClassVar, Unpack

import torch
from torch import Tensor

from labelkin.functional import is_soft, open_subtree_logsumexp
from labelkin.objectives._options import Shared
from labelkin.objectives._tree import TreeObjective
from labelkin.structure import Taxonomy


def grouped_target(target: Tensor, group_of_class: Tensor, groups: int) -> Tensor:
    """Return (n,) the groups of the target classes, or for class probabilities (n, K) the sums (n, groups) over groups."""
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
        )  # the base class refuses what is no tree
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
