"""The figures of a table, from scores."""

import warnings

from torch import Tensor

from labelkin.metrics.basic import UndefinedMetric, accuracy, mistake_severity, top_k_accuracy
from labelkin.structure import Taxonomy


def summary(scores: Tensor, target: Tensor, taxonomy: Taxonomy | None = None) -> dict[str, float]:
    """Accuracy, top-5 where there are more than five classes, severity where there is a tree; NaN where undefined."""
    predicted = scores.argmax(-1)
    found = {"accuracy": accuracy(predicted, target).mean}
    if scores.shape[-1] > 5:
        found["top5"] = top_k_accuracy(scores, target, k=5).mean
    if taxonomy is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetric)  # without mistakes the NaN says so itself
            found["severity"] = mistake_severity(predicted, target, taxonomy).mean
    return found
