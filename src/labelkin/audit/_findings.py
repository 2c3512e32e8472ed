"""What an audit finds, as named tuples: a number is NaN where it is undefined, a part None where it is left out."""

from math import nan
from typing import Any, NamedTuple

from labelkin.analysis import Confusion
from labelkin.structure import Taxonomy


class Interval(NamedTuple):
    """95 %."""

    low: float
    high: float


class Difference(NamedTuple):
    """`after - before`, with a 95 % interval over paired samples, which means little where few of them differ."""

    before: float
    after: float
    differ: int  # samples that count otherwise than before
    change: float = nan
    low: float = nan
    high: float = nan


class Basics(NamedTuple):
    accuracy: float
    accuracy_interval: Interval
    top5: float  # NaN without scores, or with five classes or fewer
    mistakes: int


class Hierarchy(NamedTuple):
    """Measures on the taxonomy. Distances are heights of the node at which two classes meet; lower is better."""

    height: int  # of the tree: the largest distance
    severity: float
    severity_by_chance: float  # if the same samples had been mistaken for any other class alike
    distance_at_1: float
    distance_at_5: float
    precision: float  # hierarchical: shared ancestors
    recall: float
    f1: float
    weighted_accuracy: float  # 002: errors count their semantic distance
    weighted_precision: float
    weighted_recall: float
    weighted_f1: float


class Cost(NamedTuple):
    """Per sample, in the units of the costs; lower is better."""

    mean: float
    interval: Interval


class Worst(NamedTuple):
    by: str  # "costs", "taxonomy" or "times": what a confusion is multiplied with
    confusions: tuple[Confusion, ...]
    total: float  # the cost of all mistakes


class Reliability(NamedTuple):
    """A reliability diagram: one number a bin, NaN in bins without samples."""

    samples: tuple[int, ...]
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]


class Calibrated(NamedTuple):
    """Temperature scaling fitted on one half of the samples, and what it does to the other half."""

    temperature: float
    fitted_on: int
    measured_on: int
    ece_before: float
    ece_after: float
    brier: Difference


class Calibration(NamedTuple):
    """Of all samples, as the predictions are; both errors: lower is better."""

    ece: float
    brier: float
    confidence: float  # mean of the largest probability, to compare with the accuracy
    reliability: Reliability
    scaled: Calibrated | None


class Crm(NamedTuple):
    """What deciding by least expected cost changes, against naming the most probable class."""

    costs: str  # "taxonomy" or "costs"
    temperature: float  # 1: the probabilities as they are
    samples: int
    changed: int  # decisions that differ
    became_right: int
    became_wrong: int
    accuracy: Difference
    severity: Difference | None
    distance_at_1: Difference | None
    distance_at_5: Difference | None
    cost: Difference | None


class FallbackPoint(NamedTuple):
    """Naming an ancestor when unsure: a threshold chosen on one half of the samples, measured on the other."""

    goal: float  # the correctness wanted; NaN for the threshold 0, whose answer is always a class
    threshold: float
    correctness: float
    specificity: float
    leaf_share: float


class Fallback(NamedTuple):
    tree: str  # "taxonomy", or "learned": from the confusions of the half that thresholds are chosen on
    measured_on: int
    points: tuple[FallbackPoint, ...]
    curve: tuple[FallbackPoint, ...]  # all thresholds tried, on the measured half, without goals
    unreachable: tuple[float, ...]  # goals that no threshold reached


class Pair(NamedTuple):
    a: str
    b: str
    confused: float  # samples of one taken for the other; with scores as many as the probabilities let expect
    distance: float  # in the taxonomy, NaN without one


class Agreement(NamedTuple):
    """Kendall's tau-b with the taxonomy's distances, averaged over classes: -1 to 1, 1 is the same order, 0 none.

    Undefined of three classes, and, without pairs, where the taxonomy has all classes equally far apart.
    """

    confusions: float  # of the confusions themselves
    tree: float  # of the tree learned from them
    far_but_confused: tuple[Pair, ...]
    near_but_distinct: tuple[Pair, ...]


class Structure(NamedTuple):
    """The tree that the confusions suggest: average linkage, kin are what is taken for each other."""

    tree: Taxonomy
    stability: float  # tau-b between the confusions of two halves of the samples: near 0, the tree is noise
    closest: tuple[Pair, ...]
    agreement: Agreement | None


def plain(value: Any) -> Any:
    """Dicts, lists, strings and numbers; a tree is Newick text."""
    if isinstance(value, Taxonomy):
        return value.to_newick()
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value
