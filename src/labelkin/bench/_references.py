"""The fused losses implemented from their definitions, in any precision; benchmarks and tests compare the kernels with them."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional import (
    ClassTargets,
    DenseTargets,
    GroupedTargets,
    OrdinalTargets,
    ScaledTargets,
    SparseTargets,
    TreeIndex,
    below,
    path_columns,
    path_sum,
    sibling_log_softmax,
    subtree_logsumexp,
    take,
)

EdgeWeight = Callable[
    [Tensor, Tensor], Tensor
]  # a function of the depth of an edge's lower node and the length of the path


def hierarchical_cross_entropy(logits: Tensor, target: Tensor, tree: TreeIndex, alpha: float) -> Tensor:
    subtree = subtree_logsumexp(logits, tree)
    log_p = subtree[..., 1:] - take(subtree, tree.parent)
    return along_path(log_p, target, tree, lambda depth, _: torch.exp(-alpha * depth))


def ancestors(logits: Tensor, target: Tensor, tree: TreeIndex, weight: float, base: float) -> Tensor:
    """Sum `weight` times `-log P` over the nodes strictly between root and target, and add `base` times that of the target."""
    subtree = subtree_logsumexp(logits, tree)
    log_prob = subtree - subtree[..., :1]
    chain = log_prob.gather(-1, path_columns(target, tree) + 1)
    depth = torch.arange(1, chain.shape[-1] + 1, device=chain.device)
    between = torch.where(depth < tree.lengths[target].unsqueeze(-1), chain, 0)
    return -base * log_prob.gather(-1, target.unsqueeze(-1)).squeeze(-1) - weight * between.sum(-1)


def conditional_softmax(logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    return along_path(sibling_log_softmax(logits, tree), target, tree, lambda depth, _: torch.ones_like(depth))


def convex_hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    return along_path(sibling_log_softmax(logits, tree), target, tree, lambda depth, _: 1 / depth)


def hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex, targets: str = "path") -> Tensor:
    log_p = sibling_log_softmax(logits, tree)
    marked = targets == "path"
    loss = along_path(log_p, target, tree, lambda depth, length: (length - depth) * marked + 1)
    mass = take(path_sum(log_p, tree), tree.inner - 1).exp()
    unknown = below(target, tree.inner, tree) & (tree.inner != target.unsqueeze(-1))
    return loss + mass.masked_fill(unknown, 0).sum(-1)


def along_path(log_p: Tensor, target: Tensor, tree: TreeIndex, weight: EdgeWeight) -> Tensor:
    """Compute `-sum_d w_d log p_d` over the edges of the path."""
    length = tree.lengths[target].unsqueeze(-1)
    columns = path_columns(target, tree)
    depth = torch.arange(1, columns.shape[-1] + 1, device=log_p.device).to(log_p.dtype)
    found = torch.where(depth <= length, log_p.gather(-1, columns), 0)
    return -(weight(depth, length.to(log_p.dtype)) * found).sum(-1)


def class_matrix_row(label: int, targets: ClassTargets, classes: int) -> Tensor:
    """Return one row of the class matrix in float64, entry by entry."""
    row = torch.zeros(classes, dtype=torch.float64, device=targets[0].device)
    if isinstance(targets, DenseTargets):
        return targets.matrix[label].double()
    if isinstance(targets, GroupedTargets):
        row[:] = targets.rest[label]
        row[targets.group == targets.group[label]] = targets.kin[label].double()
        row[label] = targets.own[label].double()
    elif isinstance(targets, OrdinalTargets):
        gap = (torch.arange(classes, device=row.device) - label).abs()
        row = targets.by_gap.double()[gap] * targets.scale[label].double()
        row[label] = targets.own[label].double()
    elif isinstance(targets, ScaledTargets):
        row = targets.matrix[label].double() * targets.scale[label].double()
        row[label] = targets.own[label].double()
    elif isinstance(targets, SparseTargets):
        entries = slice(int(targets.start[label]), int(targets.start[label + 1]))
        row[targets.columns[entries].long()] = targets.values[entries].double()
    else:
        row = targets.right.double() @ targets.left[label].double()
        row[label] += targets.own[label].double()
    return row


def class_target_cross_entropy(logits: Tensor, target: Tensor, targets: ClassTargets) -> Tensor:
    rows = torch.stack([class_matrix_row(int(label), targets, logits.shape[-1]) for label in target])
    return -(rows.to(logits.dtype) * F.log_softmax(logits, -1)).sum(-1)
