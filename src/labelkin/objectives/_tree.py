"""The base of tree objectives: a taxonomy in class order, its index arrays as buffers, and nodes as targets."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import torch
from torch import Tensor, nn

from labelkin._checks import InputError, plain_names
from labelkin.functional import TreeIndex, is_soft, open_log_softmax, path_columns, path_sum, take, tree_index
from labelkin.objectives import _validation as inputs
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch
from labelkin.objectives._options import Shared
from labelkin.structure import Taxonomy

if TYPE_CHECKING:
    from labelkin.objectives._context import Context


class TreeObjective(Objective):
    """An objective with one logit for each non-root node, in the order of `taxonomy.names[1:]`.

    A target is a position in `taxonomy.leaves`; `node=` gives a node where the fine class is unknown (-1 where it is
    known), below which nothing contributes. `classes=` may name the taxonomy's classes in another order, and targets and
    scores follow it.
    """

    linear_in_target: ClassVar[bool] = True
    takes_nodes: ClassVar[bool] = True

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
        super().__init__(taxonomy.classes, _width=width, **shared)
        self.taxonomy = taxonomy
        self.tree = TreeBuffers(tree_index(taxonomy))

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().defaults(context, options), "taxonomy": options.get("taxonomy") or context.tree()}

    def known(self, batch: Batch) -> Tensor:
        """Return the known node of each sample (n,), or the class probabilities (n, K) that were given."""
        if is_soft(batch.target):
            return batch.target
        leaf = self.tree().leaves[batch.target]
        return leaf if batch.node is None else torch.where(batch.node >= 0, batch.node, leaf)

    def _class_factor(self, batch: Batch, dtype: torch.dtype) -> Tensor:
        if self.class_weight is None or batch.node is None:
            return super()._class_factor(batch, dtype)
        known = self.tree().leaf_class[self.known(batch)]
        factor = self.class_weight[known.clamp_min(0)].to(dtype)
        return torch.where(known >= 0, factor, torch.ones_like(factor))

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


class TreeBuffers(nn.Module):
    """Hold the index arrays of a tree as buffers that move with the objective and are not saved."""

    def __init__(self, index: TreeIndex) -> None:
        super().__init__()
        self._layout = TreeIndex(*(self._store(name, value) for name, value in index._asdict().items()))

    def _store(self, name: str, value: Any) -> Any:
        """Register tensors as buffers, and return their names in the nesting of the tensors."""
        if isinstance(value, tuple):
            return tuple(self._store(f"{name}_{i}", part) for i, part in enumerate(value))
        self.register_buffer(name, value, persistent=False)
        return name

    def _fetch(self, layout: Any) -> Any:
        return tuple(map(self._fetch, layout)) if isinstance(layout, tuple) else self._buffers[layout]

    def forward(self) -> TreeIndex:
        return TreeIndex(*map(self._fetch, self._layout))


def in_class_order(taxonomy: Taxonomy, classes: int | Sequence[str] | None) -> Taxonomy:
    """Return the taxonomy with its classes in the order of `classes`, which must name the same classes."""
    if not isinstance(taxonomy, Taxonomy):
        raise InputError(f"taxonomy: expected a labelkin.Taxonomy, got {type(taxonomy).__name__}.")
    classes = plain_names(classes)
    if classes is None:
        return taxonomy
    if isinstance(classes, Sequence):
        return taxonomy.reorder(classes)
    if classes != len(taxonomy.leaves):
        raise InputError(f"classes: the taxonomy has {len(taxonomy.leaves)} classes, got {classes}.")
    return taxonomy
