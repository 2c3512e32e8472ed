"""Class similarity from a tree: the deeper the lowest common ancestor, the more similar two classes are."""

from typing import Literal, overload

from torch import Tensor

from labelkin._checks import check_number
from labelkin.relations._structured import TreeRows
from labelkin.structure import DistanceKind, Taxonomy


@overload
def tree(
    taxonomy: Taxonomy, *, beta: float = 10.0, distance: DistanceKind = "height", structured: Literal[False] = False
) -> Tensor: ...
@overload
def tree(
    taxonomy: Taxonomy, *, beta: float = 10.0, distance: DistanceKind = "height", structured: Literal[True]
) -> TreeRows: ...
def tree(
    taxonomy: Taxonomy, *, beta: float = 10.0, distance: DistanceKind = "height", structured: bool = False
) -> Tensor | TreeRows:
    """Compute the relation `exp(-beta d(i, j) / max d)` of distances in a tree, with rows divided by their sums.

    Args:
        taxonomy: The tree; classes are in its class order.
        beta: How fast similarity falls with distance. A large `beta` leaves only the nearest classes, and 0 makes all others
            equal. The default, 10, is our choice: in a tree of height 5, one more level divides the weight by about 7.
        distance: The kind of distance; see `Taxonomy.distance`.
        structured: Return `TreeRows`, which stores the tree, instead of the matrix.

    Returns:
        (K, K) float64 relation, without isolated classes. Or the same as `TreeRows`.

    Example:
        >>> from labelkin import Taxonomy, relations
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> relations.tree(tree, beta=2.0)[0]
        tensor([0.0000, 0.7311, 0.2689], dtype=torch.float64)
    """
    rows = TreeRows(taxonomy, beta=beta, distance=distance)
    return rows if structured else rows.dense()


@overload
def tree_targets(
    taxonomy: Taxonomy, *, beta: float, distance: DistanceKind = "height", structured: Literal[False] = False
) -> Tensor: ...
@overload
def tree_targets(
    taxonomy: Taxonomy, *, beta: float, distance: DistanceKind = "height", structured: Literal[True]
) -> TreeRows: ...
def tree_targets(
    taxonomy: Taxonomy, *, beta: float, distance: DistanceKind = "height", structured: bool = False
) -> Tensor | TreeRows:
    """Compute the soft labels of Bertinetto et al. (2020, "Making Better Mistakes", Eq. 5): targets, not a relation.

    They are `exp(-beta d(i, j) / max d)` over all classes including the class itself, with rows divided by their sums.

    Args:
        taxonomy: The tree; classes are in its class order.
        beta: How fast weights fall with distance, above 0. The authors use 4 (soft) to 30 (nearly one-hot).
        distance: The kind of distance; see `Taxonomy.distance`.
        structured: Return `TreeRows`, which stores the tree, instead of the matrix.

    Returns:
        (K, K) float64 targets whose rows sum to 1, with the largest entry on the diagonal. Or the same as `TreeRows`.

    Example:
        >>> from labelkin import Taxonomy, relations
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> relations.tree_targets(tree, beta=4.0)[0]
        tensor([0.8668, 0.1173, 0.0159], dtype=torch.float64)
    """
    check_number("beta", beta, low=0, open_low=True)
    rows = TreeRows(taxonomy, beta=beta, distance=distance, keep_diagonal=True)
    return rows if structured else rows.dense()
