"""Which structure the confusions suggest, and how far it agrees with a taxonomy."""

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
from labelkin.analysis import linkage_tree
from labelkin.audit._findings import Agreement, Pair, Structure
from labelkin.audit._predictions import Predictions
from labelkin.audit._statistics import Halves
from labelkin.relations import confusion
from labelkin.structure import Taxonomy

Floats = npt.NDArray[np.float64]
SHOWN = 5
LEAST_CLASSES = 3


class Mixed(NamedTuple):
    """How classes are mixed up: (K, K) confusions, rows true, and the distances that follow."""

    confusions: Tensor
    distances: Tensor


def mixed(given: Predictions, samples: Tensor | None = None) -> Mixed:
    """Of all samples or some: counts of predicted labels, or with scores the probability that each class was given.

    Probabilities say more than the best class alone: a model that is nearly always right still shows what it wavers
    between. `1 - (r_ij + r_ji) / 2` of the confusion relation `r` is the distance.
    """
    target = given.target if samples is None else given.target[samples]
    size = len(given.classes)
    if given.probs is None:
        predicted = given.predicted if samples is None else given.predicted[samples]
        counts = metrics.confusion_matrix(predicted, target, size).double()
    else:
        probs = given.probs if samples is None else given.probs[samples]
        counts = torch.zeros(size, size, dtype=torch.float64).index_add_(0, target, probs)
    kin = confusion(counts)
    return Mixed(counts, (1 - (kin + kin.T) / 2).fill_diagonal_(0))


def tells_structure(given: Predictions) -> bool:
    """Whether anything is ever taken for anything else, among classes enough for an order of kinship."""
    counts = mixed(given).confusions
    return len(given.classes) >= LEAST_CLASSES and bool((counts - counts.diagonal().diag()).any())


def structure(given: Predictions, halves: Halves | None, tree: Taxonomy | None) -> Structure:
    found = mixed(given)
    far = None if tree is None else tree.distance("height")
    pairs = _Pairs(given.classes, found, far)
    stability = nan
    if halves is not None:
        stability = _tau(*(mixed(given, half).distances for half in halves))
    return Structure(
        linkage_tree(found.distances, given.classes),
        stability,
        pairs.of(np.argsort(-pairs.confused, kind="stable")),
        None if far is None else _agreement(found, far, pairs),
    )


def _agreement(found: Mixed, far: Floats, pairs: "_Pairs") -> Agreement:
    far_pairs = squareform(far, checks=False)
    if far_pairs.min() == far_pairs.max():
        return Agreement(nan, nan, (), ())
    near = squareform(found.distances.numpy(), checks=False)
    learned = squareform(cophenet(linkage(near, "average")))
    gap = rankdata(-near) - rankdata(-far_pairs)  # above 0: more confused than kin
    return Agreement(
        _tau(found.distances, far),
        _tau(learned, far),
        pairs.of(np.argsort(-gap, kind="stable"), gap > 0),
        pairs.of(np.argsort(gap, kind="stable"), gap < 0),
    )


class _Pairs:
    """Pairs of classes in the order in which scipy condenses a matrix."""

    def __init__(self, classes: Sequence[str], found: Mixed, far: Floats | None) -> None:
        self.classes = classes
        self.rows, self.columns = np.triu_indices(len(classes), 1)
        both = (found.confusions + found.confusions.T).numpy()
        self.confused: Floats = both[self.rows, self.columns]
        self.distance = np.full(len(self.rows), nan) if far is None else far[self.rows, self.columns]

    def of(self, order: npt.NDArray[np.int64], wanted: npt.NDArray[np.bool_] | None = None) -> tuple[Pair, ...]:
        """The first few in this order, of those wanted, else of those ever confused."""
        kept = self.confused > 0 if wanted is None else wanted
        return tuple(self._pair(i) for i in order[kept[order]][:SHOWN].tolist())

    def _pair(self, i: int) -> Pair:
        names = (self.classes[self.rows[i]], self.classes[self.columns[i]])
        return Pair(*names, float(self.confused[i]), float(self.distance[i]))


def _tau(ours: Tensor | Floats, theirs: Tensor | Floats) -> float:
    """NaN of three classes too: the order of two others is right or wrong by a coin's throw."""
    if len(ours) <= LEAST_CLASSES:
        return nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", metrics.UndefinedMetric)  # NaN says it
        return metrics.structure_correlation(ours, theirs, given="distances").mean
