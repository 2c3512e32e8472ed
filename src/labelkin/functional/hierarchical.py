"""Losses on a tree (002; Redmon & Farhadi; Bertinetto et al.), one loss a sample.

A `target` holds the node that is known of each sample (...,): a leaf, or an inner node where the fine class is unknown,
below which nothing contributes; or class probabilities (..., K), for which the loss is the expected one.

`log_p` (..., N - 1) is each node's log-probability given its parent. As in 002, the root has depth 1; HXE alone counts
from 0.
"""

import torch
from torch import Tensor

from labelkin.functional.cross_entropy import is_soft
from labelkin.functional.tree import (
    TreeIndex,
    above,
    below,
    path_sum,
    sibling_log_softmax,
    sibling_sums,
    subtree_logsumexp,
    take,
)


def conditional_softmax(logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """`-sum log p_j` along the path: the negative log-likelihood of the target's node (Redmon & Farhadi)."""
    log_p = sibling_log_softmax(logits, tree)
    return _path_loss(log_p, torch.ones_like(tree.parent, dtype=log_p.dtype), target, tree)


def hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex, *, targets: str = "path") -> Tensor:
    """`-sum_j s_j log p_j + sum_i prob_i` over inner, non-root i (002 Eq. 2-3).

    With `targets="path"` the leaf and all its ancestors are marked, so `s_j`, the number of marked nodes at or below j, is
    larger for coarse edges; `"leaf"` marks the leaf alone.
    """
    log_p = sibling_log_softmax(logits, tree)
    mass = _inner_mass(log_p, target, tree)
    if targets == "path":
        return _marked_path_loss(log_p, target, tree) + mass
    return _path_loss(log_p, torch.ones_like(tree.parent, dtype=log_p.dtype), target, tree) + mass


def convex_hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex, *, soft_off_path: bool = False) -> Tensor:
    """`sum KL(q_i || p_i) / depth(i)` over inner i (002 Eq. 4; the printed minus is a slip).

    On the path that is `-log p_child / depth(parent)`. Off it there is nothing, or with `soft_off_path` a uniform q over
    the children (Sec. 5.4).
    """
    log_p = sibling_log_softmax(logits, tree)
    weights = 1 / (tree.lengths[tree.parent] + 1).to(log_p.dtype)
    loss = _path_loss(log_p, weights, target, tree)
    return loss + _off_path_divergence(log_p, target, tree) if soft_off_path else loss


def hierarchical_cross_entropy(
    leaf_logits: Tensor, target: Tensor, tree: TreeIndex, *, alpha: float, normalize: bool = False
) -> Tensor:
    """HXE (Bertinetto et al.) on a flat softmax (..., K): `-sum exp(-alpha depth) log p(node | parent)` along the path.

    Node probabilities are sums over leaves, taken in log space; the depth is that of an edge's lower node, the root having
    depth 0. Alpha 0 is cross entropy. `normalize` divides the weights by their sum over all nodes, the root included, as
    the authors' code does.
    """
    subtree = subtree_logsumexp(leaf_logits, tree)
    log_p = subtree[..., 1:] - take(subtree, tree.parent)
    weights = torch.exp(-alpha * tree.lengths.to(log_p.dtype))
    weights = weights / weights.sum() if normalize else weights
    return _path_loss(log_p, weights[1:], target, tree)


def _path_loss(log_p: Tensor, edge_weight: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """`-sum w_j log p_j` over the nodes j on the way to the target; `edge_weight` (N - 1,)."""
    if is_soft(target):
        return -(target * take(path_sum(edge_weight * log_p, tree), tree.leaves - 1)).sum(-1)
    columns = tree.paths[target]
    weight = edge_weight[columns] * (_steps(tree) < tree.lengths[target].unsqueeze(-1))
    return -(weight * log_p.gather(-1, columns)).sum(-1)


def _marked_path_loss(log_p: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """`-sum_j s_j log p_j` where the target and all above it are marked."""
    if is_soft(target):  # s_j counts the nodes on the path whose own paths hold j: a path sum of path sums
        return -(target * take(path_sum(path_sum(log_p, tree), tree), tree.leaves - 1)).sum(-1)
    marked = (tree.lengths[target].unsqueeze(-1) - _steps(tree)).clamp_min(0)
    return -(marked * log_p.gather(-1, tree.paths[target])).sum(-1)


def _inner_mass(log_p: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """The second sum of 002 Eq. 2, without what lies below the target and without the root's constant 1.

    Over the whole tree it is the expected depth of the leaf less a constant, so it has a gradient only where leaves lie at
    different depths. Without the root a flat tree gives cross entropy.
    """
    mass = take(path_sum(log_p, tree), tree.inner - 1).exp()
    if is_soft(target):
        return mass.sum(-1) * target.sum(-1)
    unknown = below(target, tree.inner, tree) & (tree.inner != target.unsqueeze(-1))
    return mass.masked_fill(unknown, 0).sum(-1)


def _off_path_divergence(log_p: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """`sum KL(uniform || p_i) / depth(i)` over the inner nodes i off the way to the target and not below it."""
    size = tree.group_size.to(log_p.dtype)
    divergence = (-size.log() - sibling_sums(log_p, tree) / size) / (tree.lengths[tree.group_parent] + 1)
    if is_soft(target):
        on_path = take(path_sum(take(divergence, tree.group), tree), tree.leaves - 1)
        return (target * (divergence.sum(-1, keepdim=True) - on_path)).sum(-1)
    known = above(target, tree.group_parent, tree) | below(target, tree.group_parent, tree)
    return divergence.masked_fill(known, 0).sum(-1)


def _steps(tree: TreeIndex) -> Tensor:
    return torch.arange(tree.paths.shape[-1], device=tree.paths.device)
