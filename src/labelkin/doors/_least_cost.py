"""A scikit-learn meta-estimator that decides by least expected cost, with calibrated probabilities."""

# ruff: noqa: N803, N806  (X is scikit-learn's own name)

import os
from collections.abc import Mapping
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice
from labelkin._extras import MissingExtra
from labelkin.decide import Temperature, expected_costs, least_cost
from labelkin.doors._class_costs import action_names, check_one_source, costs_over, given_costs
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.model_selection import check_cv
    from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, _check_y, check_is_fitted, has_fit_parameter
except ImportError as error:
    raise MissingExtra(
        "LeastCostClassifier needs scikit-learn 1.7 or later, which is not installed: pip install 'labelkin[sklearn]'"
    ) from error

METHODS = ("temperature", "none")
LEAST = 1e-12  # smaller probabilities count as this, so that one 0 for a true class does not determine the temperature
PRIOR = 1.0  # standard deviation of the temperature's logarithm: few samples, or no mistakes, do not lead to certainty
Floats = npt.NDArray[np.floating[Any]]


class LeastCostClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Decide by least expected cost with the probabilities of any scikit-learn classifier.

    Least-cost decisions need calibrated probabilities. `fit` trains the classifier on each part of a cross-validation,
    finds the temperature with the least negative log-likelihood on the samples that were left out (with a weak prior
    around 1, for few samples), and trains the classifier again on all samples. A classifier that is already trained can
    be calibrated on held-out samples: `LeastCostClassifier(FrozenEstimator(classifier), ...).fit(X_held_out, y_held_out)`.

    Args:
        estimator: A classifier with `predict_proba`, or with a `decision_function` of one score per class, whose softmax
            is used.
        taxonomy: The tree above the classes, whose distances are the costs: a `Taxonomy`, a nested mapping of names, a
            file, the name of a built-in taxonomy, or "wordnet". Its leaves are the labels as strings; leaves that are
            not classes are dropped.
        costs: Costs by true class and answer, which need not be symmetric: a mapping `{true class: {answer: cost}}`, a
            pandas DataFrame with the true classes as index and the answers as columns, a .csv or .npz file as for
            `labelkin decide`, or a (K, K) array in the order of `classes_`. Costs may be negative, but not in a file. By
            name, a right answer costs 0 unless its cost is given, and an answer without a row of its own is not a class
            but an action, such as "ask a person". Without taxonomy and costs every mistake costs 1, and the decision is
            the most probable class.
        distance: The kind of distance in the taxonomy; see `Taxonomy.distance`.
        cv: Number of stratified folds, or a splitter of scikit-learn. A sample whose class is missing from the training
            part of its fold is left out of the calibration.
        method: "temperature", or "none" for the classifier's own probabilities.

    Attributes:
        classes_: The classes, in the order of the classifier's `classes_`.
        answers_: What `predict` returns: the classes, then the actions.
        costs_: The (K, A) costs of the answers in this order, or the taxonomy over the classes.
        estimator_: The classifier, trained on all samples.
        temperature_: The temperature; 1 with `method="none"`.

    Example:
        A missed cancer costs fifty times as much as a false alarm:

        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from labelkin.doors import LeastCostClassifier
        >>> data = load_breast_cancer()
        >>> X, y = data.data[::2], data.target_names[data.target[::2]]
        >>> classifier = make_pipeline(StandardScaler(), LogisticRegression())
        >>> costs = {"malignant": {"benign": 50}, "benign": {"malignant": 1}}
        >>> model = LeastCostClassifier(classifier, costs=costs).fit(X, y)
        >>> test, truth = data.data[1::2], data.target_names[data.target[1::2]]
        >>> missed = lambda answers: int(((answers == "benign") & (truth == "malignant")).sum())
        >>> missed(model.predict(test)) < missed(classifier.fit(X, y).predict(test))
        True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        taxonomy: Taxonomy | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        costs: Any = None,
        distance: DistanceKind = "height",
        cv: Any = 5,
        method: str = "temperature",
    ) -> None:
        self.estimator = estimator
        self.taxonomy = taxonomy
        self.costs = costs
        self.distance = distance
        self.cv = cv
        self.method = method

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train and calibrate the classifier.

        Args:
            X: Whatever the classifier takes, one entry per sample.
            y: Labels, shape (n,).
            sample_weight: Weights of at least 0, shape (n,), for the classifier and its calibration.

        Returns:
            The fitted estimator itself.

        Example:
            >>> from sklearn.datasets import load_iris
            >>> from sklearn.naive_bayes import GaussianNB
            >>> from labelkin.doors import LeastCostClassifier
            >>> X, y = load_iris(return_X_y=True)
            >>> model = LeastCostClassifier(GaussianNB(), taxonomy={"early": ["0"], "late": ["1", "2"]}).fit(X, y)
            >>> bool(model.temperature_ > 1)  # naive Bayes is overconfident
            True
        """
        check_choice("method", self.method, METHODS)
        check_choice("distance", self.distance, DISTANCES)
        check_one_source(self.taxonomy, self.costs)
        costs = given_costs(self.costs)
        if y is None:
            raise InputError("y: LeastCostClassifier requires y to be passed, but the target y is None.")
        X, y = indexable(X, y)
        y = _check_y(column_or_1d(y, warn=True), estimator=self)
        check_classification_targets(y)
        if len(np.unique(y)) < 2:
            raise InputError(f"y: a classifier needs at least two classes, got {len(np.unique(y))} class.")
        weight = None if sample_weight is None else self._weights(sample_weight, X)
        self.estimator_ = self._trained(X, y, weight)
        if not any(hasattr(self.estimator_, name) for name in ("predict_proba", "decision_function")):
            _no_scores(self.estimator_)
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.costs_ = costs_over(self.classes_, self.taxonomy, costs)
        self.answers_ = _with_actions(self.classes_, action_names(costs, self.classes_))
        self.temperature_ = 1.0
        if self.method == "temperature":
            logits, target, counts = self._left_out(X, y, weight)
            self.temperature_ = float(Temperature().fit(logits, target, weight=counts, prior=PRIOR).value or 1.0)
        return self

    def _weights(self, sample_weight: Any, X: Any) -> Floats:
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise InputError(
                f"sample_weight: {type(self.estimator).__name__}.fit takes no sample_weight; leave it out, or use a "
                "classifier that takes it."
            )
        weight: Floats = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        return weight

    def _trained(self, X: Any, y: npt.NDArray[Any], weight: Floats | None) -> Any:
        return clone(self.estimator).fit(X, y, **({} if weight is None else {"sample_weight": weight}))

    def _left_out(self, X: Any, y: npt.NDArray[Any], weight: Floats | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return logits, class positions and weights of the samples, each by a classifier that did not see it."""
        position = {label: place for place, label in enumerate(self.classes_.tolist())}
        logits: list[Floats] = []
        rows: list[npt.NDArray[np.int64]] = []
        for train, test in check_cv(self.cv, y, classifier=True).split(X, y):
            classifier = self._trained(_safe_indexing(X, train), y[train], None if weight is None else weight[train])
            known = test[np.isin(y[test], classifier.classes_)]
            if not len(known):
                continue
            seen = [position[label] for label in classifier.classes_.tolist()]
            found = np.full((len(known), len(position)), np.log(LEAST))
            found[:, seen] = _logits(classifier, _safe_indexing(X, known))
            logits.append(found)
            rows.append(known)
        if not rows:
            raise InputError("cv: no sample is left out of the training part that holds its class; use fewer folds.")
        left = np.concatenate(rows)
        target = torch.tensor([position[label] for label in y[left].tolist()])
        return (
            torch.from_numpy(np.concatenate(logits)),
            target,
            None if weight is None else torch.from_numpy(weight[left]),
        )

    def _probs(self, X: Any) -> Tensor:
        """Return (n, K) calibrated probabilities in double precision."""
        check_is_fitted(self)
        return torch.softmax(torch.from_numpy(_logits(self.estimator_, X)) / self.temperature_, -1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the answer with the least expected cost for each sample.

        Args:
            X: Whatever the classifier takes, one entry per sample.

        Returns:
            Classes, and actions if the costs have some, shape (n,). Among equal expected costs, the most probable class.

        Example:
            >>> from sklearn.dummy import DummyClassifier
            >>> from labelkin.doors import LeastCostClassifier
            >>> costs = {"ham": {"spam": 10}, "spam": {"ham": 1}}
            >>> model = LeastCostClassifier(DummyClassifier(), costs=costs, cv=2)
            >>> model.fit([[0]] * 6, ["ham", "spam", "spam"] * 2).predict([[0]]).tolist()
            ['ham']
        """
        probs = self._probs(X)
        decided: npt.NDArray[Any] = self.answers_[least_cost(probs, self.costs_, distance=self.distance).numpy()]
        return decided

    def predict_proba(self, X: Any) -> Floats:
        """Return the calibrated probabilities of the classes.

        Args:
            X: Whatever the classifier takes, one entry per sample.

        Returns:
            Probabilities in the order of `classes_`, shape (n, K).

        Example:
            >>> from sklearn.dummy import DummyClassifier
            >>> from labelkin.doors import LeastCostClassifier
            >>> model = LeastCostClassifier(DummyClassifier(strategy="prior"), method="none").fit([[0]] * 4, [0, 1, 1, 1])
            >>> model.predict_proba([[0]]).round(6).tolist()
            [[0.25, 0.75]]
        """
        probs: Floats = self._probs(X).numpy()
        return probs

    def expected_costs(self, X: Any) -> Floats:
        """Return the expected cost of each answer; `predict` returns the answer with the least.

        Args:
            X: Whatever the classifier takes, one entry per sample.

        Returns:
            Expected costs in the order of `answers_`, shape (n, A).

        Example:
            >>> from sklearn.dummy import DummyClassifier
            >>> from labelkin.doors import LeastCostClassifier
            >>> model = LeastCostClassifier(DummyClassifier(strategy="prior"), costs=[[0, 8], [2, 0]], method="none")
            >>> model.fit([[0]] * 4, [0, 1, 1, 1]).expected_costs([[0]]).round(6).tolist()
            [[1.5, 2.0]]
        """
        costs: Floats = expected_costs(self._probs(X), self.costs_, distance=self.distance).numpy()
        return costs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _with_actions(classes: npt.NDArray[Any], actions: list[str]) -> npt.NDArray[Any]:
    """Return the classes and the actions in one array; numbers stay numbers beside the names of actions."""
    if not actions:
        return classes
    if classes.dtype.kind == "U":
        return np.concatenate([classes, np.array(actions)])
    return np.array([*classes.tolist(), *actions], dtype=object)


def _logits(classifier: Any, X: Any) -> Floats:
    """Return (n, K) log-probabilities in double precision, or the scores of a classifier without probabilities."""
    if hasattr(classifier, "predict_proba"):
        probs = np.asarray(classifier.predict_proba(X), dtype=np.float64)
        logits: Floats = np.log(probs.clip(LEAST))
        return logits
    if not hasattr(classifier, "decision_function"):
        _no_scores(classifier)
    scores = np.asarray(classifier.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:  # one score for two classes: that of the second over the first
        scores = np.stack([np.zeros_like(scores), scores], -1)
    if scores.shape[-1] != len(classifier.classes_):
        raise InputError(
            f"estimator: expected one score for each of {len(classifier.classes_)} classes from "
            f"{type(classifier).__name__}.decision_function, got {scores.shape[-1]}; use decision_function_shape='ovr'."
        )
    return scores


def _no_scores(classifier: Any) -> NoReturn:
    raise InputError(
        f"estimator: expected a classifier with predict_proba or decision_function, got {type(classifier).__name__}."
    )
