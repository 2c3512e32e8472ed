"""Scorers for scikit-learn's cross-validation and searches: mean cost and hierarchical F1."""

# ruff: noqa: N803  (X is scikit-learn's own name)

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from labelkin._checks import InputError, check_choice
from labelkin.doors._class_costs import action_names, check_one_source, cost_matrix, given_costs
from labelkin.doors._training_inputs import given_tree
from labelkin.metrics import hierarchical_f1
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

Labels = npt.NDArray[Any]
Scorer = Callable[..., float]
Tree = Taxonomy | Mapping[str, Any] | str | os.PathLike[str]


def mean_cost_scorer(*, taxonomy: Tree | None = None, costs: Any = None, distance: DistanceKind = "height") -> Scorer:
    """Return a scorer of the mean cost of the predictions, negated, so that greater is better.

    Args:
        taxonomy: The tree above the classes, whose distances are the costs: a `Taxonomy`, a nested mapping of names, a
            file, or the name of a built-in taxonomy. Its leaves are the labels as strings.
        costs: Costs by true class and answer, as for `LeastCostClassifier`; an array is in the order of the estimator's
            `classes_`.
        distance: The kind of distance in the taxonomy; see `Taxonomy.distance`.

    Returns:
        A function of an estimator, X, y and optionally `sample_weight`, for the argument `scoring` of scikit-learn.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import cross_val_score
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from labelkin.doors import mean_cost_scorer
        >>> X, y = load_iris(return_X_y=True)
        >>> scorer = mean_cost_scorer(taxonomy={"early": ["0"], "late": ["1", "2"]})
        >>> cross_val_score(DecisionTreeClassifier(random_state=0), X, y, cv=3, scoring=scorer).round(2).tolist()
        [-0.02, -0.06, -0.02]
    """
    check_one_source(taxonomy, costs)
    check_choice("distance", distance, DISTANCES)
    if taxonomy is None and costs is None:
        raise InputError("costs: expected a taxonomy or costs, got neither.")
    return _MeanCost(None if taxonomy is None else _tree(taxonomy), given_costs(costs), distance)


def hierarchical_f1_scorer(taxonomy: Tree) -> Scorer:
    """Return a scorer of the hierarchical F1 of the predictions: 0 to 1, greater is better.

    Args:
        taxonomy: The tree above the classes: a `Taxonomy`, a nested mapping of names, a file, or the name of a built-in
            taxonomy. Labels and predictions are its nodes as strings; they may be inner nodes.

    Returns:
        A function of an estimator, X and y, for the argument `scoring` of scikit-learn.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.dummy import DummyClassifier
        >>> from sklearn.model_selection import cross_val_score
        >>> from labelkin.doors import hierarchical_f1_scorer
        >>> X, y = load_iris(return_X_y=True)
        >>> scorer = hierarchical_f1_scorer({"early": ["0"], "late": ["1", "2"]})
        >>> always_one = DummyClassifier(strategy="constant", constant=1)
        >>> cross_val_score(always_one, X, y, cv=2, scoring=scorer).tolist()
        [0.5, 0.5]
    """
    return _HierarchicalF1(_tree(taxonomy))


@dataclass(frozen=True, eq=False)
class _MeanCost:
    """The scorer of `mean_cost_scorer`; an object, so that it can be pickled for other processes."""

    taxonomy: Taxonomy | None
    costs: Any
    distance: DistanceKind

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        true, answer = np.asarray(y), np.asarray(estimator.predict(X))
        paid = self._by_matrix(estimator, true, answer) if self.taxonomy is None else self._by_tree(true, answer)
        return -float(np.average(paid, weights=sample_weight))

    def _by_tree(self, true: Labels, answer: Labels) -> npt.NDArray[np.floating[Any]]:
        assert self.taxonomy is not None
        classes = np.array(self.taxonomy.classes)
        places = _positions(true.astype(str), classes), _positions(answer.astype(str), classes)
        return self.taxonomy.distance(self.distance, places[0], places[1])

    def _by_matrix(self, estimator: Any, true: Labels, answer: Labels) -> npt.NDArray[np.floating[Any]]:
        by_name = isinstance(self.costs, Mapping) or hasattr(self.costs, "columns")
        actions = action_names(self.costs, np.unique(true))
        acted = np.isin(answer.astype(str), actions)
        named = np.array(answer[~acted].tolist(), dtype=None if len(true) > acted.sum() else true.dtype)
        classes = np.unique(np.concatenate([true, named])) if by_name else np.asarray(estimator.classes_)
        matrix = cost_matrix(self.costs, classes, actions)
        place = np.empty(len(answer), dtype=np.int64)
        place[~acted] = _positions(named, classes)
        place[acted] = [len(classes) + actions.index(str(name)) for name in answer[acted]]
        paid: npt.NDArray[np.floating[Any]] = matrix[_positions(true, classes), place]
        return paid


@dataclass(frozen=True, eq=False)
class _HierarchicalF1:
    """The scorer of `hierarchical_f1_scorer`."""

    taxonomy: Taxonomy

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        predicted, target = self._nodes(estimator.predict(X)), self._nodes(y)
        return hierarchical_f1(predicted, target, self.taxonomy, predicted_as="nodes", target_as="nodes").mean

    def _nodes(self, labels: Any) -> torch.Tensor:
        names, place = np.unique(np.asarray(labels).astype(str), return_inverse=True)
        return torch.tensor([self.taxonomy.node(str(name)) for name in names])[torch.from_numpy(place)]


def _tree(choice: Tree) -> Taxonomy:
    tree = given_tree(choice)
    if tree is None:
        raise InputError(
            f"taxonomy: expected a tree, got {choice!r}; use Taxonomy.from_wordnet(class names) for WordNet."
        )
    return tree


def _positions(labels: Labels, classes: Labels) -> npt.NDArray[np.int64]:
    """Return the positions of labels among classes, which need not be sorted."""
    order = np.argsort(classes)
    place = order[np.searchsorted(classes, labels, sorter=order).clip(max=len(classes) - 1)]
    missing = labels[classes[place] != labels]
    if len(missing):
        raise InputError(
            f"y: {missing[0]!r} is not among the classes of the estimator or of the tree; give costs by class name, or a "
            "tree with all classes."
        )
    positions: npt.NDArray[np.int64] = place
    return positions
