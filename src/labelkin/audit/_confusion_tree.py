"""The tree that the confusions suggest, and its agreement with a taxonomy."""

import warnings
from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata
from torch import Tensor

from labelkin import metrics
from labelkin.audit._columns import Half, Halves
from labelkin.audit._pairs import count_pairs
from labelkin.audit._predictions import Predictions
from labelkin.relations import confusion
from labelkin.structure import Taxonomy

Floats = npt.NDArray[np.float64]
SHOWN = 5  # pairs in a list
LEAST_CLASSES = 3


class Pair(NamedTuple):
    """Two classes and how often they are confused, in either direction.

    Attributes:
        a: First class.
        b: Second class.
        confused: Number of confusions; with scores, the number that the probabilities predict.
        distance: Distance in the taxonomy; NaN without one.

    Example:
        >>> from labelkin.audit import audit
        >>> pair = audit({"target": [0, 1, 1, 2], "predicted": [0, 2, 2, 1]}).structure.closest[0]
        >>> pair.a, pair.b, pair.confused
        ('1', '2', 3.0)
    """

    a: str
    b: str
    confused: float
    distance: float


class Agreement(NamedTuple):
    """Agreement of the confusions with the taxonomy: Kendall's tau-b of the distances, averaged over classes.

    1 means the same order, 0 no correlation. It is NaN with three classes, and if the taxonomy has all classes equally far
    apart; then there are no pairs either.

    Attributes:
        confusions: Tau of the confusions.
        tree: Tau of the tree learned from them.
        far_but_confused: Pairs that are farther apart than the mean pair, and closer than it by their confusions; those whose
            ranks differ most come first.
        near_but_distinct: Pairs that are closer than the mean pair, and farther apart than it by their confusions.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.audit import audit
        >>> tree = Taxonomy.from_nested([["a", "b"], ["c", "d"]])
        >>> found = audit({"target": list("aabbccdd"), "predicted": list("abbacddc")}, taxonomy=tree)
        >>> round(found.structure.agreement.confusions, 6)
        1.0
    """

    confusions: float
    tree: float
    far_but_confused: tuple[Pair, ...]
    near_but_distinct: tuple[Pair, ...]


class Structure(NamedTuple):
    """The tree that the confusions suggest (average linkage): classes that are often confused are close.

    Attributes:
        tree: The learned tree.
        linkage: Its merges with their heights, in scipy's format.
        stability: Kendall's tau-b between two halves of the samples; near 0 the tree is noise.
        closest: The pairs that are confused most.
        agreement: Agreement with the taxonomy; None without one.

    Example:
        >>> from labelkin.audit import audit
        >>> audit({"target": [0, 1, 1, 2], "predicted": [0, 2, 2, 1]}).structure.tree.to_newick()
        '(0,(1,2)node1)root;'
    """

    tree: Taxonomy
    linkage: tuple[tuple[float, ...], ...]
    stability: float
    closest: tuple[Pair, ...]
    agreement: Agreement | None


class ClassConfusions(NamedTuple):
    """Confusions between classes.

    Attributes:
        counts: (K, K) confusions; rows are true classes.
        distances: (K, K) distances between classes that follow from them.
    """

    counts: Tensor
    distances: Tensor


def class_confusions(given: Predictions, half: Half | None = None) -> ClassConfusions:
    """Return the confusions of all samples, or of one half of them.

    With predicted labels, confusions are counted. With scores, they are sums of probabilities: these show which classes a model
    hesitates between even if it makes almost no mistakes. The distance is `1 - (r_ij + r_ji) / 2`, where `r` is the confusion
    relation.
    """
    target, size = given.true if half is None else given.true.take(half), len(given.classes)
    if given.prob_rows is None:
        answers = given.answers if half is None else given.answers.take(half)
        counts = count_pairs(zip(target.blocks(), answers.blocks(), strict=True), size).matrix(size).double()
    else:
        probs = given.prob_rows if half is None else given.prob_rows.take(half)
        counts = torch.zeros(size, size, dtype=torch.float64)
        for block, true in probs.beside(target):
            counts.index_add_(0, true, block)
    relation = confusion(counts)
    return ClassConfusions(counts, (1 - (relation + relation.T) / 2).fill_diagonal_(0))


def has_structure(given: Predictions) -> bool:
    """Return whether a tree can be learned: there are confusions, and at least three classes."""
    counts = class_confusions(given).counts
    return len(given.classes) >= LEAST_CLASSES and bool((counts - counts.diagonal().diag()).any())


def structure(given: Predictions, halves: Halves | None, tree: Taxonomy | None) -> Structure:
    """Learn a tree from the confusions and compare it with the taxonomy, if there is one."""
    confused = class_confusions(given)
    tree_distances = None if tree is None else tree.distance("height")
    pairs = _Pairs(given.classes, confused, tree_distances)
    stability = nan
    if halves is not None:
        stability = _tau(*(class_confusions(given, half).distances for half in halves))
    merges = linkage(squareform(confused.distances.numpy(), checks=False), "average")
    return Structure(
        Taxonomy.from_linkage(merges, given.classes),
        tuple(tuple(merge) for merge in merges.tolist()),
        stability,
        pairs.first(np.argsort(-pairs.confused, kind="stable")),
        None if tree_distances is None else _agreement(confused, merges, tree_distances, pairs),
    )


def _agreement(confused: ClassConfusions, merges: Floats, tree_distances: Floats, pairs: "_Pairs") -> Agreement:
    by_tree = squareform(tree_distances, checks=False)
    if by_tree.min() == by_tree.max():
        return Agreement(nan, nan, (), ())
    by_confusion = squareform(confused.distances.numpy(), checks=False)
    learned = squareform(cophenet(merges))
    gap = rankdata(-by_confusion) - rankdata(-by_tree)  # above 0: confused more often than the tree suggests
    far, often = by_tree > by_tree.mean(), by_confusion < by_confusion.mean()
    return Agreement(
        _tau(confused.distances, tree_distances),
        _tau(learned, tree_distances),
        pairs.first(np.argsort(-gap, kind="stable"), far & often),
        pairs.first(np.argsort(gap, kind="stable"), ~far & ~often),
    )


class _Pairs:
    """All pairs of classes, in the order of scipy's condensed matrices."""

    def __init__(self, classes: Sequence[str], confused: ClassConfusions, tree_distances: Floats | None) -> None:
        self.classes = classes
        self.rows, self.columns = np.triu_indices(len(classes), 1)
        both = (confused.counts + confused.counts.T).numpy()
        self.confused: Floats = both[self.rows, self.columns]
        unknown = np.full(len(self.rows), nan)
        self.distance = unknown if tree_distances is None else tree_distances[self.rows, self.columns]

    def first(self, order: npt.NDArray[np.int64], wanted: npt.NDArray[np.bool_] | None = None) -> tuple[Pair, ...]:
        """Return the first few pairs in this order: those in `wanted`, or by default those that are ever confused."""
        kept = self.confused > 0 if wanted is None else wanted
        return tuple(self._pair(i) for i in order[kept[order]][:SHOWN].tolist())

    def _pair(self, i: int) -> Pair:
        names = (self.classes[self.rows[i]], self.classes[self.columns[i]])
        return Pair(*names, float(self.confused[i]), float(self.distance[i]))


def _tau(ours: Tensor | Floats, theirs: Tensor | Floats) -> float:
    """Return the structure correlation; NaN with three classes, where each class has only two others to rank."""
    if len(ours) <= LEAST_CLASSES:
        return nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics.UndefinedMetric)  # the result is NaN; no warning is needed
        return metrics.structure_correlation(ours, theirs, given="distances").mean
