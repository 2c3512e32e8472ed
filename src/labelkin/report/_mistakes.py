"""Confusions of a model, their cost, cost-based decisions, and the panels that show them."""

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin import decide, metrics
from labelkin._checks import counted
from labelkin.analysis import Confusions, Costliest, Disagreement, confusion_matrix, costliest, disagreement
from labelkin.audit import Worst
from labelkin.decide import OperatingCurve
from labelkin.metrics import Calibration
from labelkin.report import figures
from labelkin.report._groups import Groups
from labelkin.report._page_model import NARROW, Example, Listing, Panel, Table
from labelkin.report._page_model import Costliest as CostliestPart
from labelkin.structure import Taxonomy

DEEP = 5  # classes in AHD@5
SHOWN = 8  # confusions listed
IMAGES = 4  # per confusion
COSTS_OF_ONE = {
    "distance": "The cost is the count times the distance in the tree.",
    "cost": "The cost is the count times the cost of one such mistake.",
    "": "Each mistake costs 1.",
}
NO_PROBABILITIES = "This objective defines no probabilities."


class Measured(NamedTuple):
    """Metrics of a decision rule."""

    accuracy: float
    severity: float  # NaN without mistakes
    ahd5: float


class CostRule(NamedTuple):
    """Effect of choosing the class of least expected tree distance instead of the most probable class."""

    before: Measured
    after: Measured
    changed: Disagreement  # a is before, b after


class Mistakes(NamedTuple):
    """The mistakes of a model on a test set.

    Attributes:
        confusions: The confusion matrix.
        costliest: The confusions that cost most.
        samples: The first sample positions of each of the costliest confusions.
        calibration: Calibration; None without probabilities, as the next two.
        cost_rule: Effect of cost-based decisions.
        operating: The operating curve of the fallback.
        temperature: The temperature that the probabilities are calibrated with.
    """

    confusions: Confusions
    costliest: Costliest
    samples: tuple[tuple[int, ...], ...]
    calibration: Calibration | None
    cost_rule: CostRule | None
    operating: OperatingCurve | None
    temperature: float = 1.0


def mistakes_of(
    scores: Tensor, target: Tensor, taxonomy: Taxonomy, *, log_probs: bool, temperature: float = 1.0
) -> Mistakes:
    """Return the mistakes of a model.

    Args:
        scores: (n, K) scores, with classes in the order of the taxonomy.
        target: (n,) true classes.
        taxonomy: The tree.
        log_probs: Whether the scores divided by the temperature are log-probabilities, up to a constant; calibration and
            cost-based decisions need them.
        temperature: The temperature of the model.
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
    probs = (scores.double() / temperature).softmax(
        -1
    )  # sums to exactly 1, as exponentials of log-probabilities do not
    return Mistakes(
        order,
        found,
        samples,
        metrics.expected_calibration_error(probs, target),
        _cost_rule(probs, target, taxonomy),
        decide.operating_curve(decide.node_probs(probs, taxonomy), target, taxonomy),
        temperature=temperature,
    )


def _first(predicted: Tensor, target: Tensor, names: Sequence[str], true: str, taken_for: str) -> tuple[int, ...]:
    """Return the first samples of a confusion."""
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


def mistake_panels(mistakes: Mistakes | None, groups: Groups | None, why: str) -> tuple[Panel, ...]:
    """Return the panels on mistakes; without mistakes, they show the reason `why`."""
    titles = {
        "confusions": "Confusion matrix",
        "calibration": "Calibration",
        "operating": "Falling back to a superclass",
    }
    if mistakes is None:
        return tuple(Panel(key, title, "", missing=why) for key, title in titles.items())
    panels = [map_panel(mistakes.confusions, groups, titles["confusions"])]
    if mistakes.calibration is None or mistakes.operating is None:
        return (*panels, *(Panel(k, titles[k], "", missing=NO_PROBABILITIES) for k in ("calibration", "operating")))
    bins, curve = mistakes.calibration, mistakes.operating
    filled = (bins.samples > 0).nonzero().flatten().tolist()
    return (
        *panels,
        Panel(
            "calibration",
            titles["calibration"],
            f"Expected calibration error{_scaled(mistakes.temperature)}: {100 * bins.error:.2f} %. Below the dashed line the "
            "model is overconfident.",
            {"": figures.calibration(bins)},
            Table(
                ("confidence", "accuracy", "samples"),
                [
                    (round(float(bins.confidence[i]), 4), round(float(bins.accuracy[i]), 4), int(bins.samples[i]))
                    for i in filled
                ],
            ),
        ),
        Panel(
            "operating",
            titles["operating"],
            "From the root, the answer follows the most probable branch while its probability is at least a threshold "
            "(numbers on the curve). With a higher threshold, answers are less specific (specificity) and more often correct "
            "(correctness).",
            {"": figures.operating_curve(curve)},
            Table(
                ("threshold", "specificity", "correctness", "answers that are classes", "no answer"),
                [tuple(round(v, 4) for v in row) for row in torch.stack(list(curve)).T.tolist()[::5]],
            ),
        ),
    )


def map_panel(confusions: Confusions, groups: Groups | None, title: str) -> Panel:
    """Return the panel of the confusion matrix."""
    counts, names = confusions.counts, confusions.names
    wrong = counts.clone().fill_diagonal_(0).nonzero().tolist()
    listed = sorted(((names[i], names[j], int(counts[i, j])) for i, j in wrong), key=lambda row: -row[2])
    return Panel(
        "confusions",
        title,
        "Rows are true classes, columns predictions, both in the order of the tree: mistakes near the diagonal are between "
        "similar classes. Gray cells are correct answers.",
        {"": figures.confusion_counts(confusions, groups)},
        Table(("true", "predicted", "count"), [(*row,) for row in listed]),
        wide=len(names) > NARROW,
    )


def _scaled(temperature: float) -> str:
    return "" if temperature == 1 else f" at the run's temperature of {temperature:.3g}"


def costliest_part(
    found: Worst | Costliest | None, images: Sequence[Sequence[str]] = (), *, unit: str = "distance", wide: bool = False
) -> CostliestPart:
    """Return the costliest confusions with their images.

    Args:
        found: The confusions and the cost of all mistakes; None if they are not known.
        images: Data URIs of the images of each confusion.
        unit: What one confusion costs: "distance" in the tree, "cost" from a table, or empty if each costs 1.
        wide: Whether the part takes the whole width.
    """
    title = "Costliest confusions"
    if found is None:
        return CostliestPart(title, "", (), unit, wide)
    if not found.confusions:
        return CostliestPart(title, "There are no mistakes on the test set.", (), unit, wide)
    shown: list[Sequence[str]] = [*images, *[()] * (len(found.confusions) - len(images))]
    examples = tuple(Example(*confusion, tuple(own)) for confusion, own in zip(found.confusions, shown, strict=True))
    share = sum(confusion.cost for confusion in found.confusions) / found.total
    together = "This confusion makes" if len(examples) == 1 else f"These {len(examples)} confusions make"
    note = f"{COSTS_OF_ONE[unit]} {together} up {100 * share:.0f} % of the cost of all mistakes."
    return CostliestPart(title, note, examples, unit, wide)


def decision_listing(rule: CostRule) -> Listing:
    """Return the table on cost-based decisions."""
    changed = rule.changed
    note = (
        "Choosing the class of least expected distance in the tree instead of the most probable class changes "
        f"{counted(changed.different, 'decision')}: {changed.only_b:,} {become(changed.only_b)} correct and "
        f"{changed.only_a:,} {become(changed.only_a)} wrong."
    )
    rows = [_decision("most probable class", rule.before), _decision("least expected cost", rule.after)]
    columns = ("decision", "accuracy %", "severity", "AHD@5")
    return Listing("Effect of cost-based decisions (CRM)", note, Table(columns, rows), numbers=True)


def become(count: int) -> str:
    """Return the verb for a number of decisions."""
    return "becomes" if count == 1 else "become"


def _decision(name: str, measured: Measured) -> tuple[object, ...]:
    severity = None if isnan(measured.severity) else f"{measured.severity:.3f}"
    return (name, f"{100 * measured.accuracy:.2f}", severity, f"{measured.ahd5:.3f}")
