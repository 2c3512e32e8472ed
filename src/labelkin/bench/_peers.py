"""The same metrics from other packages: hiclass, scikit-learn, torchmetrics."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._extras import require
from labelkin.structure import Taxonomy

EPOCHS = 200
DIMS = 512


class Predictions(NamedTuple):
    """Generated predictions, and the other inputs of the metrics."""

    logits: Tensor  # (n, K) float32
    probs: Tensor
    predicted: Tensor
    target: Tensor
    taxonomy: Taxonomy
    distances: Tensor  # (K, K) semantic
    groups: Tensor  # (K,) ten classes per group
    vectors: Tensor  # (K, D) label vectors
    curve: list[float]  # accuracy after each epoch

    @property
    def superclasses(self) -> int:
        """Number of groups of classes."""
        return int(self.groups.max()) + 1

    def first(self, samples: int) -> Self:
        """Return the predictions of the first samples only."""
        cut = {name: getattr(self, name)[:samples] for name in ("logits", "probs", "predicted", "target")}
        return self._replace(**cut)


def make(samples: int, classes: int) -> Predictions:
    """Generate predictions: two of three are right with 10,000 samples and 1,000 classes, mistakes are close in the tree."""
    draw = torch.Generator().manual_seed(0)
    tree = Taxonomy.from_paths([f"all/hundred{i // 100}/ten{i // 10}/class{i}" for i in range(classes)])
    distances = torch.from_numpy(tree.distance("semantic"))
    target = torch.randint(classes, (samples,), generator=draw)
    logits = torch.randn(samples, classes, generator=draw) + 1.5 * (3 - distances.float())[target]
    logits[torch.arange(samples), target] += 0.5
    groups = torch.arange(classes) // 10
    noise = torch.randn(classes, DIMS, generator=draw)
    vectors = noise + torch.randn(classes // 10 + 1, DIMS, generator=draw)[groups]
    curve = (1 - torch.linspace(1, 0, EPOCHS).square()).tolist()
    return Predictions(logits, logits.softmax(-1), logits.argmax(-1), target, tree, distances, groups, vectors, curve)


PACKAGES = {"hiclass": "hiclass", "sklearn": "scikit-learn", "torchmetrics": "torchmetrics"}
Calls = dict[str, dict[str, Callable[[], object]]]


def missing() -> list[str]:
    """Return the packages that are not installed."""
    return [name for module, name in PACKAGES.items() if find_spec(module) is None]


def peers(given: Predictions) -> Calls:
    """Return {metric: {package: call}} of the installed packages, with inputs converted beforehand."""
    found: Calls = {}
    for module, of_package in (("hiclass", _hiclass), ("sklearn", _sklearn), ("torchmetrics", _torchmetrics)):
        if find_spec(module) is not None:
            for metric, call in of_package(given):
                found.setdefault(metric, {})[PACKAGES[module]] = call
    return found


def _hiclass(given: Predictions) -> Iterator[tuple[str, Callable[[], object]]]:
    hiclass = _imported("hiclass.metrics")
    true, guess = (_levels(given.taxonomy, classes) for classes in (given.target, given.predicted))
    yield "hierarchical_precision", lambda: hiclass.precision(true, guess, "micro")
    yield "hierarchical_recall", lambda: hiclass.recall(true, guess, "micro")
    yield "hierarchical_f1", lambda: hiclass.f1(true, guess, "micro")


def _levels(tree: Taxonomy, classes: Tensor) -> npt.NDArray[np.str_]:
    """Convert classes to hiclass's format: a row of names from the top down, without the root, padded with empty ones."""
    names = np.array([*tree.names, ""])
    return names[tree.paths[tree.leaves[classes.numpy()], 1:]]


def _sklearn(given: Predictions) -> Iterator[tuple[str, Callable[[], object]]]:
    sklearn, cluster = _imported("sklearn.metrics"), _imported("sklearn.cluster")
    true, guess = given.target.numpy(), given.predicted.numpy()
    logits, probs = given.logits.numpy(), given.logits.double().softmax(-1).numpy()
    labels = np.arange(logits.shape[1])
    yield "accuracy", lambda: sklearn.accuracy_score(true, guess)
    yield "top_k_accuracy, k 5", lambda: sklearn.top_k_accuracy_score(true, logits, k=5, labels=labels)
    yield "confusion_matrix", lambda: sklearn.confusion_matrix(true, guess, labels=labels)
    yield "brier_score", lambda: sklearn.brier_score_loss(true, probs, labels=labels, scale_by_half=False)
    kmeans = cluster.KMeans(given.superclasses, n_init=10, random_state=0)
    yield "superclass_accuracy_by_kmeans", lambda: kmeans.fit(probs).predict(probs)


def _torchmetrics(given: Predictions) -> Iterator[tuple[str, Callable[[], object]]]:
    theirs = _imported("torchmetrics.functional.classification")
    classes = given.logits.shape[1]
    options = {"num_classes": classes, "average": "micro"}
    yield "accuracy", lambda: theirs.multiclass_accuracy(given.predicted, given.target, **options)
    yield "top_k_accuracy, k 5", lambda: theirs.multiclass_accuracy(given.logits, given.target, top_k=5, **options)
    yield "confusion_matrix", lambda: theirs.multiclass_confusion_matrix(given.predicted, given.target, classes)
    yield (
        "expected_calibration_error",
        lambda: theirs.multiclass_calibration_error(given.probs, given.target, num_classes=classes, n_bins=15),
    )


def _imported(module: str) -> Any:
    return require(module, extra="dev", use="labelkin bench metrics")
