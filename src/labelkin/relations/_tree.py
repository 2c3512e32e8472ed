"""Kin by a tree: the lower two classes meet, the closer they are."""

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
    """`exp(-beta d(i, j) / max d)` for every other class, each row divided by its sum.

    A large `beta` leaves the nearest classes alone, 0 makes all others equal; 10 is ours (in a tree of height 5, a
    class counts about a seventh of one that is a level nearer). `distance` is one of `taxonomy.distance`'s kinds;
    classes come in the order of the taxonomy's leaves.

    Returns (K, K) float64, entries in [0, 1], zero diagonal; with `structured=True` the same as `TreeRows`, which holds
    the tree alone. No class is isolated: the farthest too gets its share.

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
    """The soft labels of Bertinetto et al. (2020, "Making Better Mistakes", Eq. 5): targets themselves, not a relation.

    `exp(-beta d(i, j) / max d)` over all classes, the class itself included (d = 0), each row divided by its sum. They
    use the height of the deepest common ancestor and `beta` from 4 (soft) to 30 (nearly one-hot); it must be above 0.

    Returns (K, K) float64, entries in [0, 1], rows that sum to 1, the largest on the diagonal; with `structured=True`
    the same as `TreeRows`. No row is zero.

    Example:
        >>> from labelkin import Taxonomy, relations
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> relations.tree_targets(tree, beta=4.0)[0]
        tensor([0.8668, 0.1173, 0.0159], dtype=torch.float64)
    """
    check_number("beta", beta, low=0, open_low=True)
    rows = TreeRows(taxonomy, beta=beta, distance=distance, keep_diagonal=True)
    return rows if structured else rows.dense()
