"""Confusions of classes, their costs, and the disagreement of two runs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._arrays import class_positions
from labelkin._checks import InputError, check_count, check_names, plain_names
from labelkin.relations import check_not_negative, read_square
from labelkin.structure import Taxonomy


class Confusions(NamedTuple):
    """A confusion matrix in the order of the leaves of a tree, so that related classes are neighbors.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.analysis import confusion_matrix
        >>> tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "thing": ["car"]})
        >>> confusion_matrix([0, 1], [0, 0], taxonomy=tree).names
        ('cat', 'dog', 'car')
    """

    counts: Tensor  # (K, K) int64: rows true, columns predicted, both in this order
    order: Tensor  # (K,) the class position of each row
    names: tuple[str, ...]  # the class of each row


class Confusion(NamedTuple):
    """How often one class was predicted as another, and the cost: `cost = times * distance`.

    Example:
        >>> from labelkin.analysis import Confusion
        >>> Confusion("cat", "dog", times=3, distance=1.0, cost=3.0).cost
        3.0
    """

    true: str
    predicted: str
    times: int
    distance: float
    cost: float  # times x distance


class Costliest(NamedTuple):
    """The most expensive confusions, most expensive first, and the cost of all mistakes.

    Example:
        >>> from labelkin.analysis import costliest
        >>> costliest([1], [0], names=["cat", "dog"], distances=[[0, 2], [2, 0]]).total
        2.0
    """

    confusions: tuple[Confusion, ...]  # sorted by cost, highest first
    total: float  # the cost of all mistakes


class Disagreement(NamedTuple):
    """Two runs on the same samples: McNemar's counts, and how often the predicted classes differ.

    Example:
        >>> from labelkin.analysis import disagreement
        >>> found = disagreement([0, 1, 1], [0, 0, 1], [0, 1, 0], classes=2)
        >>> found.both_right, found.only_a, found.only_b, found.both_wrong
        (1, 1, 0, 1)
    """

    both_right: int
    only_a: int  # a is right, b is wrong
    only_b: int
    both_wrong: int
    different: int  # a and b predict different classes: only_a, only_b, and some of both_wrong
    by_class: Tensor  # (K, 5) int64: the same five for each true class


def confusion_matrix(predicted: Any, target: Any, *, taxonomy: Taxonomy, times: Any = None) -> Confusions:
    """Count (true, predicted) pairs, rows and columns in the order of the leaves of a tree, from left to right.

    Args:
        predicted: Predicted class positions, (n,).
        target: True class positions, (n,).
        taxonomy: Tree over the classes.
        times: How often each prediction occurred, (n,); once by default.

    Returns:
        The counts (rows are true classes), the class position of each row, and its name.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.analysis import confusion_matrix
        >>> tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "thing": ["car"]})
        >>> confusion_matrix([0, 1, 2], [0, 0, 2], taxonomy=tree).counts.tolist()
        [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    """
    size = len(taxonomy.leaves)
    found, true = _pair("predicted", predicted, target, size)
    counts = torch.zeros(size, size, dtype=torch.int64)
    counts.index_put_((true, found), _times(times, len(true)), accumulate=True)
    order = torch.from_numpy(taxonomy.preorder[taxonomy.leaves].argsort())
    return Confusions(counts[order][:, order], order, tuple(taxonomy.classes[k] for k in order.tolist()))


def costliest(
    predicted: Any, target: Any, *, names: Sequence[str], distances: Any, top: int = 10, times: Any = None
) -> Costliest:
    """Return the most expensive confusions by `times * distance`.

    Ties are sorted by frequency, then by class order. Confusions with a cost of 0 are left out.

    Args:
        predicted: Predicted class positions, (n,).
        target: True class positions, (n,).
        names: Names of the classes.
        distances: Cost of each mistake, (K, K), rows are true classes: `taxonomy.distance("height")` or any cost matrix.
            The diagonal is ignored.
        top: Maximum number of confusions to return.
        times: How often each prediction occurred, (n,); once by default.

    Returns:
        The confusions, and the cost of all mistakes.

    Example:
        >>> from labelkin.analysis import costliest
        >>> found = costliest([1, 1, 2], [0, 0, 0], names=["cat", "dog", "car"], distances=[[0, 1, 3], [1, 0, 3], [3, 3, 0]])
        >>> [(confusion.predicted, confusion.cost) for confusion in found.confusions]
        [('car', 3.0), ('dog', 2.0)]
    """
    names = plain_names(names)
    check_names("names", names, least=2)
    check_count("top", top)
    size = len(names)
    costs = read_square("distances", distances, size).double().cpu()
    check_not_negative("distances", costs)
    found, true = _pair("predicted", predicted, target, size)
    wrong = found != true
    pairs, place = torch.unique(true[wrong] * size + found[wrong], return_inverse=True)
    counts = torch.zeros_like(pairs).index_add_(0, place, _times(times, len(true))[wrong])
    each = costs.flatten()[pairs]
    spent = each * counts
    order = sorted(range(len(pairs)), key=lambda i: (-float(spent[i]), -int(counts[i]), i))[:top]
    rows = [(*divmod(int(pairs[i]), size), int(counts[i]), float(each[i]), float(spent[i])) for i in order]
    kept = tuple(Confusion(names[t], names[p], n, d, cost) for t, p, n, d, cost in rows if cost > 0)
    return Costliest(kept, float(spent.sum()))


def disagreement(a: Any, b: Any, target: Any, *, classes: int) -> Disagreement:
    """Count where the predictions of two runs differ, in total and per true class.

    Args:
        a: Predicted class positions of the first run, (n,).
        b: Predicted class positions of the second run, (n,).
        target: True class positions, (n,).
        classes: Number of classes.

    Returns:
        The counts.

    Example:
        >>> from labelkin.analysis import disagreement
        >>> disagreement([0, 1], [1, 1], [0, 1], classes=2).different
        1
    """
    check_count("classes", classes, least=2)
    first, true = _pair("a", a, target, classes)
    second, _ = _pair("b", b, target, classes)
    right_a, right_b = first == true, second == true
    kinds = [right_a & right_b, right_a & ~right_b, ~right_a & right_b, ~right_a & ~right_b, first != second]
    by_class = torch.stack([true[kind].bincount(minlength=classes) for kind in kinds], dim=1)
    both_right, only_a, only_b, both_wrong, different = (int(n) for n in by_class.sum(0))
    return Disagreement(both_right, only_a, only_b, both_wrong, different, by_class)


def _times(times: Any, count: int) -> Tensor:
    """Return how often each prediction occurred (n,)."""
    if times is None:
        return torch.ones(count, dtype=torch.int64)
    given = torch.as_tensor(times).cpu()
    if given.shape != (count,) or given.is_floating_point() or bool((given < 0).any()):
        raise InputError(
            f"times: expected a whole number of at least 0 for each of {count} predictions, got {times!r:.60}."
        )
    return given.long()


def _pair(argument: str, predicted: Any, target: Any, classes: int) -> tuple[Tensor, Tensor]:
    found, true = (
        class_positions(argument, predicted, classes, ndim=1).cpu(),
        class_positions("target", target, classes, ndim=1).cpu(),
    )
    if found.shape != true.shape:
        raise InputError(f"{argument}: expected {len(true)} predictions, one for each target, got {len(found)}.")
    return found, true
