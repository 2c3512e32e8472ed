"""A scikit-learn estimator, for pipelines, cross-validation and grid search."""

# ruff: noqa: N803, N806  (X is scikit-learn's own name)

import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number, listed, plain
from labelkin._extras import MissingExtra
from labelkin._sparse_rows import SparseRows, row_blocks
from labelkin.decide import least_cost
from labelkin.doors._training_inputs import given_tree, held_out_rows, inner_nodes, objective_context, own_random_state
from labelkin.objectives import OBJECTIVES
from labelkin.structure import Taxonomy
from labelkin.training import (
    Model,
    Settings,
    Trainer,
    WeightedClassify,
    build_model,
    fit_calibration,
    node_positions,
    standardized_dataset,
    taxonomy_for,
)

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state, compute_class_weight
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

    from labelkin.doors._standardize import fitted_scaler, standardized
except ImportError as error:
    raise MissingExtra(
        "KinClassifier needs scikit-learn 1.7 or later, which is not installed: pip install 'labelkin[sklearn]'"
    ) from error

DEVICES = ("cpu", "cuda", "mps", "auto")
FLOATS = (np.float64, np.float32)
Floats = npt.NDArray[np.floating[Any]]


def _defines_probabilities(classifier: "KinClassifier") -> bool:
    objective = OBJECTIVES.get(classifier.objective)
    if objective is not None and not objective.has_probabilities:
        raise AttributeError(f"the objective {classifier.objective!r} defines no probabilities; use decision_function")
    return True


class KinClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train a network with one of labelkin's objectives, as a scikit-learn classifier.

    Columns are standardized with the mean and standard deviation of the training data, and training computes in the
    precision of X, single or double. Rows of a sparse matrix become dense batch by batch, with the same result.

    Sample weights count in the standardization, in the loss (a weighted mean over each batch, so only their ratios
    matter), and in a tree or relation that is built from the training data. A sample of weight 0 is left out.

    A label in y may name an inner node of the taxonomy, where only the group of a sample is known ("animal"). Such a
    sample trains the objective through its `node` argument. `classes_` holds the leaves among the labels, so `predict`
    returns only leaves, and `score` counts a prediction for a sample labeled with an inner node as wrong.

    Args:
        objective: A name of `labelkin.OBJECTIVES`. Inner-node labels need an objective over the nodes of a tree:
            "hierarchical", "convex-hierarchical", "conditional-softmax" or "hierarchical-cross-entropy".
        taxonomy: The tree above the classes, for objectives that use one: a `Taxonomy`, a nested mapping of names, a
            file, the name of a built-in taxonomy, or "wordnet". Its leaves are the labels as strings; leaves that y
            lacks are dropped. Without it, an objective that needs a tree builds one from the training data.
        options: Keyword arguments of the objective's class, such as `{"tau": 1.5}`.
        backbone: A name of `labelkin.models.BACKBONES` that takes plain columns: "mlp" or "mlp-500".
        epochs: Number of passes over the training data.
        batch_size: Samples in a batch.
        optimizer: "adam", "adamw" or "sgd".
        lr: Learning rate.
        weight_decay: Weight decay of the optimizer.
        class_weight: Weights of the labels in the loss, which multiply the sample weights: a dict of labels to weights
            (labels that it lacks have weight 1), "balanced" for `n_samples / (n_labels * count)` with weighted counts,
            or None. An inner-node label counts as a separate label.
        random_state: Seed. On the CPU, the same integer and the same data give the same network.
        device: "cpu", "cuda", "mps" or "auto". A pickled model is always loaded on the CPU.
        calibration: Share of the samples, 0 to 0.5, to hold out for calibrating the probabilities. Nothing is held out if it
            would be fewer than 50 samples.
        decide: "argmax" to predict the most probable class, or "crm" for the class with the least expected distance in the
            taxonomy.

    Attributes:
        classes_: The classes, sorted; inner nodes are not among them.
        model_: The trained `labelkin.Model`; its `objective` holds the label vectors.
        taxonomy_: The taxonomy over `classes_`, in their order; None if none was given.
        temperature_: The number that scores are divided by before the softmax; 1 if nothing was held out.
        history_: One dict per epoch, with the epoch, the learning rate and the loss.
        scaler_: The fitted `StandardScaler`.
        n_features_in_: Number of columns of X.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from labelkin import KinClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = KinClassifier("label-smoothing", epochs=30, class_weight="balanced", random_state=0).fit(X, y)
        >>> bool(model.score(X, y) > 0.9)
        True
    """

    def __init__(
        self,
        objective: str = "label-embedding",
        *,
        taxonomy: Taxonomy | str | os.PathLike[str] | None = None,
        options: Mapping[str, Any] | None = None,
        backbone: str = "mlp",
        epochs: int = 50,
        batch_size: int = 64,
        optimizer: str = "adam",
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
        calibration: float = 0.05,
        decide: str = "argmax",
    ) -> None:
        self.objective = objective
        self.taxonomy = taxonomy
        self.options = options
        self.backbone = backbone
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.class_weight = class_weight
        self.random_state = random_state
        self.device = device
        self.calibration = calibration
        self.decide = decide

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the network.

        Args:
            X: Finite numbers, shape (n, columns); may be sparse.
            y: Labels of any kind, shape (n,): at least two classes, and names of inner nodes of the taxonomy.
            sample_weight: Weights of at least 0, shape (n,); all 1 by default.

        Returns:
            The fitted estimator itself.

        Example:
            Some samples are known as animals, and no more:

            >>> from labelkin import KinClassifier
            >>> X = [[0, 0], [0, 1], [5, 0], [0, 0.5]]
            >>> y = ["cat", "dog", "ship", "animal"]
            >>> tree = {"animal": ["cat", "dog"], "thing": ["ship"]}
            >>> model = KinClassifier("hierarchical", taxonomy=tree, epochs=2, random_state=0).fit(X, y)
            >>> model.classes_.tolist()
            ['cat', 'dog', 'ship']
        """
        settings, options = self._settings(), self._options()
        X, y = validate_data(self, X, y, dtype=FLOATS, accept_sparse="csr")
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        X, y, weight, dtype = X[weight > 0], y[weight > 0], weight[weight > 0], X.dtype
        tree = given_tree(self.taxonomy)
        labels, place = np.unique(y, return_inverse=True)
        inner = inner_nodes(labels, tree, self.objective)
        self.classes_ = labels[~inner]
        if len(self.classes_) < 2:
            raise InputError(f"y: a classifier needs at least two classes, got {len(self.classes_)} class.")
        label_weights = self._label_weights(labels, y, weight)  # of all samples, so they don't depend on those held out
        all_X, all_place = X, place
        held = held_out_rows(place, inner, self.calibration)
        X, weight, place = X[~held], weight[~held], place[~held]
        self.scaler_ = fitted_scaler(X, weight)
        columns = standardized(X, self.scaler_, dtype)
        data = standardized_dataset(columns, (np.cumsum(~inner) - 1).clip(0)[place], self.classes_)
        self.taxonomy_ = taxonomy_for(self.taxonomy if tree is None else tree, data)
        node = node_positions(labels, inner, self.taxonomy_)[place] if inner.any() else None
        with own_random_state():
            context = objective_context(data, self.taxonomy_, weight, known=~inner[place])
            model = build_model(self.objective, options, self.backbone, data.shape, context, seed=settings.seed)
            precision = "64-true" if columns.dtype == torch.float64 else "32-true"
            task = WeightedClassify(data, weight * label_weights[place], node)
            trained = Trainer(model, task, replace(settings, precision=precision)).fit()
        self.model_: Model = trained.model
        self.history_ = trained.history
        self.temperature_ = 1.0
        if held.any():
            known = torch.from_numpy((np.cumsum(~inner) - 1)[all_place[held]])
            scores = torch.from_numpy(self._scores_of(standardized(all_X[held], self.scaler_, dtype)))
            self.temperature_ = fit_calibration(self.model_.objective, scores, known).temperature
        return self

    def _label_weights(self, labels: npt.NDArray[Any], y: npt.NDArray[Any], weight: Floats) -> Floats:
        """Return the weight of each label by `class_weight`."""
        given, known = self.class_weight, labels.tolist()
        if given is None:
            return np.ones(len(labels))
        if isinstance(given, str) and given == "balanced":
            return np.asarray(compute_class_weight("balanced", classes=labels, y=y, sample_weight=weight))
        if not isinstance(given, Mapping):
            raise InputError(f"class_weight: expected 'balanced', a dict of labels to weights, or None, got {given!r}.")
        unknown, missing = [key for key in given if key not in known], [key for key in known if key not in given]
        if unknown and missing:
            raise InputError(
                f"class_weight: {listed(unknown)} not among the labels of y, and no weight for {listed(missing)}; use the "
                "labels of y as keys."
            )
        for label, value in given.items():
            check_number(f"class_weight[{label!r}]", plain(value), low=0)
        weights = np.array([float(given.get(label, 1.0)) for label in known])
        if not weights.any():
            raise InputError("class_weight: expected at least one weight above 0, got only zeros.")
        return weights

    def _settings(self) -> Settings:
        check_choice("objective", self.objective, tuple(OBJECTIVES))
        check_choice("device", self.device, DEVICES)
        check_choice("decide", self.decide, ("argmax", "crm"))
        check_number("calibration", self.calibration, low=0, high=0.5)
        if self.decide == "crm" and self.taxonomy is None:
            raise InputError("decide: 'crm' needs a taxonomy; pass one, or use 'argmax'.")
        if self.decide == "crm" and not OBJECTIVES[self.objective].has_probabilities:
            raise InputError(
                f"decide: 'crm' needs probabilities, which {self.objective!r} does not define; use 'argmax'."
            )
        names = ("epochs", "batch_size", "optimizer", "lr", "weight_decay")
        given = {name: getattr(self, name) for name in names}
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return Settings(**given, seed=int(seed), accelerator=self.device)

    def _options(self) -> dict[str, Any]:
        if self.options is not None and not isinstance(self.options, Mapping):
            raise InputError(f"options: expected a mapping of names to values, got {self.options!r}.")
        return {name: plain(value) for name, value in (self.options or {}).items()}

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the highest score for each row, or with the least expected distance if `decide="crm"`.

        Args:
            X: Finite numbers, shape (n, columns); may be sparse.

        Returns:
            Classes, shape (n,), with the dtype of y.

        Example:
            >>> from labelkin import KinClassifier
            >>> model = KinClassifier("one-hot", epochs=40, lr=0.01, random_state=0)
            >>> model.fit([[0.0], [1.0]], ["low", "high"]).predict([[-1.0], [2.0]]).tolist()
            ['low', 'high']
        """
        scores = self._scores(X)
        best = scores.argmax(-1)
        if self.decide == "crm":
            assert self.taxonomy_ is not None
            best = least_cost(self._calibrated(scores).exp(), self.taxonomy_).numpy()
        predicted: npt.NDArray[Any] = self.classes_[best]
        return predicted

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the classes, which are log-probabilities if the objective defines them.

        Args:
            X: Finite numbers, shape (n, columns); may be sparse.

        Returns:
            Scores, shape (n, K). With two classes the difference of their scores, shape (n,), which is above 0 for the
            second class.

        Example:
            >>> from labelkin import KinClassifier
            >>> model = KinClassifier("static-labels", epochs=1).fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
            >>> model.decision_function([[1.5]]).shape
            (1, 3)
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @available_if(_defines_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the calibrated probabilities of the classes; not available for objectives that define none.

        Args:
            X: Finite numbers, shape (n, columns); may be sparse.

        Returns:
            Probabilities in the order of `classes_`, shape (n, K).

        Example:
            >>> from labelkin import KinClassifier
            >>> model = KinClassifier("one-hot", epochs=1).fit([[0.0], [1.0]], ["a", "b"])
            >>> round(float(model.predict_proba([[0.5]]).sum()), 6)
            1.0
        """
        return self._calibrated(self._scores(X)).exp().numpy()

    @available_if(_defines_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the calibrated log-probabilities of the classes; not available for objectives that define none.

        Args:
            X: Finite numbers, shape (n, columns); may be sparse.

        Returns:
            Log-probabilities in the order of `classes_`, shape (n, K).

        Example:
            >>> from labelkin import KinClassifier
            >>> model = KinClassifier("one-hot", epochs=1).fit([[0.0], [1.0]], ["a", "b"])
            >>> bool((model.predict_log_proba([[0.5]]) < 0).all())
            True
        """
        return self._calibrated(self._scores(X)).numpy()

    def _calibrated(self, scores: Floats) -> Tensor:
        """Return calibrated log-probabilities."""
        return torch.log_softmax(torch.from_numpy(scores) / self.temperature_, -1)

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "model_")
        dtype = np.float64 if next(self.model_.parameters()).dtype == torch.float64 else np.float32
        X = validate_data(self, X, reset=False, dtype=FLOATS, accept_sparse="csr")
        return self._scores_of(standardized(X, self.scaler_, dtype))

    @torch.no_grad()
    def _scores_of(self, columns: Tensor | SparseRows) -> Floats:
        """Return the scores of standardized rows, computed in batches."""
        model = self.model_.eval()
        place = next(model.parameters()).device
        parts = [model.objective.scores(model(part.to(place))) for part in row_blocks(columns)]
        return torch.cat(parts).cpu().numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "model_": deepcopy(self.model_).cpu()} if hasattr(self, "model_") else state
