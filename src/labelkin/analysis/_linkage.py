"""Build a tree and an order of the classes from class distances."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from labelkin._checks import InputError, check_names, plain_names
from labelkin.relations import check_not_negative, check_zero_diagonal, read_square
from labelkin.structure import Taxonomy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def linkage_table(distances: Any) -> Floats:
    """Cluster classes by average linkage, in scipy's format, from which a dendrogram is drawn.

    Siblings are ordered so that neighboring classes are as close as the tree allows; heights are in the third column.

    Args:
        distances: Symmetric distances, (K, K).

    Returns:
        The linkage, (K-1, 4).

    Example:
        >>> from labelkin.analysis import linkage_table
        >>> linkage_table([[0, 1, 4], [1, 0, 4], [4, 4, 0]])[:, 2].tolist()
        [1.0, 4.0]
    """
    pairs = condensed(distances)
    return np.asarray(optimal_leaf_ordering(linkage(pairs, "average"), pairs), dtype=np.float64)


def linkage_tree(distances: Any, names: Sequence[str]) -> Taxonomy:
    """Build the binary tree of average linkage (000 Sec. 3.2).

    Inner nodes are node1, node2, ... from the nearest pair on. The tree has no heights; use `linkage_table` for them.

    Args:
        distances: Symmetric distances, (K, K).
        names: Names of the classes.

    Returns:
        The tree, classes in the order of `names`.

    Example:
        >>> from labelkin.analysis import linkage_tree
        >>> linkage_tree([[0, 1, 4], [1, 0, 4], [4, 4, 0]], ["cat", "dog", "car"]).classes
        ('cat', 'dog', 'car')
    """
    pairs = condensed(distances)
    names = plain_names(names)
    check_names("names", names, least=2)
    return Taxonomy.from_linkage(linkage(pairs, "average"), names)


def leaf_order(distances: Any) -> Ints:
    """Order the classes so that the tree is kept and the sum of distances between neighbors is minimal.

    Rows and columns of a heat map in this order show groups as blocks along the diagonal.

    Args:
        distances: Symmetric distances, (K, K).

    Returns:
        Class positions from left to right, (K,).

    Example:
        >>> from labelkin.analysis import leaf_order
        >>> sorted(leaf_order([[0, 1, 4], [1, 0, 4], [4, 4, 0]]).tolist())
        [0, 1, 2]
    """
    return leaves_list(linkage_table(distances)).astype(np.int64)


def condensed(distances: Any) -> Floats:
    """Return the K(K-1)/2 pairs as scipy expects them; raise unless the matrix has symmetric distances and a zero diagonal."""
    given = read_square("distances", distances).double().cpu()
    check_not_negative("distances", given)
    if given.diagonal().any():
        check_zero_diagonal("distances", given)
    slack = 1e-9 * float(given.max())
    if (given - given.T).abs().max() > slack:
        place = (given - given.T).abs().argmax().item()
        i, j = divmod(int(place), len(given))
        raise InputError(
            f"distances: expected a symmetric matrix, got {given[i, j].item():.6g} from class {i} to {j} and "
            f"{given[j, i].item():.6g} back."
        )
    return np.asarray(squareform(((given + given.T) / 2).numpy(), checks=False), dtype=np.float64)
