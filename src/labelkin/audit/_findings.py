"""Results of an audit as named tuples; a number is NaN if it is undefined, and a part is None if it was left out."""

from math import nan
from typing import Any, NamedTuple

from labelkin.analysis import Confusion
from labelkin.structure import Taxonomy


class Interval(NamedTuple):
    """A 95 % confidence interval.

    Attributes:
        low: Lower end.
        high: Upper end.

    Example:
        >>> from labelkin.audit import audit
        >>> low, high = audit({"target": [0, 1, 2], "predicted": [0, 1, 1]}).basics.accuracy_interval
        >>> round(low, 2), round(high, 2)
        (0.21, 0.94)
    """

    low: float
    high: float


class Difference(NamedTuple):
    """A change between two ways to decide, measured on the same samples, with a 95 % confidence interval.

    Attributes:
        before: Value before.
        after: Value after.
        differ: Number of samples whose contribution changed. The interval is unreliable if there are few.
        change: `after - before`.
        low: Lower end of the interval of the change.
        high: Upper end.

    Example:
        >>> from labelkin.audit import Difference
        >>> Difference(before=0.9, after=0.92, differ=31, change=0.02, low=0.01, high=0.03).low > 0
        True
    """

    before: float
    after: float
    differ: int
    change: float = nan
    low: float = nan
    high: float = nan


class Basics(NamedTuple):
    """Accuracy and the number of mistakes.

    Attributes:
        accuracy: Share of correct predictions.
        accuracy_interval: Wilson's interval of the accuracy.
        top5: Top-5 accuracy; NaN without scores, and with five classes or fewer.
        mistakes: Number of wrong predictions.

    Example:
        >>> from labelkin.audit import audit
        >>> found = audit({"target": [0, 1, 2, 2], "predicted": [0, 1, 2, 1]}).basics
        >>> found.accuracy, found.mistakes
        (0.75, 1)
    """

    accuracy: float
    accuracy_interval: Interval
    top5: float
    mistakes: int


class Hierarchy(NamedTuple):
    """Metrics on the taxonomy. The distance of two classes is the height of their lowest common ancestor.

    Attributes:
        height: The largest distance of two classes.
        severity: Mean distance over the mistakes; lower is better.
        severity_by_chance: Severity if the same samples were mistaken for all other classes equally often.
        distance_at_1: Mean distance over all samples; lower is better.
        distance_at_5: Mean distance of the five best classes; lower is better.
        precision: Hierarchical precision, from shared ancestors.
        recall: Hierarchical recall.
        f1: Hierarchical F1.
        weighted_accuracy: Accuracy in which a mistake counts by its semantic distance (paper 002).
        weighted_precision: Precision of the same kind.
        weighted_recall: Recall of the same kind.
        weighted_f1: F1 of the same kind.

    Example:
        >>> from labelkin import Taxonomy
        >>> from labelkin.audit import audit
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]})
        >>> audit({"target": ["cat", "car"], "predicted": ["dog", "car"]}, taxonomy=tree).hierarchy.severity
        1.0
    """

    height: int
    severity: float
    severity_by_chance: float
    distance_at_1: float
    distance_at_5: float
    precision: float
    recall: float
    f1: float
    weighted_accuracy: float
    weighted_precision: float
    weighted_recall: float
    weighted_f1: float


class Cost(NamedTuple):
    """Mean cost per sample, in the units of the costs; lower is better.

    Attributes:
        mean: Mean cost.
        interval: Its 95 % confidence interval.

    Example:
        >>> from labelkin.audit import audit
        >>> audit({"target": [0, 1], "predicted": [0, 0]}, costs=[[0, 1], [6, 0]]).cost.mean
        3.0
    """

    mean: float
    interval: Interval


class Worst(NamedTuple):
    """The confusions that cost most.

    Attributes:
        by: Cost of one confusion: "costs" (as passed), "taxonomy" (height) or "times" (1 each).
        confusions: Confusions, the most expensive first.
        total: Cost of all mistakes.

    Example:
        >>> from labelkin.audit import audit
        >>> worst = audit({"target": [0, 1, 1, 2], "predicted": [0, 2, 2, 1]}).worst
        >>> worst.by, worst.confusions[0].true, worst.confusions[0].predicted, worst.confusions[0].times
        ('times', '1', '2', 2)
    """

    by: str
    confusions: tuple[Confusion, ...]
    total: float


class Reliability(NamedTuple):
    """A reliability diagram, one entry per bin of confidence; NaN in bins without samples.

    Attributes:
        samples: Number of samples.
        confidence: Mean confidence.
        accuracy: Accuracy.

    Example:
        >>> from labelkin.audit import audit
        >>> found = audit({"target": [0, 1], "probs": [[0.9, 0.1], [0.2, 0.8]]})
        >>> sum(found.calibration.reliability.samples)
        2
    """

    samples: tuple[int, ...]
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]


class Calibrated(NamedTuple):
    """Temperature scaling, fitted on one half of the samples and measured on the other half.

    Attributes:
        temperature: Fitted temperature; above 1 if the model is overconfident.
        fitted_on: Number of samples that it was fitted on.
        measured_on: Number of samples that it was measured on.
        ece_before: Expected calibration error before scaling.
        ece_after: Expected calibration error after scaling.
        brier: Change of the Brier score.
        before: The reliability diagram of the measured half before scaling.
        after: The reliability diagram of the measured half after scaling.

    Example:
        >>> from labelkin.audit import audit
        >>> scores = {"target": [0, 1] * 15 + [1, 0] * 5, "logits": [[9.0, 0.0], [0.0, 9.0]] * 20}
        >>> scaled = audit(scores).calibration.scaled
        >>> scaled.temperature > 1, scaled.fitted_on
        (True, 20)
    """

    temperature: float
    fitted_on: int
    measured_on: int
    ece_before: float
    ece_after: float
    brier: Difference
    before: Reliability
    after: Reliability


class Calibration(NamedTuple):
    """Calibration of the probabilities over all samples.

    Attributes:
        ece: Expected calibration error; lower is better.
        brier: Brier score; lower is better.
        confidence: Mean of the largest probability, to compare with the accuracy.
        reliability: The reliability diagram.
        scaled: Effect of temperature scaling; None with few samples.

    Example:
        >>> from labelkin.audit import audit
        >>> found = audit({"target": [0, 1], "probs": [[0.9, 0.1], [0.3, 0.7]]}).calibration
        >>> round(found.confidence, 2), round(found.ece, 2)
        (0.8, 0.2)
    """

    ece: float
    brier: float
    confidence: float
    reliability: Reliability
    scaled: Calibrated | None


def plain(value: Any) -> Any:
    """Convert results to dicts, lists, strings and numbers; a tree becomes Newick text."""
    if isinstance(value, Taxonomy):
        return value.to_newick()
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value
