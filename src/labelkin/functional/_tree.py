"""Operations on trees: sibling softmax, sums along paths, probabilities of nodes; no table has N x N entries.

Node values are `(..., N - 1)`, one for each non-root node in the order of `taxonomy.names[1:]`: node `i` has column `i - 1`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.structure import Taxonomy, subtree_sizes

Ints = npt.NDArray[np.int64]


class TreeIndex(NamedTuple):
    """The index arrays of a taxonomy as tensors, for the functions of this package.

    Siblings are packed into a few blocks. Each block contains groups of similar size, padded to the next power of two, so that
    one dense softmax serves many groups and all blocks together have at most twice as many entries as nodes.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import tree_index
        >>> tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"])).leaves
        tensor([3, 4, 2])
    """

    blocks: tuple[Tensor, ...]  # each (groups, width): columns of siblings, padded with N - 1
    block_place: Tensor  # (N - 1,): the position of each column in the flattened blocks
    group_parent: Tensor  # (groups,): the node above each group, in the blocks' order
    group_size: Tensor  # (groups,): the number of siblings in each group
    group: Tensor  # (N - 1,): the group each column's node belongs to
    inner: Tensor  # the inner nodes without the root
    jumps: tuple[Tensor, ...]  # each (N,): columns 1, 2, 4, ... steps up; N - 1 stands for the root
    lengths: Tensor  # (N,): the depth of each node, which is the number of columns on its path
    parent: Tensor  # (N - 1,): the node above each column's node
    leaves: Tensor  # (K,): the nodes of the classes, in class order
    leaf_class: Tensor  # (N,): the class of each leaf, -1 for inner nodes
    enter: Tensor  # (N,): preorder number
    leave: Tensor  # (N,): preorder number after the last node below
    merges: tuple[tuple[Tensor, ...], ...]  # per level from the bottom: positions of children in the growing list
    merge_place: Tensor  # (N,): the position of each node in the complete list
    heights: Tensor  # (N,): the number of edges from each node down to the deepest leaf below it


def tree_index(taxonomy: Taxonomy) -> TreeIndex:
    """Build the index arrays of a taxonomy, on the CPU.

    Args:
        taxonomy: the tree of the classes.

    Returns:
        The index arrays; their memory grows linearly with the number of nodes.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import tree_index
        >>> tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"])).lengths  # root, pet, car, cat, dog
        tensor([0, 1, 1, 2, 2])
    """
    nodes = len(taxonomy)
    groups = [children - 1 for children in taxonomy.children if len(children)]
    order, blocks = _packed(groups, pad=nodes - 1)
    group_parent = np.flatnonzero(~taxonomy.is_leaf)[order]
    group_at = np.empty(nodes, dtype=np.int64)
    group_at[group_parent] = np.arange(len(group_parent))
    leaf_class = np.full(nodes, -1, dtype=np.int64)
    leaf_class[taxonomy.leaves] = np.arange(len(taxonomy.leaves))
    enter = taxonomy.preorder.copy()
    leave = enter + subtree_sizes(taxonomy.parents)
    merges, merge_place = _merges(taxonomy)
    return TreeIndex(
        blocks=tuple(torch.from_numpy(block) for block in blocks),
        block_place=torch.from_numpy(_places(blocks, nodes - 1)),
        group_parent=torch.from_numpy(group_parent),
        group_size=torch.tensor([len(groups[i]) for i in order]),
        group=torch.from_numpy(group_at[taxonomy.parents[1:]]),
        inner=torch.from_numpy(np.flatnonzero(~taxonomy.is_leaf)[1:]),
        jumps=tuple(torch.from_numpy(jump) for jump in _jumps(taxonomy)),
        lengths=torch.from_numpy(taxonomy.depth.copy()),
        parent=torch.from_numpy(taxonomy.parents[1:].copy()),
        leaves=torch.from_numpy(taxonomy.leaves.copy()),
        leaf_class=torch.from_numpy(leaf_class),
        enter=torch.from_numpy(enter),
        leave=torch.from_numpy(leave),
        merges=merges,
        merge_place=merge_place,
        heights=torch.from_numpy(taxonomy.height.copy()),
    )


def take(values: Tensor, columns: Tensor) -> Tensor:
    """Return `values[..., columns]` for columns of any shape by `gather`, whose backward pass is twice as fast as indexing."""
    flat = values.gather(-1, columns.reshape(-1).expand(*values.shape[:-1], -1))
    return flat.reshape(*values.shape[:-1], *columns.shape)


def sibling_log_softmax(logits: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the log-probability of each node given its parent: a log-softmax over each set of siblings.

    Args:
        logits: (..., N - 1) one logit for each non-root node.
        tree: The index arrays of the taxonomy, from `tree_index`.

    Returns:
        (..., N - 1) log-probabilities.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import sibling_log_softmax, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> sibling_log_softmax(torch.zeros(4), tree).exp()
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    padded = F.pad(logits, (0, 1), value=float("-inf"))
    parts = [F.log_softmax(take(padded, block), -1).flatten(-2) for block in tree.blocks]
    return take(torch.cat(parts, -1), tree.block_place)


def sibling_sums(values: Tensor, tree: TreeIndex) -> Tensor:
    """Return the sum over each set of siblings (..., groups), in the order of `tree.group_parent`."""
    padded = F.pad(values, (0, 1))
    return torch.cat([take(padded, block).sum(-1) for block in tree.blocks], -1)


def path_sum(values: Tensor, tree: TreeIndex) -> Tensor:
    """Compute for each node the sum of values along its path, in log2(depth) steps.

    Args:
        values: (..., N - 1) one value for each non-root node.
        tree: The index arrays of the taxonomy, from `tree_index`.

    Returns:
        (..., N - 1) sums over the node and its ancestors without the root.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import path_sum, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> path_sum(torch.tensor([1.0, 2.0, 10.0, 20.0]), tree)  # pet, car, cat, dog
        tensor([ 1.,  2., 11., 21.])
    """
    total = F.pad(values, (0, 1))
    for jump in tree.jumps:
        total = total + take(total, jump)
    return total[..., :-1]


def path_columns(nodes: Tensor, tree: TreeIndex) -> Tensor:
    """Return the columns on the path from the top to each node, (...,) to (..., L), padded with 0 after the node.

    L is a power of two, at least the depth of the tree. A row has `tree.lengths[nodes]` columns. The table grows by doubling:
    each step appends the ancestors `2**i` steps above the nodes that are already in it.
    """
    root = tree.parent.shape[0]
    upward = torch.where(nodes > 0, nodes - 1, root).unsqueeze(-1)  # the node, its parent, ...
    for jump in tree.jumps:
        upward = torch.cat([upward, jump[upward]], -1)
    steps = torch.arange(upward.shape[-1], device=nodes.device)
    place = tree.lengths[nodes].unsqueeze(-1) - 1 - steps
    return torch.where(place >= 0, upward.gather(-1, place.clamp_min(0)), 0)


def node_log_probs(logits: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the log-probability of each non-root node: the sum of `log p` along its path (002 Sec. 3.1).

    Args:
        logits: (..., N - 1) one logit for each non-root node.
        tree: The index arrays of the taxonomy, from `tree_index`.

    Returns:
        (..., N - 1) log-probabilities.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import node_log_probs, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> node_log_probs(torch.zeros(4), tree).exp()
        tensor([0.5000, 0.5000, 0.2500, 0.2500])
    """
    return path_sum(sibling_log_softmax(logits, tree), tree)


def subtree_logsumexp(leaf_logits: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the log of the summed exponentials of the leaves below each node, from the bottom up.

    Args:
        leaf_logits: (..., K) one logit for each class.
        tree: The index arrays of the taxonomy, from `tree_index`.

    Returns:
        (..., N) one value for each node, with the root first.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import subtree_logsumexp, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> subtree_logsumexp(torch.zeros(3), tree).exp()
        tensor([3., 2., 1., 1., 1.])
    """
    values = F.pad(leaf_logits, (1, 0), value=float("-inf"))
    for level in tree.merges:
        values = torch.cat([values, *(take(values, children).logsumexp(-1) for children in level)], -1)
    return take(values, tree.merge_place)


def below(nodes: Tensor, others: Tensor, tree: TreeIndex) -> Tensor:
    """Return a mask (..., M): whether each of `others` (M,) is at or below each sample's node (...,)."""
    start, end = tree.enter[nodes].unsqueeze(-1), tree.leave[nodes].unsqueeze(-1)
    place = tree.enter[others]
    return (place >= start) & (place < end)


def above(nodes: Tensor, others: Tensor, tree: TreeIndex) -> Tensor:
    """Return a mask (..., M): whether each of `others` (M,) is at or above each sample's node (...,)."""
    place = tree.enter[nodes].unsqueeze(-1)
    return (tree.enter[others] <= place) & (place < tree.leave[others])


def _packed(groups: list[Ints], pad: int) -> tuple[Ints, list[Ints]]:
    """Sort groups into blocks by the next power of two of their size; return their order in the blocks, and the blocks."""
    widths = np.array([1 << (len(group) - 1).bit_length() for group in groups])
    order = np.argsort(widths, kind="stable")
    blocks = []
    for width in np.unique(widths):
        chosen = [groups[i] for i in order if widths[i] == width]
        block = np.full((len(chosen), max(len(group) for group in chosen)), pad, dtype=np.int64)
        for row, group in zip(block, chosen, strict=True):
            row[: len(group)] = group
        blocks.append(block)
    return order, blocks


def _places(blocks: list[Ints], columns: int) -> Ints:
    flat = np.concatenate([block.reshape(-1) for block in blocks])
    place = np.empty(columns, dtype=np.int64)
    filled = flat < columns
    place[flat[filled]] = np.flatnonzero(filled)
    return place


def _jumps(taxonomy: Taxonomy) -> list[Ints]:
    root = len(taxonomy) - 1  # the extra column that stands for the root
    up = np.append(taxonomy.parents[1:] - 1, root)
    up[up < 0] = root
    jumps = []
    while (up < root).any():
        jumps.append(up)
        up = up[up]
    return jumps


def _merges(taxonomy: Taxonomy) -> tuple[tuple[tuple[Tensor, ...], ...], Tensor]:
    place = np.zeros(len(taxonomy), dtype=np.int64)  # position 0 is the padding, -inf
    place[taxonomy.leaves] = np.arange(1, len(taxonomy.leaves) + 1)
    filled = len(taxonomy.leaves) + 1
    merges = []
    for height in range(1, int(taxonomy.height.max()) + 1):
        parents = np.flatnonzero(taxonomy.height == height)
        order, blocks = _packed([place[taxonomy.children[parent]] for parent in parents], pad=0)
        merges.append(tuple(torch.from_numpy(block) for block in blocks))
        place[parents[order]] = np.arange(filled, filled + len(parents))
        filled += len(parents)
    return tuple(merges), torch.from_numpy(place)
