"""The loss of the label embedding network: its outputs, the sums over samples that it consists of, and the loss in chunks
of samples with gradients in closed form instead of autograd.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from labelkin.functional import is_soft, kernels
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch

if TYPE_CHECKING:
    from labelkin.objectives._label_embedding import LabelEmbedding

LARGER_ON_CUDA = 4  # a chunk there, in chunks on the CPU
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class TwoHeads(NamedTuple):
    """The outputs of a label embedding network, each (..., K)."""

    z1: Tensor  # predicts
    z2: Tensor  # learns which classes are similar; no gradient reaches the backbone


class Sums(NamedTuple):
    """The terms summed over the samples of this process, with the weight of all samples and of those z2 gets right."""

    hard: Tensor
    soft: Tensor
    similarity: Tensor
    confidence: Tensor
    embedding: Tensor
    tree: Tensor  # one sum for each tree term
    weight: Tensor
    right: Tensor


class Walked(NamedTuple):
    """The sums and gradients that a pass over all chunks returns."""

    sums: Sums
    predicted: Tensor
    of_features: Tensor | None
    gradients: Mapping[str, Tensor | None]  # by the names of the objective's parameters


def has_closed_form(objective: LabelEmbedding, batch: Batch) -> bool:
    """Return whether the gradients are known in closed form.

    They are for class positions as targets, if the objective's own class sets `has_closed_form`, and for plain linear heads.
    """
    if is_soft(batch.target) or batch.node is not None or not vars(type(objective)).get("has_closed_form", False):
        return False
    if not objective.embedding_parameters:  # the embedding is not learned by gradients
        return False
    return all(
        type(head) is nn.Linear and not any(getattr(head, name, None) for name in HOOKS)
        for head in (objective.head, objective.similarity_head)
    )


def closed_walk(
    objective: LabelEmbedding,
    batch: Batch,
    flat: Tensor,
    samples: Tensor,
    of_features: bool,
    wanted: AbstractSet[str],
    *,
    entries: int,
) -> Walked:
    """Process all samples in chunks; the gradients of z1, z2 and the embedding overwrite them.

    A chunk has about `entries` outputs, or more on CUDA.
    """
    exact = batch.weight.dtype
    share = batch.weight * objective._class_factor(batch, exact)
    coefficients = _coefficients(objective, samples)
    size = entries * (LARGER_ON_CUDA if flat.is_cuda else 1) // objective.num_classes
    rows_of_terms: list[Tensor] = []
    of_tree: list[Tensor] = []
    right: list[Tensor] = []
    predicted: list[Tensor] = []
    dtype, head, other = kernels.dtype_of(flat), objective.head, objective.similarity_head
    assert isinstance(head, nn.Linear)
    assert isinstance(other, nn.Linear)
    options = objective._closed_options()
    embedding = objective._embedding_in_chunks(wanted)
    first = (of_features, "head.weight" in wanted, "head.bias" in wanted)
    second = (False, "similarity_head.weight" in wanted, "similarity_head.bias" in wanted)
    with (
        torch.no_grad(),
        kernels.linear_layer(flat, head.weight, head.bias, dtype, first) as layer,
        kernels.linear_layer(flat, other.weight, other.bias, dtype, second) as similar,
    ):
        for rows in kernels.split_rows(len(flat), size):
            part = Batch(batch.target[rows], batch.weight[rows])
            z1, z2, e = layer(rows), similar(rows), embedding.rows(part.target)
            tree = _tree_part(objective, z1, part, share[rows], coefficients.tree)
            step = kernels.embedding_with_gradients(z1, z2, e, part.target, share[rows], coefficients.terms, options)
            if tree is not None:
                of_tree.append(tree.losses)
                z1.add_(tree.gradient)
            layer.add(rows, z1)
            similar.add(rows, z2)
            embedding.add(part.target, e)
            rows_of_terms.append(step.terms)
            right.append(step.right)
            predicted.append(step.predicted)
            del z1, z2, e, tree, step  # before the next chunk is made
        hidden, weight, bias = layer.gradients()
        _, weight2, bias2 = similar.gradients()
    gradients = {
        "head.weight": weight,
        "head.bias": bias,
        "similarity_head.weight": weight2,
        "similarity_head.bias": bias2,
        **embedding.gradients(),
    }
    sums = _summed(objective, batch, share, torch.cat(rows_of_terms), of_tree, torch.cat(right))
    return Walked(sums, torch.cat(predicted), hidden, gradients)


class _Coefficients(NamedTuple):
    """The factors of the summed terms in the total."""

    terms: Tensor  # (5,)
    tree: Tensor  # one for each tree term


def _coefficients(objective: LabelEmbedding, samples: Tensor) -> _Coefficients:
    """Return the derivatives of the total, which is linear in the sums; the embedding term is not divided by `right` yet."""
    with torch.enable_grad():
        terms = torch.zeros(5, dtype=samples.dtype, device=samples.device, requires_grad=True)
        tree = torch.zeros(len(objective._tree_term_names()), dtype=samples.dtype, device=samples.device)
        tree.requires_grad_()
        hard, soft, similarity, confidence, embedding = terms.unbind()
        sums = Sums(hard, soft, similarity, confidence, embedding, tree, weight=samples, right=samples)
        total = objective._total(objective._terms(sums, samples, torch.ones_like(samples)))
        return _Coefficients(*torch.autograd.grad(total, (terms, tree), materialize_grads=True))


class _TreePart(NamedTuple):
    losses: Tensor  # (n, terms)
    gradient: Tensor  # (n, K), with respect to z1


def _tree_part(
    objective: LabelEmbedding, z1: Tensor, batch: Batch, share: Tensor, coefficients: Tensor
) -> _TreePart | None:
    """Return the tree terms of a chunk and their gradient, by autograd; None if there are none."""
    if not objective._tree_term_names():
        return None
    with torch.enable_grad():
        logits = inputs.widened(z1).detach().requires_grad_()
        found = objective._tree_losses(TwoHeads(logits, logits), batch)
        losses = torch.stack([_counted(one, batch.weight) for one in found.values()], -1)
        (gradient,) = torch.autograd.grad((share[:, None] * losses * coefficients).sum(), logits)
    return _TreePart(losses.detach(), gradient)


def _counted(losses: Tensor, weight: Tensor) -> Tensor:
    return torch.where(weight > 0, losses, 0.0)  # 0 * inf is NaN


def _summed(
    objective: LabelEmbedding, batch: Batch, share: Tensor, terms: Tensor, of_tree: list[Tensor], right: Tensor
) -> Sums:
    hard, soft, similarity, confidence, embedding = _counted(terms.T, batch.weight).mul_(share).unbind()
    counted = objective._counted(batch, share.dtype)
    return Sums(
        hard=hard.sum(),
        soft=soft.sum(),
        similarity=similarity.sum(),
        confidence=confidence.sum(),
        embedding=torch.where(right, embedding, 0).sum(),
        tree=(share[:, None] * torch.cat(of_tree)).sum(0) if of_tree else share.new_zeros(0),
        weight=counted.sum(),
        right=(counted * right).sum(),
    )


class WholeEmbedding:
    """Rows of an embedding E (K x K), and its gradient."""

    def __init__(self, embedding: Tensor, wanted: bool) -> None:
        self._embedding = embedding.detach()
        self._gradient = torch.zeros_like(self._embedding) if wanted else None

    def rows(self, target: Tensor) -> Tensor:
        return self._embedding[target]

    def add(self, target: Tensor, gradient: Tensor) -> None:
        if self._gradient is not None:
            self._gradient.index_add_(0, target, gradient)

    def gradients(self) -> dict[str, Tensor | None]:
        return {"embedding": self._gradient}


class LowRankEmbedding:
    """Rows of `A B` before the ReLU, and the gradients of A and B."""

    def __init__(self, a: Tensor, b: Tensor, of_a: bool, of_b: bool) -> None:
        self._a, self._b = a.detach(), b.detach()
        self._of_a = torch.zeros_like(self._a) if of_a else None
        self._of_b = torch.zeros_like(self._b) if of_b else None

    def rows(self, target: Tensor) -> Tensor:
        return self._a[target] @ self._b

    def add(self, target: Tensor, gradient: Tensor) -> None:
        if self._of_a is not None:
            self._of_a.index_add_(0, target, gradient @ self._b.T)
        if self._of_b is not None:
            kernels.add_product(self._of_b, self._a[target].T, gradient)

    def gradients(self) -> dict[str, Tensor | None]:
        return {"a": self._of_a, "b": self._of_b}
