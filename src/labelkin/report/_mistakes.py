"""What a model gets wrong: confusions, their cost, better decisions, and the panels that show them."""

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin import decide, metrics
from labelkin.analysis import Confusions, Costliest, Disagreement, confusion_matrix, costliest, disagreement
from labelkin.decide import OperatingCurve
from labelkin.metrics import Calibration
from labelkin.report import figures
from labelkin.report._groups import Groups
from labelkin.report._page_model import NARROW, Example, Listing, Panel, Table
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


NO_PROBABILITIES = "This objective defines no probabilities."


def mistake_panels(mistakes: Mistakes | None, groups: Groups | None, why: str) -> tuple[Panel, ...]:
    titles = {
        "confusions": "Which classes it takes for which",
        "calibration": "Whether its confidence is honest",
        "operating": "What falling back to a superclass buys",
    }
    if mistakes is None:
        return tuple(Panel(key, title, "", missing=why) for key, title in titles.items())
    counts, names = mistakes.confusions.counts, mistakes.confusions.names
    wrong = counts.clone().fill_diagonal_(0).nonzero().tolist()
    listed = sorted(((names[i], names[j], int(counts[i, j])) for i, j in wrong), key=lambda row: -row[2])
    panels = [
        Panel(
            "confusions",
            titles["confusions"],
            "Rows are the true class, columns the prediction, both in the order of the tree: mistakes near the diagonal are "
            "mistakes among kin. Grey cells are right answers.",
            {"": figures.confusion_counts(mistakes.confusions, groups)},
            Table(("true", "predicted", "times"), [(*row,) for row in listed]),
            wide=len(names) > NARROW,
        )
    ]
    if mistakes.calibration is None or mistakes.operating is None:
        return (*panels, *(Panel(k, titles[k], "", missing=NO_PROBABILITIES) for k in ("calibration", "operating")))
    bins, curve = mistakes.calibration, mistakes.operating
    filled = (bins.samples > 0).nonzero().flatten().tolist()
    return (
        *panels,
        Panel(
            "calibration",
            titles["calibration"],
            f"Expected calibration error {100 * bins.error:.2f} %. Below the dashed line it is too sure of itself.",
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
            "From the root, the answer follows the most probable branch for as long as its probability reaches a threshold "
            "(numbers on the curve). With a higher threshold answers say less (specificity) and are right more often "
            "(correctness).",
            {"": figures.operating_curve(curve)},
            Table(
                ("threshold", "specificity", "correctness", "answers that are a class"),
                [tuple(round(v, 4) for v in row) for row in torch.stack(list(curve)).T.tolist()[::5]],
            ),
        ),
    )


def examples(mistakes: Mistakes, images: Sequence[Sequence[str]]) -> tuple[Example, ...]:
    shown = list(images) + [()] * (len(mistakes.costliest.confusions) - len(images))
    return tuple(
        Example(*confusion, tuple(own)) for confusion, own in zip(mistakes.costliest.confusions, shown, strict=True)
    )


def examples_note(mistakes: Mistakes | None, *, has_images: bool) -> str:
    if mistakes is None:
        return ""
    if not mistakes.costliest.confusions:
        return "There are no mistakes on the test set."
    share = sum(confusion.cost for confusion in mistakes.costliest.confusions) / mistakes.costliest.total
    pictures = "" if has_images else " No pictures: the data hold no images, or are not at hand."
    return f"Times the distance in the tree. Together they are {100 * share:.0f} % of what all mistakes cost.{pictures}"


def decision_listing(rule: CostRule) -> Listing:
    changed = rule.changed
    note = (
        f"Naming the class of least expected distance in the tree instead of the most probable one (CRM) changes "
        f"{changed.different:,} of the answers: {changed.only_b:,} become right and {changed.only_a:,} wrong."
    )
    rows = [_decision("most probable class", rule.before), _decision("least expected cost", rule.after)]
    columns = ("decision", "accuracy %", "severity", "AHD@5")
    return Listing("What deciding by cost changes", note, Table(columns, rows), numbers=True)


def _decision(name: str, measured: Measured) -> tuple[object, ...]:
    severity = None if isnan(measured.severity) else f"{measured.severity:.3f}"
    return (name, f"{100 * measured.accuracy:.2f}", severity, f"{measured.ahd5:.3f}")
