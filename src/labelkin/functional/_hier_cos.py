"""Hier-COS (Sani & Anand, 2026): each class is the subspace that the orthogonal axes of the nodes on its path span."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional._cross_entropy import is_soft, weighted_sum
from labelkin.functional._tree import TreeIndex, path_columns, path_sum, take

SMALLEST = 1e-24  # of a sum of squares, below which its root has no useful gradient


class SubspaceTerms(NamedTuple):
    """The two losses (...,) of Hier-COS.

    Example:
        >>> import torch
        >>> from labelkin.functional import SubspaceTerms
        >>> SubspaceTerms(divergence=torch.zeros(2), levels=torch.ones(2)).levels
        tensor([1., 1.])
    """

    divergence: Tensor  # Kullback-Leibler divergence of the softmax of |z| from the weights of the path
    levels: Tensor  # distances of the levels' directions from the true nodes


def subspace_scores(z: Tensor, tree: TreeIndex) -> Tensor:
    """Compute the length of the projection of z on the subspace of each class, `sqrt(sum of z_n^2 over its path)` (Hier-COS).

    Args:
        z: (..., N - 1) one coordinate for each non-root node.
        tree: the index arrays of the taxonomy, from `tree_index`.

    Returns:
        (..., K) lengths; the longest is the prediction.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import subspace_scores, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> subspace_scores(torch.tensor([4.0, 1.0, 3.0, 0.0]), tree)  # pet, car, cat, dog
        tensor([5., 4., 1.])
    """
    squares = take(path_sum(z.square(), tree), tree.leaves - 1)
    return squares.clamp_min(SMALLEST).sqrt()


def path_weights(lengths: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Return the normalized weights (..., width) of the nodes on a path, `exp(2 / (h + 1 - l))` for level l of h."""
    left = lengths.unsqueeze(-1) - torch.arange(width, device=lengths.device)
    weights = torch.where(left > 0, torch.exp(2 / left.clamp_min(1).to(dtype)), 0.0)
    return weights / weights.sum(-1, keepdim=True)


def subspace_terms(z: Tensor, target: Tensor, tree: TreeIndex) -> SubspaceTerms:
    """Compute the two losses of Hier-COS.

    The first is `KL(t_y || softmax|z|)`, where t_y lies on the path of the class, level l of h weighted by
    `exp(2 / (h + 1 - l))`. The second is the sum over levels of `|| e_l - |z_l| / ||z_l||_2 ||_1`, where e_l marks the true
    node of level l and z_l are the coordinates of its nodes; at levels below the leaf of the class it is the sum of |z_l|.

    Args:
        z: (..., N - 1) one coordinate for each non-root node.
        target: class positions (...,) or class probabilities (..., K).
        tree: the index arrays of the taxonomy, from `tree_index`.

    Returns:
        `SubspaceTerms` with one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy
        >>> from labelkin.functional import subspace_terms, tree_index
        >>> tree = tree_index(Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]))
        >>> z = torch.tensor([[5.0, 0.0, 9.0, 0.0]])  # the directions of both levels are those of a cat
        >>> subspace_terms(z, torch.tensor([0]), tree).levels
        tensor([0.])
    """
    size = z.abs()
    leaves = tree.leaves if is_soft(target) else tree.leaves[target]
    lengths, paths = tree.lengths[leaves], path_columns(leaves, tree)
    weights = path_weights(lengths, paths.shape[-1], z.dtype)
    on_path = weights > 0

    def along(values: Tensor) -> Tensor:
        """Return the values on the paths: of all classes, or of the class of each sample."""
        return take(values, paths) if is_soft(target) else values.gather(-1, paths)

    entropy = torch.xlogy(weights, weights).sum(-1)
    divergence = entropy - (weights * along(F.log_softmax(size, -1))).sum(-1)

    level = tree.lengths[1:] - 1
    empty = z.new_zeros(*z.shape[:-1], paths.shape[-1])
    norms = empty.index_add(-1, level, size.square()).clamp_min(SMALLEST).sqrt()
    directions = size / norms[..., level]
    sums, sizes = empty.index_add(-1, level, directions), empty.index_add(-1, level, size)
    if is_soft(target):
        sums, sizes = sums.unsqueeze(-2), sizes.unsqueeze(-2)
    # An entry of a direction is at most 1, so that the distance from e_l is 1 - u_y plus the sum of the others.
    found = torch.where(on_path, 1 + sums - 2 * along(directions), sizes).sum(-1)
    if not is_soft(target):
        return SubspaceTerms(divergence, found)
    return SubspaceTerms(weighted_sum(target, divergence), weighted_sum(target, found))
