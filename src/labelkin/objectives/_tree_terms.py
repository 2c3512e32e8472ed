"""Tree terms that any objective with class probabilities can add to its loss: ancestors and expected cost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from labelkin import functional
from labelkin._checks import InputError, check_number
from labelkin.functional import below, is_soft, tree_index
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._reduction import Reducer
from labelkin.objectives._tree_buffers import TreeBuffers, in_class_order
from labelkin.relations import read_square
from labelkin.structure import Taxonomy

if TYPE_CHECKING:
    from labelkin.objectives._context import Context

TREE_TERMS = ("ancestors", "expected_cost")  # the constructor's weights, and the names of the terms


class TreeTerms(Reducer):
    """The part of `Objective` that holds a tree and adds its terms to a loss; see there for the arguments."""

    has_probabilities: ClassVar[bool]
    num_classes: int
    classes: int | tuple[str, ...]

    taxonomy: Taxonomy | None
    tree: TreeBuffers  # only where there is a taxonomy
    costs: Tensor | None

    def _set_tree_terms(self, taxonomy: Taxonomy | None, *, ancestors: float, expected_cost: float, costs: Any) -> None:
        """Check and store the tree, the weights of its terms and the costs; `classes` are set already."""
        for name, weight in (("ancestors", ancestors), ("expected_cost", expected_cost)):
            self._check_weight(
                name, weight, has_costs=taxonomy is not None or (name != "ancestors" and costs is not None)
            )
        self.ancestors, self.expected_cost = ancestors, expected_cost
        self.taxonomy = None if taxonomy is None else in_class_order(taxonomy, self.classes)
        if self.taxonomy is not None:
            self.tree = TreeBuffers(tree_index(self.taxonomy))
        given = None if costs is None else read_square("costs", costs, self.num_classes)
        self.register_buffer("costs", None if given is None else given.to(torch.get_default_dtype()), persistent=False)

    @classmethod
    def _tree_for_terms(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the context's tree as an argument, if the options request a term that needs it and do not give a tree."""
        by_tree = options.get("ancestors") or (options.get("expected_cost") and options.get("costs") is None)
        return {"taxonomy": context.tree()} if by_tree and options.get("taxonomy") is None else {}

    def _check_weight(self, name: str, weight: float, *, has_costs: bool) -> None:
        check_number(name, weight, low=0)
        if weight and not self.has_probabilities:
            raise InputError(
                f"{name}: expected 0, because {type(self).__name__} defines no class probabilities, got {weight}; use an "
                "objective that does, such as OneHot."
            )
        if weight and not has_costs:
            costs = "" if name == "ancestors" else ", or a K x K matrix as costs="
            raise InputError(
                f"{name}: a weight of {weight} needs the tree of the classes, and none was given; pass a "
                f"labelkin.Taxonomy as taxonomy={costs}."
            )

    def log_probs(self, outputs: Any) -> Tensor:
        """Return (..., K) log-probabilities of the classes."""
        raise NotImplementedError

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

    def _tree_term_names(self) -> list[str]:
        """Return the names of the terms whose weights are above 0."""
        return [name for name in TREE_TERMS if getattr(self, name)]

    def _tree_losses(self, outputs: Any, batch: Batch) -> dict[str, Tensor]:
        """Return the tree terms of flattened outputs by name, each (n,) and before it is weighted."""
        if not self._tree_term_names():
            return {}
        log_probs, found = self.log_probs(outputs), {}
        if self.ancestors:
            found["ancestors"] = functional.ancestors(log_probs, self.known(batch), self.tree(), weight=1.0)
        if self.expected_cost:
            found["expected_cost"] = self._expected_cost(log_probs, batch)
        return found

    def _expected_cost(self, log_probs: Tensor, batch: Batch) -> Tensor:
        if self.costs is None:
            return functional.expected_distance(log_probs, self.known(batch), self.tree())
        costs = self.costs.to(log_probs.dtype)
        if batch.node is None:
            return functional.expected_cost(log_probs, batch.target, costs)
        node, tree = self.known(batch), self.tree()
        possible = below(node, tree.leaves, tree)
        rows = possible.to(costs.dtype) @ costs / possible.sum(-1, keepdim=True)
        right = possible & (tree.leaf_class[node] < 0).unsqueeze(-1)
        return (rows.masked_fill(right, 0) * log_probs.exp()).sum(-1)

    def _with_tree_terms(self, loss: Loss, outputs: Any, batch: Batch) -> Loss:
        """Add the weighted tree terms to a loss."""
        total, terms = loss.total, dict(loss.terms)
        for name, losses in self._tree_losses(outputs, batch).items():
            terms[name] = self._reduce(losses, batch)
            total = total + getattr(self, name) * terms[name]
        return loss._replace(total=total, terms=terms)
