"""Check the claims of a paper about its figures on runs. A check returns whether the claim holds, or None, and the evidence."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from labelkin.papers._measured import Arms, Run, fluctuation, mean_curve, measured, paired_by_seed, reached
from labelkin.papers._published import Figure, Measure, published_table
from labelkin.papers._recipe import Recipe

ACCURACY = Measure("accuracy", "%", "higher")
MSE = Measure("mse", "squared digits", "lower")


class Checked(NamedTuple):
    """A claim and the result of its check."""

    claim: str  # one sentence
    holds: bool | None  # None if it could not be checked
    found: str  # a description of the evidence
    settled: bool = True  # False if the difference is not significant


Found = tuple[bool | None, str] | tuple[bool | None, str, bool]
Columns = Mapping[str, Arms]


def check(claim: Mapping[str, Any], recipe: Recipe, runs: Columns) -> Checked:
    """Check a claim of a recipe on its runs."""
    published = recipe.published
    words = published.claims[claim["claim"]] if isinstance(published, Figure) else claim["claim"]
    arms = [claim[key] for key in ("of", "than") if key in claim] + list(claim.get("arms", ()))
    absent = [f"{column}, {row}" for column, row in arms if not runs.get(column, {}).get(row)]
    if absent:
        return Checked(words, None, f"not run: {'; '.join(absent)}")
    return Checked(words, *CHECKS[claim["check"]](claim, runs))


def _arm(runs: Columns, place: Sequence[str]) -> Sequence[Run]:
    column, row = place
    return runs[column][row]


def _named(place: Sequence[str]) -> str:
    return " ".join(part for part in place if part)


def _better(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that one row has better values than another."""
    measure = MSE if claim.get("measure") == "mse" else ACCURACY
    ours, theirs = (measured(measure, _arm(runs, claim[key])) for key in ("of", "than"))
    if ours is None or theirs is None:
        return None, f"{measure.name} was not measured"
    difference = paired_by_seed(ours, theirs)
    holds = (difference.mean > 0) == (measure.better == "higher") and difference.mean != 0
    values = f"{_named(claim['of'])} {ours.mean:.2f}, {_named(claim['than'])} {theirs.mean:.2f} ({measure.unit})"
    return holds, f"{values}, {len(ours.values)} seed{'s' if len(ours.values) > 1 else ''}", difference.shown


def _alike(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that the accuracies of all rows lie within `within` points; this limit is not the paper's."""
    places = claim.get("arms") or [
        (column, row) for column, arms in runs.items() for row, found in arms.items() if found
    ]
    means = {_named(place): 100 * fmean(run.final["accuracy"] for run in _arm(runs, place)) for place in places}
    if len(means) < 2:
        return None, "not run: fewer than two rows"
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    between = means[best] - means[worst]
    span = f"from {means[worst]:.2f} % ({worst}) to {means[best]:.2f} % ({best})"
    return between <= claim["within"], f"{span}: {between:.2f} points; our limit is {claim['within']:g}"


def _faster(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that one row reaches the best accuracy of another in fewer epochs than that one."""
    ours, theirs = _arm(runs, claim["of"]), _arm(runs, claim["than"])
    epoch, own = reached(ours, theirs), reached(theirs, theirs)
    length = len(mean_curve(theirs))
    if own is None:
        return None, "the accuracy by epoch is not known"
    if epoch is None:
        return (
            False,
            f"{_named(claim['of'])} never reaches the best of {_named(claim['than'])} (epoch {own} of {length})",
        )
    places = f"in epoch {epoch}; that one reaches it in epoch {own} of {length}"
    return epoch < own, f"{_named(claim['of'])} reaches the best of {_named(claim['than'])} {places}"


def _steadier(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that the test accuracy of one row fluctuates less."""
    return _calmer(claim, runs, lambda run: run.curve, "test accuracy", 100.0)


def _steadier_loss(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that the training loss of one row fluctuates less."""
    return _calmer(claim, runs, lambda run: run.losses, "training loss", 1.0)


def _calmer(
    claim: Mapping[str, Any], runs: Columns, series: Callable[[Run], Sequence[float]], what: str, scale: float
) -> Found:
    values = []
    for key in ("of", "than"):
        found = [series(run) for run in _arm(runs, claim[key])]
        if not all(len(one) > 3 for one in found):
            return None, f"the {what} by epoch is not known, or there are too few epochs"
        values.append(scale * fmean(fluctuation(one) for one in found))
    first = f"mean change of the {what} per epoch in the second half: {_named(claim['of'])} {values[0]:.3g}"
    return values[0] < values[1], f"{first}, {_named(claim['than'])} {values[1]:.3g}"


def _lower_loss(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that one row has the lower training loss in the last epoch."""
    found = [[run.losses for run in _arm(runs, claim[key])] for key in ("of", "than")]
    if not all(losses for arm in found for losses in arm):
        return None, "the training loss by epoch is not known"
    ours, theirs = (fmean(losses[-1] for losses in arm) for arm in found)
    return ours < theirs, f"last training loss: {_named(claim['of'])} {ours:.4g}, {_named(claim['than'])} {theirs:.4g}"


def _best(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that a row is best in a certain column."""
    row = claim["of"][1]
    means = {c: 100 * fmean(run.final["accuracy"] for run in arms[row]) for c, arms in runs.items() if arms.get(row)}
    best = max(means, key=means.__getitem__)
    values = ", ".join(f"{column} {mean:.2f} %" for column, mean in means.items())
    return (best == claim["of"][0], values) if len(means) > 1 else (None, f"not run: the other columns ({values})")


def _faster_loss(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check the speedup of the tensor implementation in 002's appendix."""
    published = published_table("002", "appendix")
    column = next(iter(published.cells))
    if column not in runs:
        return None, "not timed"
    cells = [published.cell(column, row, "seconds") for row in ("over samples", "tensors")]
    before, after = (cell.value for cell in cells if cell is not None)
    ours = [fmean(run.final["seconds"] for run in runs[column][row]) for row in ("over samples", "tensors")]
    return ours[0] > ours[1], f"speedup {ours[0] / ours[1]:.0f} here, {before / after:.0f} in the paper"


def _drawn(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Return no verdict: the claim is about a picture."""
    return None, "this is a picture; `labelkin report` draws it from these runs"


def _inside_run(name: str) -> Callable[[Mapping[str, Any], Columns], Found]:
    """Return a check of `_claim_checks`, which reads models, outputs or data and imports torch."""

    def call(claim: Mapping[str, Any], runs: Columns) -> Found:
        from labelkin.papers import _claim_checks

        if "of" in claim and any(run.record is None for run in _arm(runs, claim["of"])):
            return None, "the folders of the runs are not available"
        result: Found = getattr(_claim_checks, name)(claim, runs)
        return result

    return call


CHECKS: dict[str, Callable[[Mapping[str, Any], Columns], Found]] = {
    "better": _better,
    "alike": _alike,
    "faster": _faster,
    "steadier": _steadier,
    "steadier-loss": _steadier_loss,
    "lower-loss": _lower_loss,
    "best": _best,
    "drawn": _drawn,
    "faster-loss": _faster_loss,
    "nearest": _inside_run("nearest"),
    "halves": _inside_run("halves"),
    "confusions": _inside_run("confusions"),
    "class-accuracies": _inside_run("class_accuracies"),
    "approach": _inside_run("approach"),
    "similar": _inside_run("similar"),
    "similar-halves": _inside_run("similar_halves"),
}
