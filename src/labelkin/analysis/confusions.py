"""Which classes are taken for which, what it costs, and where two runs differ."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin import metrics
from labelkin._arrays import class_positions
from labelkin._checks import InputError, check_count, check_names
from labelkin.relations.matrices import check_not_negative, read_square
from labelkin.structure import Taxonomy


class Confusions(NamedTuple):
    """Counts in the order in which the tree's leaves lie, so that kin are neighbours."""

    counts: Tensor  # (K, K) int64: rows true, columns predicted, both in this order
    order: Tensor  # (K,) the class position of each row
    names: tuple[str, ...]  # the class of each row


class Confusion(NamedTuple):
    true: str
    predicted: str
    times: int
    distance: float
    cost: float  # times x distance


class Costliest(NamedTuple):
    confusions: tuple[Confusion, ...]  # the most expensive first
    total: float  # the cost of all mistakes


class Disagreement(NamedTuple):
    """Two runs on the same samples: McNemar's counts, and how often the predicted classes differ."""

    both_right: int
    only_a: int  # a is right, b is wrong
    only_b: int
    both_wrong: int
    different: int  # a and b predict different classes: only_a, only_b, and some of both_wrong
    by_class: Tensor  # (K, 5) int64: the same five for each true class


def confusion_matrix(predicted: Any, target: Any, *, taxonomy: Taxonomy) -> Confusions:
    """Counts of (true, predicted) class positions, rows and columns in the order of the tree's leaves, left to right."""
    size = len(taxonomy.leaves)
    found, true = _pair("predicted", predicted, target, size)
    counts = metrics.confusion_matrix(found, true, size)
    paths = taxonomy.paths[taxonomy.leaves].tolist()
    order = torch.tensor(sorted(range(size), key=lambda k: paths[k]))
    return Confusions(counts[order][:, order], order, tuple(taxonomy.classes[k] for k in order.tolist()))


def costliest(predicted: Any, target: Any, *, names: Sequence[str], distances: Any, top: int = 10) -> Costliest:
    """The confusions that cost most, `times x distance`, at most `top` of them; those that cost nothing are left out.

    `distances` (K, K) are what a mistake costs, rows true, as `taxonomy.distance("height")` or any cost matrix; the
    diagonal is not looked at. Of equal costs the more frequent comes first, then class order.
    """
    check_names("names", names, least=2)
    check_count("top", top)
    size = len(names)
    costs = read_square("distances", distances, size).double().cpu()
    check_not_negative("distances", costs)
    found, true = _pair("predicted", predicted, target, size)
    wrong = found != true
    pairs, counts = torch.unique(true[wrong] * size + found[wrong], return_counts=True)
    each = costs.flatten()[pairs]
    spent = each * counts
    order = sorted(range(len(pairs)), key=lambda i: (-float(spent[i]), -int(counts[i]), i))[:top]
    rows = [(*divmod(int(pairs[i]), size), int(counts[i]), float(each[i]), float(spent[i])) for i in order]
    kept = tuple(Confusion(names[t], names[p], n, d, cost) for t, p, n, d, cost in rows if cost > 0)
    return Costliest(kept, float(spent.sum()))


def disagreement(a: Any, b: Any, target: Any, *, classes: int) -> Disagreement:
    """Where two runs' predicted class positions differ, in all and by true class."""
    check_count("classes", classes, least=2)
    first, true = _pair("a", a, target, classes)
    second, _ = _pair("b", b, target, classes)
    right_a, right_b = first == true, second == true
    kinds = [right_a & right_b, right_a & ~right_b, ~right_a & right_b, ~right_a & ~right_b, first != second]
    by_class = torch.stack([true[kind].bincount(minlength=classes) for kind in kinds], dim=1)
    both_right, only_a, only_b, both_wrong, different = (int(n) for n in by_class.sum(0))
    return Disagreement(both_right, only_a, only_b, both_wrong, different, by_class)


def _pair(argument: str, predicted: Any, target: Any, classes: int) -> tuple[Tensor, Tensor]:
    found, true = (
        class_positions(argument, predicted, classes, ndim=1).cpu(),
        class_positions("target", target, classes, ndim=1).cpu(),
    )
    if found.shape != true.shape:
        raise InputError(f"{argument}: expected {len(true)} predictions, one for each target, got {len(found)}.")
    return found, true
