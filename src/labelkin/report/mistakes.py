"""What a model gets wrong, from its scores alone: confusions, what they cost, and what deciding otherwise changes."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from labelkin import decide, metrics
from labelkin.analysis import Confusions, Costliest, Disagreement, confusion_matrix, costliest, disagreement
from labelkin.decide import OperatingCurve
from labelkin.metrics import Calibration
from labelkin.structure import Taxonomy

DEEP = 5  # of AHD@5
SHOWN = 8  # confusions listed
IMAGES = 4  # of each


class Measured(NamedTuple):
    accuracy: float
    severity: float  # NaN without mistakes
    ahd5: float


class CostRule(NamedTuple):
    """Naming the class of least expected tree distance instead of the most probable one."""

    before: Measured
    after: Measured
    changed: Disagreement  # a is before, b after


class Mistakes(NamedTuple):
    confusions: Confusions
    costliest: Costliest
    samples: tuple[tuple[int, ...], ...]  # for each of the costliest, the first samples that show it
    calibration: Calibration | None  # None, as the rest, without probabilities
    cost_rule: CostRule | None
    operating: OperatingCurve | None


def mistakes_of(scores: Tensor, target: Tensor, taxonomy: Taxonomy, *, log_probs: bool) -> Mistakes:
    """From scores (n, K), classes in the taxonomy's order, and true classes (n,).

    `log_probs` says whether the scores are log-probabilities; without them nothing is said of calibration and cost.
    """
    predicted = scores.argmax(-1)
    found = costliest(predicted, target, names=taxonomy.classes, distances=taxonomy.distance("height"), top=SHOWN)
    samples = tuple(
        _first(predicted, target, taxonomy.classes, confusion.true, confusion.predicted)
        for confusion in found.confusions
    )
    order = confusion_matrix(predicted, target, taxonomy=taxonomy)
    if not log_probs:
        return Mistakes(order, found, samples, None, None, None)
    probs = scores.double().softmax(-1)  # of log-probabilities the exponential, in sums that are 1
    return Mistakes(
        order,
        found,
        samples,
        metrics.expected_calibration_error(probs, target),
        _cost_rule(probs, target, taxonomy),
        decide.operating_curve(decide.node_probs(probs, taxonomy), target, taxonomy),
    )


def _first(predicted: Tensor, target: Tensor, names: Sequence[str], true: str, taken_for: str) -> tuple[int, ...]:
    those = (target == names.index(true)) & (predicted == names.index(taken_for))
    return tuple(those.nonzero().flatten()[:IMAGES].tolist())


def _cost_rule(probs: Tensor, target: Tensor, taxonomy: Taxonomy) -> CostRule:
    found = decide.compare_rules(probs, target, taxonomy, k=min(DEEP, len(taxonomy.leaves)))
    return CostRule(
        _measured(found.before),
        _measured(found.after),
        disagreement(found.before.answer, found.after.answer, target, classes=len(taxonomy.leaves)),
    )


def _measured(decided: decide.Decided) -> Measured:
    return Measured(decided.accuracy, decided.severity, decided.average_distance)
