"""Question input that is readable but probably misunderstood: columns that are not classes, names in the wrong order."""

from collections.abc import Collection, Iterator, Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from labelkin._checks import InputError, counted, listed
from labelkin.audit._findings import Basics, Hierarchy
from labelkin.audit._schema import SHOWN, Floats, Kind

if TYPE_CHECKING:
    from labelkin.audit._predictions import Predictions

SUM_TOLERANCE = 1e-2  # of a row of probabilities
LEAST_ROWS = 3  # fewer whole numbers may all differ by accident
FEW, MANY = 10, 100  # samples from which an accuracy below chance, or not clearly above it, is questioned
LEAST_MISTAKES = 30
ABOUT_SAMPLES = (
    "id ids idx index row uid uuid key sample sample_id image_id file filename path fold split weight date time loss"
)
NOT_CLASSES = frozenset(ABOUT_SAMPLES.split())  # usual names of columns that identify or describe a sample


def check_class_columns(
    names: Sequence[str], scores: Floats, kind: Kind, *, labels: Collection[str], source: str
) -> None:
    """Refuse columns that were taken for classes by default but do not look like classes.

    A column that some sample has as its label is a class. Any other is refused if its values number the rows, are whole
    numbers that all differ, keep probabilities from summing to 1, or if it has one of the usual names of an id.

    Args:
        names: The columns.
        scores: (n, K) their values.
        kind: What the scores are.
        labels: The true labels; may be empty.
        source: The name of the source.
    """
    reasons = {name: _reason(names, scores, kind, k, labels) for k, name in enumerate(names) if name not in labels}
    found = [(name, why) for name, why in reasons.items() if why is not None]
    if not found:
        return
    odd = [name for name, _ in found]
    rest = [name for name in names if name not in odd]
    raise InputError(
        f"columns: {listed(odd)} in {source} {'does' if len(odd) == 1 else 'do'} not look like "
        f"{'a class' if len(odd) == 1 else 'classes'} ({found[0][1]}); expected one column of scores per class, so leave out "
        f"the others (--ignore), or name the columns with the scores (--columns), perhaps {listed(rest)}."
    )


def _reason(names: Sequence[str], scores: Floats, kind: Kind, k: int, labels: Collection[str]) -> str | None:
    """Return why column `k` is not a class; None if it may be one."""
    column, whole = scores[:, k], _whole(scores)
    if whole[k] and len(column) >= LEAST_ROWS:
        if (np.diff(column) == 1).all():
            return "its values number the rows"
        if not whole.all() and len(np.unique(column)) == len(column):
            return "its values are whole numbers that all differ"
    if kind == "probs" and len(names) > 2:
        sums = scores.sum(1)
        if (abs(sums - 1) > SUM_TOLERANCE).any() and (abs(sums - column - 1) <= SUM_TOLERANCE).all():
            return "without it, the probabilities of each row sum to 1"
    by_name = any(name in labels for name in names)
    if names[k].strip().lower() in NOT_CLASSES and (by_name or (whole[k] and not whole.all())):
        return "no sample has it as its label" if by_name else "its values are whole numbers"
    return None


def _whole(scores: Floats) -> npt.NDArray[np.bool_]:
    result: npt.NDArray[np.bool_] = (scores == np.floor(scores)).all(0)
    return result


def first_matches(names: Sequence[str]) -> str:
    """Return the first five positions with their class names as text: `0 = 'cat', 1 = 'dog'`."""
    shown = ", ".join(f"{k} = {name!r}" for k, name in enumerate(names[:SHOWN]))
    return shown if len(names) <= SHOWN else f"{shown}, ..."


def questions(given: "Predictions", basics: Basics, hierarchy: Hierarchy | None) -> Iterator[str]:
    """Yield what makes the result doubtful.

    Args:
        given: The predictions.
        basics: Their accuracy; one at chance is questioned.
        hierarchy: Their severity, if the order of the classes is only assumed; one at chance is questioned.
    """
    count, chance = len(given.true), _chance(given)
    at_chance = basics.accuracy <= chance if count < MANY else basics.accuracy_interval.low <= chance
    if count >= FEW and at_chance:
        order = f"class names are in the order of the scores ({first_matches(given.classes)}) and that the "
        yield (
            f"The accuracy of {100 * basics.accuracy:.2f} % is no better than chance ({100 * chance:.2f} %); check that the "
            f"{'' if given.kind == 'labels' else order}labels belong to these rows."
        )
    elif hierarchy is not None and basics.mistakes >= LEAST_MISTAKES and _no_milder(hierarchy):
        yield (
            f"The {counted(basics.mistakes, 'mistake')} are no milder in the taxonomy than random ones; check that the class "
            f"names are in the order of the scores ({first_matches(given.classes)})."
        )


def _no_milder(found: Hierarchy) -> bool:
    return not isnan(found.severity) and found.severity >= found.severity_by_chance


def _chance(given: "Predictions") -> float:
    """Return the accuracy of predictions that are as frequent as these, but independent of the true classes."""
    pairs = given.pairs
    shares = [torch.zeros(len(given.classes), dtype=torch.float64) for _ in range(2)]
    for share, classes in zip(shares, (pairs.true, pairs.predicted), strict=True):
        share.index_add_(0, classes, pairs.times.double() / len(given.true))
    return float(shares[0] @ shares[1])
