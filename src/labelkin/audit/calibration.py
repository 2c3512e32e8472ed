"""Whether the probabilities mean what they say, and whether one number would mend them."""

import warnings
from typing import NamedTuple

from torch import Tensor

from labelkin import metrics
from labelkin.audit.findings import Calibrated, Calibration, Reliability
from labelkin.audit.halves import Halves
from labelkin.audit.intervals import mean_difference
from labelkin.audit.predictions import Predictions
from labelkin.decide import Temperature


class Scaling(NamedTuple):
    temperature: float
    probs: Tensor  # (m, K) of the measured half
    note: str | None


def fit_temperature(given: Predictions, halves: Halves) -> Scaling:
    """Fitted on one half; probabilities of the other, so that nobody is measured on what was fitted."""
    assert given.logits is not None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scale = Temperature().fit(given.logits[halves.fitted], given.target[halves.fitted])
    assert scale.value is not None
    probs = scale.apply(given.logits[halves.measured]).softmax(-1)
    return Scaling(scale.value, probs, str(said[0].message) if said else None)


def calibration(given: Predictions, halves: Halves | None, scaling: Scaling | None) -> Calibration:
    assert given.probs is not None
    found = metrics.expected_calibration_error(given.probs, given.target)
    bins = (found.samples.tolist(), found.confidence.tolist(), found.accuracy.tolist())
    return Calibration(
        found.error,
        metrics.brier_score(given.probs, given.target).mean,
        float(given.probs.amax(-1).mean()),
        Reliability(*(tuple(part) for part in bins)),
        None if halves is None or scaling is None else _scaled(given, halves, scaling),
    )


def _scaled(given: Predictions, halves: Halves, scaling: Scaling) -> Calibrated:
    assert given.probs is not None
    before, target = given.probs[halves.measured], given.target[halves.measured]
    ece_before, ece_after = (
        metrics.expected_calibration_error(probs, target).error for probs in (before, scaling.probs)
    )
    briers = [metrics.brier_score(probs, target).values for probs in (before, scaling.probs)]
    counts = (len(halves.fitted), len(halves.measured))
    return Calibrated(scaling.temperature, *counts, ece_before, ece_after, mean_difference(*briers))
