"""The final metrics of a trained classifier: mistake severity, calibration, structure; and its calibrated decisions.

The scores are calibrated on held-out samples, and the decision is the class of least expected cost.
"""

import warnings
from math import isnan, nan
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin import decide, metrics
from labelkin.data import LEAST_CALIBRATION
from labelkin.decide import Temperature
from labelkin.metrics import UndefinedMetric
from labelkin.objectives import Objective
from labelkin.structure import Taxonomy

TOP = 5
MOST_CLASSES = 2_000  # beyond this, the distances of all pairs take longer than an epoch of training
PRIOR = 1.0  # standard deviation of log(temperature)
FURTHER = 20  # the larger k of the average distance of the k best classes
LEAST_SCORE = -1e4  # in place of minus infinity; its softmax is 0


def final_metrics(objective: Objective, scores: Tensor, target: Tensor, taxonomy: Taxonomy | None) -> dict[str, float]:
    """Return the final metrics of a classifier; NaN where one is undefined.

    Besides those of `metrics.summary`:

    balanced_accuracy   accuracy of the best classes, averaged over the true classes
    macro_f1            F1 score, averaged over the classes
    ahd5                average hierarchical distance of the five best classes
    ece, brier          calibration, for objectives that define probabilities
    crm_*               accuracy, severity and ahd5 after choosing the class of least expected distance in the tree
    structure           paper 001, Eq. 4: the rank correlation of the distances between label vectors with those in the
                        tree; for an objective that learns no vectors, of the class means of its scores

    Args:
        objective: The trained objective.
        scores: (n, K) its scores on the test set.
        target: (n,) the true classes.
        taxonomy: The tree over the classes, if any.

    >>> from labelkin import OneHot
    >>> scores = torch.eye(3).log_softmax(-1)
    >>> found = final_metrics(OneHot(classes=3), scores, torch.arange(3), None)
    >>> found["accuracy"], sorted(found)
    (1.0, ['accuracy', 'balanced_accuracy', 'brier', 'ece', 'macro_f1'])
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetric)  # the result is NaN; no warning is needed
        found = metrics.summary(scores, target, taxonomy)
        best = scores.argmax(-1)
        found["balanced_accuracy"] = metrics.balanced_accuracy(best, target).mean
        found["macro_f1"] = metrics.macro_f1(best, target).mean
        probs = torch.softmax(scores.double(), -1) if objective.has_probabilities else None
        if taxonomy is not None and scores.shape[-1] >= TOP:
            found["ahd5"] = metrics.average_distance(scores, target, taxonomy, k=TOP).mean
        found["ece"] = nan if probs is None else metrics.expected_calibration_error(probs, target).mean
        found["brier"] = nan if probs is None else metrics.brier_score(probs, target).mean
        if taxonomy is not None:
            found |= _by_cost(probs, target, taxonomy)
            found["structure"] = _structure(objective, scores, target, taxonomy)
    return found


def _by_cost(probs: Tensor | None, target: Tensor, taxonomy: Taxonomy) -> dict[str, float]:
    """Return the metrics after choosing the class of least expected distance (CRM)."""
    if probs is None:
        return dict.fromkeys(("crm_accuracy", "crm_severity", "crm_ahd5"), nan)
    found = decide.compare_rules(probs, target, taxonomy, k=min(TOP, probs.shape[-1])).after
    return {
        "crm_accuracy": found.accuracy,
        "crm_severity": found.severity,
        "crm_ahd5": found.average_distance,
    }


def _structure(objective: Objective, scores: Tensor, target: Tensor, taxonomy: Taxonomy) -> float:
    """Return the structure correlation of the label vectors, or of the class means of the scores."""
    classes = scores.shape[-1]
    if not 3 <= classes <= MOST_CLASSES:
        return nan
    distances = taxonomy.distance("height")
    vectors = objective.label_vectors(range(classes)).detach().cpu()
    found = metrics.structure_correlation(vectors, distances, given="vectors").mean
    if not isnan(found):
        return found
    counts = torch.bincount(target, minlength=classes)
    if not bool(counts.all()):
        return nan
    sums = torch.zeros(classes, classes, dtype=torch.float64).index_add_(0, target, scores.double())
    return metrics.structure_correlation(sums / counts.unsqueeze(1), distances, given="vectors").mean


class Calibration(NamedTuple):
    """A temperature, and the number of samples that it was fitted on.

    Without such samples the number is 0. The temperature is then 1 if the scores are log-probabilities, else NaN.
    """

    temperature: float
    samples: int

    def probs(self, scores: Tensor) -> Tensor | None:
        """Return (n, K) calibrated probabilities in float64, or None if the temperature is NaN."""
        if isnan(self.temperature):
            return None
        return torch.softmax(scores.double().clamp(min=LEAST_SCORE) / self.temperature, -1)


def fit_calibration(objective: Objective, scores: Tensor | None, target: Tensor | None) -> Calibration:
    """Fit the temperature of a classifier on held-out samples.

    The scores of an objective without probabilities become probabilities through the fitted temperature: the softmax of its
    scores divided by it.

    A weak prior, under which two temperatures in three are between 1/e and e, keeps few samples, or samples without any
    mistake, from leading to certainty. With fewer than `LEAST_CALIBRATION` samples, the scores are not calibrated.

    Args:
        objective: The trained objective.
        scores: (n, K) its scores on the held-out samples. None if there are no such samples.
        target: (n,) the true classes.
    """
    plain = Calibration(1.0 if objective.has_probabilities else nan, 0)
    if scores is None or target is None or len(target) < LEAST_CALIBRATION:
        return plain
    return Calibration(fitted_temperature(scores, target), len(target))


def fitted_temperature(scores: Tensor, target: Tensor) -> float:
    """Return the best temperature for any number of samples."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Temperature: the best value is beyond the limit")  # the limit is as good
        fitted = Temperature().fit(scores.double().clamp(min=LEAST_SCORE), target, prior=PRIOR)
    assert fitted.value is not None
    return fitted.value


class DecidedTest(NamedTuple):
    """The decisions on test samples: one value for each sample, and their metrics."""

    outputs: dict[str, Tensor]
    metrics: dict[str, float]


def decide_test(
    scores: Tensor,
    target: Tensor,
    taxonomy: Taxonomy | None,
    calibration: Calibration,
    costs: Tensor | None = None,
) -> DecidedTest:
    """Decide by the least expected cost under calibrated probabilities; costs are the given ones, or heights in the tree.

    The metrics, NaN where undefined:

    temperature, calibration_samples   the calibration
    decided_cost, argmax_cost          mean cost of the decisions, and of the most probable classes
    decided_accuracy, decided_severity accuracy of the decisions, and mean distance of the wrong ones in the tree
    decided_ahd5, decided_ahd20        average distance of the 5 and 20 classes of least expected cost (at most all classes)
    ahd5_floor, ahd20_floor            the least such distances that the tree allows
    decided_ece                        calibration error of the calibrated probabilities
    decided_balanced_accuracy          accuracy of the decisions, averaged over the true classes
    decided_macro_f1                   F1 score of the decisions, averaged over the classes

    Args:
        scores: (n, K) scores of the test samples.
        target: (n,) the true classes.
        taxonomy: The tree over the classes. Without one, the decision is the most probable class, and costs are NaN.
        calibration: The result of `fit_calibration`.
        costs: (K, K) costs by true class (row) and answer (column); by default heights in the tree.

    >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
    >>> scores = torch.tensor([[0.30, 0.28, 0.42]]).log()
    >>> found = decide_test(scores, torch.tensor([1]), tree, Calibration(1.0, 0))
    >>> found.outputs["answer"], found.metrics["decided_cost"], found.metrics["argmax_cost"]
    (tensor([0]), 1.0, 2.0)
    """
    probs, k = calibration.probs(scores), min(FURTHER, scores.shape[-1])
    best = scores.argmax(-1)
    answer, paid = best, _paid(best, target, taxonomy, costs)
    best_paid = paid
    decided: decide.Decided | None = None
    if probs is not None and (taxonomy is not None or costs is not None):
        decided = decide.compare_rules(probs, target, taxonomy, costs=costs, k=k).after
        answer = decided.answer
        paid = _paid(answer, target, taxonomy, costs)
    outputs = {
        "answer": answer,
        "argmax": best,
        "cost": paid,
        "argmax_cost": best_paid,
        "temperature": torch.tensor(calibration.temperature, dtype=torch.float64),
        "calibration_samples": torch.tensor(calibration.samples),
    }
    distances = None if decided is None else decided.distances
    found = {
        "temperature": calibration.temperature,
        "calibration_samples": float(calibration.samples),
        "argmax_cost": float(best_paid.mean()),
        "decided_cost": nan if probs is None else float(paid.mean()),
        "decided_accuracy": nan if probs is None else float((answer == target).double().mean()),
        "decided_severity": nan if decided is None else decided.severity,
        "decided_ahd5": nan if distances is None else float(distances[:, :TOP].double().mean()),
        "decided_ahd20": nan if distances is None else float(distances.double().mean()),
        "ahd5_floor": nan if taxonomy is None else _least_distance(target, taxonomy, min(TOP, k)),
        "ahd20_floor": nan if taxonomy is None else _least_distance(target, taxonomy, k),
        "decided_ece": nan,
        "decided_balanced_accuracy": nan if probs is None else metrics.balanced_accuracy(answer, target).mean,
        "decided_macro_f1": nan if probs is None else metrics.macro_f1(answer, target).mean,
    }
    if probs is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetric)  # the result is NaN; no warning is needed
            found["decided_ece"] = metrics.expected_calibration_error(probs, target).mean
    return DecidedTest(outputs, found)


def _least_distance(target: Tensor, taxonomy: Taxonomy, k: int) -> float:
    return metrics.least_average_distance(target, taxonomy, k=k).mean


def _paid(answer: Tensor, target: Tensor, taxonomy: Taxonomy | None, costs: Tensor | None) -> Tensor:
    """Return the cost of each answer; NaN without costs and without a tree."""
    if costs is not None:
        return costs.double()[target, answer]
    if taxonomy is None:
        return torch.full(target.shape, nan, dtype=torch.float64)
    return torch.from_numpy(taxonomy.distance("height", target.numpy(), answer.numpy())).double()
