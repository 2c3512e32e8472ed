"""The scikit-learn door: an estimator for pipelines, cross-validation and grid search."""

# ruff: noqa: N803, N806  (X is scikit-learn's own name)

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, plain
from labelkin._extras import MissingExtra
from labelkin.data import ArraySplit, Batches, Dataset, Minibatch, Normalise
from labelkin.objectives import OBJECTIVES
from labelkin.structure import Taxonomy
from labelkin.training import Classify, Model, Place, Settings, Trainer
from labelkin.training.assemble import build_model, context_for, taxonomy_for

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import check_array, check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtra(
        "KinClassifier needs scikit-learn 1.6 or later, which is not installed: pip install 'labelkin[sklearn]'"
    ) from error

DEVICES = ("cpu", "cuda", "mps", "auto")
FLOATS = (np.float64, np.float32)
PREDICTED_AT_ONCE = 1024  # samples


Floats = npt.NDArray[np.floating[Any]]


def _defines_probabilities(classifier: "KinClassifier") -> bool:
    objective = OBJECTIVES.get(classifier.objective)
    if objective is not None and not objective.has_probabilities:
        raise AttributeError(f"the objective {classifier.objective!r} defines no probabilities; use decision_function")
    return True


class KinClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained with one of labelkin's objectives, as a scikit-learn classifier.

    - `objective`: a name of `labelkin.OBJECTIVES`, with the keywords of its class in `options`, such as `{"tau": 1.5}`.
    - `taxonomy`: the tree above the classes, for objectives that use one: a `Taxonomy`, a file of one, the name of a
      shipped one, or "wordnet". Its classes are the labels as strings; those that y lacks are left out. Without it a tree
      is built from the training data, where the objective needs one.
    - `backbone`: a name of `labelkin.models.BACKBONES` that takes plain columns: "mlp" or "mlp-500".
    - `epochs`, `batch_size`, `optimizer` ("adam", "adamw", "sgd"), `lr`, `weight_decay`: how it is trained.
    - `random_state`: on the CPU the same integer and data give the same network.
    - `device`: "cpu", "cuda", "mps" or "auto". A pickled model comes back on the CPU.

    Training computes in the precision of X, single or double. Columns are standardised with the mean and deviation of the
    training data. Sample weights count in these and in the
    loss, which is a weighted mean over each batch, so that only their ratios matter; a sample of weight 0 is left out
    altogether. What is taken from the data once counts every sample alike: a tree that is built from it, and a relation.

    After `fit`: `classes_` (sorted), `model_` (a `labelkin.Model`, whose `objective` holds the label vectors), `taxonomy_`
    (in the order of `classes_`; None where none was given), `history_` (a row an epoch), `scaler_`, `n_features_in_`.
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
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
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
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X (n, columns) of finite numbers with labels y (n,) of any kind, at least two of them."""
        settings, options = self._settings(), self._options()
        X, y = validate_data(self, X, y, dtype=FLOATS)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        used = weight > 0
        self.classes_, targets = np.unique(y[used], return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y: a classifier needs at least two classes, got {len(self.classes_)} class.")
        self.scaler_ = StandardScaler().fit(X[used], sample_weight=weight[used])
        columns = self._columns(X[used], X.dtype)
        data = _dataset(columns, targets, self.classes_)
        self.taxonomy_ = taxonomy_for(self.taxonomy, data)
        with _own_random_state():
            context = context_for(data, self.taxonomy_)
            model = build_model(self.objective, options, self.backbone, data.shape, context, seed=settings.seed)
            precision = "64-true" if columns.dtype == torch.float64 else "32-true"
            task = WeightedClassify(data, weight[used])
            trained = Trainer(model, task, replace(settings, precision=precision)).fit()
        self.model_: Model = trained.model
        self.history_ = trained.history
        return self

    def _settings(self) -> Settings:
        check_choice("objective", self.objective, tuple(OBJECTIVES))
        check_choice("device", self.device, DEVICES)
        names = ("epochs", "batch_size", "optimizer", "lr", "weight_decay")
        given = {name: getattr(self, name) for name in names}
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return Settings(**given, seed=int(seed), accelerator=self.device)

    def _options(self) -> dict[str, Any]:
        if self.options is not None and not isinstance(self.options, Mapping):
            raise InputError(f"options: expected a mapping of names to values, got {self.options!r}.")
        return {name: plain(value) for name, value in (self.options or {}).items()}

    def _columns(self, X: npt.NDArray[np.floating[Any]], dtype: npt.DTypeLike) -> Tensor:
        """Standardised in X's own precision, and only then rounded to the network's."""
        return torch.from_numpy(check_array(self.scaler_.transform(X), dtype=dtype, input_name="X"))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """(n,) the class with the best score."""
        best = self._scores(X).argmax(-1)
        predicted: npt.NDArray[Any] = self.classes_[best]
        return predicted

    def decision_function(self, X: Any) -> Floats:
        """(n, K) scores, log-probabilities where the objective defines them; with two classes (n,), above 0 for the second."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @available_if(_defines_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) probabilities in the order of `classes_`; not there for an objective that defines none."""
        return self._evaluated(X, lambda model, inputs: model.objective.log_probs(model(inputs)).exp())

    @available_if(_defines_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        return self._evaluated(X, lambda model, inputs: model.objective.log_probs(model(inputs)))

    def _scores(self, X: Any) -> Floats:
        return self._evaluated(X, lambda model, inputs: model.objective.scores(model(inputs)))

    @torch.no_grad()
    def _evaluated(self, X: Any, what: Callable[[Model, Tensor], Tensor]) -> Floats:
        check_is_fitted(self, "model_")
        model = self.model_.eval()
        weights = next(model.parameters())
        dtype = np.float64 if weights.dtype == torch.float64 else np.float32
        columns = self._columns(validate_data(self, X, reset=False, dtype=FLOATS), dtype)
        parts = [what(model, part.to(weights.device)).cpu() for part in torch.split(columns, PREDICTED_AT_ONCE)]
        return torch.cat(parts).numpy()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "model_": deepcopy(self.model_).cpu()} if hasattr(self, "model_") else state


@dataclass(frozen=True, eq=False, kw_only=True)
class StandardisedColumns(Dataset):
    @cached_property
    def normalise(self) -> Normalise:
        """Leaves everything as it is."""
        return Normalise(torch.zeros(self.shape), torch.ones(self.shape))


class WeightedClassify(Classify):
    """Classification with sample weights (n,), which measures nothing on the way."""

    parts_evaluated = ()

    def __init__(self, dataset: Dataset, weight: npt.NDArray[np.floating[Any]]) -> None:
        super().__init__(dataset)
        self.weight = torch.from_numpy(weight / weight.mean())

    def batches(self, settings: Settings, place: Place) -> Batches:
        self.weight = self.weight.to(place.device)
        return super().batches(settings, place)

    def weighed(self, batch: Minibatch) -> Minibatch:
        return batch._replace(weight=batch.weight * self.weight[batch.index])


def _dataset(columns: Tensor, targets: npt.NDArray[np.int64], classes: npt.NDArray[Any]) -> Dataset:
    split = ArraySplit(columns, torch.from_numpy(targets))
    names = tuple(str(label) for label in classes.tolist())
    return StandardisedColumns(name="X", classes=names, train=split, test=split)  # the test part is never looked at


def _own_random_state() -> AbstractContextManager[None]:
    """Within it seeds are set without touching the numbers that the caller draws from torch."""
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.random.fork_rng(devices=range(torch.cuda.device_count()) if used else ())
