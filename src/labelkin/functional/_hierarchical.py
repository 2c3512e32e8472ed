"""Losses on a tree (002; Redmon & Farhadi; Bertinetto et al.), one loss per sample.

A `target` holds the known node of each sample (...,): a leaf, or an inner node if the class is unknown; nodes below it
contribute nothing. It may also hold class probabilities (..., K), for which the loss is the expected one.

`log_p` (..., N - 1) is each node's log-probability given its parent. As in 002, the root has depth 1; only HXE counts
from 0. A logit of -inf, or of the smallest finite number, masks its node or class: off the target's path it contributes
nothing, on the path it makes the loss infinite.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional import _kernels as kernels
from labelkin.functional._cross_entropy import expected, is_masked, is_soft
from labelkin.functional._tree import (
    TreeIndex,
    above,
    below,
    path_columns,
    path_sum,
    sibling_log_softmax,
    sibling_sums,
    subtree_logsumexp,
    take,
)


def conditional_softmax(logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the negative log-likelihood of the target's node, `-sum log p_j` along its path (Redmon & Farhadi).

    Args:
        logits: (..., N - 1) one logit for each non-root node, in the order of `taxonomy.names[1:]`.
        target: known nodes (...,) or class probabilities (..., K).
        tree: the index arrays of the taxonomy, from `tree_index`.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import conditional_softmax, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> conditional_softmax(torch.zeros(1, 4), tree.leaves[:1], tree)  # log 2 for pet, log 2 for cat
        tensor([1.3863])
    """
    if kernels.fits(logits, target, tree):
        return kernels.conditional_softmax(logits, target, tree)
    log_p = open_log_softmax(logits, tree)
    return _path_loss(log_p, torch.ones_like(tree.parent, dtype=log_p.dtype), target, tree)


def hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex, *, targets: str = "path") -> Tensor:
    """Compute the hierarchical loss `-sum_j s_j log p_j + sum_i prob_i` over inner, non-root i (002 Eq. 2-3).

    `s_j` is the number of marked nodes at or below node j.

    Args:
        logits: (..., N - 1) one logit for each non-root node, in the order of `taxonomy.names[1:]`.
        target: known nodes (...,) or class probabilities (..., K).
        tree: the index arrays of the taxonomy, from `tree_index`.
        targets: `"path"` marks the leaf and all its ancestors, so coarse edges weigh more; `"leaf"` marks only the leaf.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import hierarchical, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> hierarchical(torch.zeros(1, 4), tree.leaves[:1], tree)  # 2 log 2 + log 2, and 0.5 for pet
        tensor([2.5794])
    """
    if kernels.fits_hierarchical(logits, target, tree):
        return kernels.hierarchical(logits, target, tree, targets=targets)
    log_p = open_log_softmax(logits, tree)
    mass = _inner_mass(log_p, target, tree)
    if targets == "path":
        return _marked_path_loss(log_p, target, tree) + mass
    return _path_loss(log_p, torch.ones_like(tree.parent, dtype=log_p.dtype), target, tree) + mass


def convex_hierarchical(logits: Tensor, target: Tensor, tree: TreeIndex, *, soft_off_path: bool = False) -> Tensor:
    """Compute the convex hierarchical loss `sum KL(q_i || p_i) / depth(i)` over inner nodes i (002 Eq. 4).

    On the path a term is `-log p_child / depth(parent)`. The minus sign printed in Eq. 4 is an error.

    Args:
        logits: (..., N - 1) one logit for each non-root node, in the order of `taxonomy.names[1:]`.
        target: known nodes (...,) or class probabilities (..., K).
        tree: the index arrays of the taxonomy, from `tree_index`.
        soft_off_path: off the path, use a uniform q over the children that are not masked (Sec. 5.4) instead of nothing.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import convex_hierarchical, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> convex_hierarchical(torch.zeros(1, 4), tree.leaves[:1], tree)  # log 2 + (log 2) / 2
        tensor([1.0397])
    """
    if not soft_off_path and kernels.fits(logits, target, tree):
        return kernels.convex_hierarchical(logits, target, tree)
    log_p = open_log_softmax(logits, tree)
    weights = 1 / (tree.lengths[tree.parent] + 1).to(log_p.dtype)
    loss = _path_loss(log_p, weights, target, tree)
    return loss + _off_path_divergence(log_p, target, tree) if soft_off_path else loss


def hierarchical_cross_entropy(
    leaf_logits: Tensor, target: Tensor, tree: TreeIndex, *, alpha: float, normalize: bool = False
) -> Tensor:
    """Compute HXE, `-sum exp(-alpha depth) log p(node | parent)` along the path (Bertinetto et al.).

    Node probabilities are sums over the leaves of a flat softmax, taken in log space. The depth is that of an edge's lower
    node, the root having depth 0.

    Args:
        leaf_logits: (..., K) one logit for each class.
        target: known nodes (...,) or class probabilities (..., K).
        tree: the index arrays of the taxonomy, from `tree_index`.
        alpha: how fast weights fall with depth, at least 0; 0 gives cross entropy.
        normalize: divide the weights by their sum over all nodes, the root included, as the authors' code does.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import hierarchical_cross_entropy, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> hierarchical_cross_entropy(torch.zeros(1, 3), tree.leaves[:1], tree, alpha=0.0)  # log 3
        tensor([1.0986])
    """
    if kernels.fits(leaf_logits, target, tree):
        return kernels.hierarchical_cross_entropy(leaf_logits, target, tree, alpha=alpha, normalize=normalize)
    subtree = open_subtree_logsumexp(leaf_logits, tree)
    above_it = take(subtree, tree.parent)
    log_p = subtree[..., 1:] - above_it.masked_fill(is_masked(above_it), 0)  # a masked node stays masked below itself
    weights = torch.exp(-alpha * tree.lengths.to(log_p.dtype))
    weights = weights / weights.sum() if normalize else weights
    return _path_loss(log_p, weights[1:], target, tree)


def ancestors(leaf_logits: Tensor, target: Tensor, tree: TreeIndex, *, weight: float) -> Tensor:
    """Compute the ancestors term, `weight` times the sum of `-log P(a)` over the inner, non-root nodes a above the class.

    P(a) is the sum of a flat softmax over the leaves below a. The term is added to a loss on the classes. Added to cross
    entropy it weighs `-log p(node | parent)` along the path by 1 plus `weight` times the number of inner, non-root nodes of
    the path at or below that node.

    A target that is an inner node is known down to that node, so the sum runs over the node itself and the non-root nodes
    above it. For a leaf it runs only over the nodes above, because the loss on the classes already includes the leaf.

    Args:
        leaf_logits: (..., K) one logit for each class.
        target: known nodes (...,) or class probabilities (..., K), for which the term is the expected one.
        tree: the index arrays of the taxonomy, from `tree_index`.
        weight: the factor of the sum, at least 0; 0 gives 0.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import ancestors, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> ancestors(torch.zeros(1, 3), tree.leaves[:1], tree, weight=1.0)  # log 3/2 for pet
        tensor([0.4055])
    """
    if is_soft(target):
        parents = tree.parent[tree.leaves - 1]
        sums = F.pad(path_sum(_subtree_log_probs(leaf_logits, tree), tree), (1, 0))  # 0 for the root
        return weight * expected(-take(sums, parents), target)
    inner = torch.where(tree.leaf_class[target] < 0, target, F.pad(tree.parent, (1, 0))[target])
    if kernels.fits(leaf_logits, target, tree):
        return kernels.ancestors(leaf_logits, inner, tree, weight=weight, base=weight)
    ones = torch.ones_like(tree.parent, dtype=leaf_logits.dtype)
    return weight * _path_loss(_subtree_log_probs(leaf_logits, tree), ones, inner, tree)


def expected_distance(leaf_logits: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the expected tree distance of the prediction to the class, `sum_j p_j d(y, j)`, without K x K distances.

    p is a flat softmax and d the height of the lowest common ancestor, as in mistake severity. The sum telescopes along the
    path of y: `sum_v (height(parent of v) - height(v)) (1 - P(v))` over its non-root nodes v, where P(v) is the summed
    softmax of the leaves below v. On a flat tree it is `1 - p_y`.

    A target that is an inner node counts every class below it as right, so that its own height is left out of the sum.

    Args:
        leaf_logits: (..., K) one logit for each class.
        target: known nodes (...,) or class probabilities (..., K), for which the distance is the expected one.
        tree: the index arrays of the taxonomy, from `tree_index`.

    Returns:
        (...,) one distance per sample.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import expected_distance, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> expected_distance(torch.zeros(1, 3), tree.leaves[:1], tree)  # 1/3 for dog, 2/3 for car
        tensor([1.])
    """
    missed = -torch.expm1(_subtree_log_probs(leaf_logits, tree))  # 1 - P
    heights = tree.heights.to(missed.dtype)
    above_it = heights[tree.parent]
    if is_soft(target):
        return expected(take(path_sum((above_it - heights[1:]) * missed, tree), tree.leaves - 1), target)
    columns = path_columns(target, tree)
    own = heights[1:][columns].masked_fill(columns == target.unsqueeze(-1) - 1, 0)
    return (
        ((above_it[columns] - own) * missed.gather(-1, columns))
        .masked_fill(_off_path(columns, target, tree), 0)
        .sum(-1)
    )


def open_log_softmax(logits: Tensor, tree: TreeIndex) -> Tensor:
    """Compute `log p` (..., N - 1) of every node given its parent; -inf for masked nodes.

    Where all siblings are masked, a softmax over them would be NaN and so would its gradient; here they are -inf.
    """
    log_p = sibling_log_softmax(_floored(logits), tree)
    return log_p.masked_fill(is_masked(logits), -torch.inf)


def open_subtree_logsumexp(leaf_logits: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the log of the summed exponentials below every node (..., N); -inf where all leaves are masked."""
    subtree = subtree_logsumexp(_floored(leaf_logits), tree)
    return subtree.masked_fill(subtree < _floor(subtree) / 2, -torch.inf)


def _subtree_log_probs(leaf_logits: Tensor, tree: TreeIndex) -> Tensor:
    """Compute `log P` (..., N - 1) of every non-root node, the log of the summed softmax over its leaves."""
    subtree = open_subtree_logsumexp(leaf_logits, tree)
    return subtree[..., 1:] - subtree[..., :1].masked_fill(is_masked(subtree[..., :1]), 0)


def _floored(logits: Tensor) -> Tensor:
    """Raise masked logits to a finite number so low that their probability is 0; no gradient reaches them."""
    return logits.masked_fill(is_masked(logits), _floor(logits))


def _floor(values: Tensor) -> float:
    return torch.finfo(values.dtype).min / 2**32


def _path_loss(log_p: Tensor, edge_weight: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Compute `-sum w_j log p_j` over the nodes j on the target's path; `edge_weight` is (N - 1,)."""
    if is_soft(target):
        return expected(-take(path_sum(edge_weight * log_p, tree), tree.leaves - 1), target)
    columns = path_columns(target, tree)
    open_path = log_p.gather(-1, columns).masked_fill(_off_path(columns, target, tree), 0)
    return -(edge_weight[columns] * open_path).sum(-1)


def _marked_path_loss(log_p: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Compute `-sum_j s_j log p_j` where the target and all its ancestors are marked."""
    if is_soft(target):  # s_j is the number of path nodes at or below j: a path sum of path sums
        return expected(-take(path_sum(path_sum(log_p, tree), tree), tree.leaves - 1), target)
    columns = path_columns(target, tree)
    marked = (tree.lengths[target].unsqueeze(-1) - _steps(columns)).clamp_min(0)
    return -(marked * log_p.gather(-1, columns).masked_fill(marked == 0, 0)).sum(-1)


def _inner_mass(log_p: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the second sum of 002 Eq. 2, without the nodes below the target and without the root's constant 1.

    Over the whole tree it is the expected depth of the leaf minus a constant, so it has a gradient only if leaves have
    different depths. Without the root a flat tree gives cross entropy.
    """
    mass = take(path_sum(log_p, tree), tree.inner - 1).exp()
    if is_soft(target):
        return mass.sum(-1) * target.sum(-1)
    unknown = below(target, tree.inner, tree) & (tree.inner != target.unsqueeze(-1))
    return mass.masked_fill(unknown, 0).sum(-1)


def _off_path_divergence(log_p: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Compute `sum KL(uniform || p_i) / depth(i)` over inner nodes i that are neither on the target's path nor below it."""
    masked = is_masked(log_p)
    size = sibling_sums((~masked).to(log_p.dtype), tree).clamp_min(1)
    sums = sibling_sums(log_p.masked_fill(masked, 0), tree)
    divergence = (-size.log() - sums / size) / (tree.lengths[tree.group_parent] + 1)
    if is_soft(target):
        on_path = take(path_sum(take(divergence, tree.group), tree), tree.leaves - 1)
        return (target * (divergence.sum(-1, keepdim=True) - on_path)).sum(-1)
    known = above(target, tree.group_parent, tree) | below(target, tree.group_parent, tree)
    return divergence.masked_fill(known, 0).sum(-1)


def _off_path(columns: Tensor, target: Tensor, tree: TreeIndex) -> Tensor:
    """Return a mask of the padding in `path_columns`, whose values come from column 0, which may be masked."""
    return _steps(columns) >= tree.lengths[target].unsqueeze(-1)


def _steps(columns: Tensor) -> Tensor:
    return torch.arange(columns.shape[-1], device=columns.device)
