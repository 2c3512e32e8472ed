"""Panels on what a model gets wrong."""

from collections.abc import Sequence
from math import isnan

import torch

from labelkin.report import figures
from labelkin.report.groups import Groups
from labelkin.report.mistakes import CostRule, Measured, Mistakes
from labelkin.report.parts import NARROW, Example, Listing, Panel, Table

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
