"""What a paper says of a figure, checked on runs: each check gives yes, no, or why it cannot tell."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from labelkin.papers._measured import Arms, Run, apart, mean_curve, measured, reached, restlessness
from labelkin.papers._published import Figure, Measure, table
from labelkin.papers._recipe import Recipe

ACCURACY = Measure("accuracy", "%", "higher")
MSE = Measure("mse", "squared digits", "lower")


class Checked(NamedTuple):
    claim: str  # in words
    holds: bool | None  # None: could not be told
    found: str
    settled: bool = True  # False: the seeds lean so without showing it


Found = tuple[bool | None, str] | tuple[bool | None, str, bool]
Columns = Mapping[str, Arms]


def check(claim: Mapping[str, Any], recipe: Recipe, runs: Columns) -> Checked:
    printed = recipe.printed
    words = printed.claims[claim["claim"]] if isinstance(printed, Figure) else claim["claim"]
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
    """Of two rows; settled or not is said."""
    measure = MSE if claim.get("measure") == "mse" else ACCURACY
    ours, theirs = (measured(measure, _arm(runs, claim[key])) for key in ("of", "than"))
    if ours is None or theirs is None:
        return None, f"{measure.name} was not measured"
    difference = apart(ours, theirs)
    holds = (difference.mean > 0) == (measure.better == "higher") and difference.mean != 0
    told = f"{_named(claim['of'])} {ours.mean:.2f}, {_named(claim['than'])} {theirs.mean:.2f} ({measure.unit})"
    return holds, f"{told}, {len(ours.values)} seed{'s' if len(ours.values) > 1 else ''}", difference.shown


def _alike(claim: Mapping[str, Any], runs: Columns) -> Found:
    """All rows end within so many points; how many is ours."""
    places = claim.get("arms") or [
        (column, row) for column, arms in runs.items() for row, found in arms.items() if found
    ]
    means = {_named(place): 100 * fmean(run.final["accuracy"] for run in _arm(runs, place)) for place in places}
    if len(means) < 2:
        return None, "not run: fewer than two rows"
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    between = means[best] - means[worst]
    told = f"from {means[worst]:.2f} % ({worst}) to {means[best]:.2f} % ({best})"
    return between <= claim["within"], f"{told}: {between:.2f} points, {claim['within']:g} being allowed (ours)"


def _faster(claim: Mapping[str, Any], runs: Columns) -> Found:
    ours, theirs = _arm(runs, claim["of"]), _arm(runs, claim["than"])
    epoch, own = reached(ours, theirs), reached(theirs, theirs)
    length = len(mean_curve(theirs))
    if own is None:
        return None, "no curves"
    if epoch is None:
        return (
            False,
            f"{_named(claim['of'])} never reaches the best of {_named(claim['than'])} (its epoch {own} of {length})",
        )
    return epoch < own, f"{_named(claim['of'])} reaches the other's best in epoch {epoch}, itself in {own}, of {length}"


def _steadier(claim: Mapping[str, Any], runs: Columns) -> Found:
    return _calmer(claim, runs, lambda run: run.curve, "test accuracy", 100.0)


def _steadier_loss(claim: Mapping[str, Any], runs: Columns) -> Found:
    return _calmer(claim, runs, lambda run: run.losses, "training loss", 1.0)


def _calmer(
    claim: Mapping[str, Any], runs: Columns, series: Callable[[Run], Sequence[float]], what: str, scale: float
) -> Found:
    values = []
    for key in ("of", "than"):
        found = [series(run) for run in _arm(runs, claim[key])]
        if not all(len(one) > 3 for one in found):
            return None, f"no {what} by epoch, or too few epochs"
        values.append(scale * fmean(restlessness(one) for one in found))
    told = f"mean change of the {what} over the later half: {_named(claim['of'])} {values[0]:.3g}"
    return values[0] < values[1], f"{told}, {_named(claim['than'])} {values[1]:.3g}"


def _lower_loss(claim: Mapping[str, Any], runs: Columns) -> Found:
    """The training loss of the last epoch."""
    found = [[run.losses for run in _arm(runs, claim[key])] for key in ("of", "than")]
    if not all(losses for arm in found for losses in arm):
        return None, "no training loss by epoch"
    ours, theirs = (fmean(losses[-1] for losses in arm) for arm in found)
    return ours < theirs, f"last training loss: {_named(claim['of'])} {ours:.4g}, {_named(claim['than'])} {theirs:.4g}"


def _best(claim: Mapping[str, Any], runs: Columns) -> Found:
    """The row of that name in the best column."""
    row = claim["of"][1]
    means = {c: 100 * fmean(run.final["accuracy"] for run in arms[row]) for c, arms in runs.items() if arms.get(row)}
    best = max(means, key=means.__getitem__)
    told = ", ".join(f"{column} {mean:.2f} %" for column, mean in means.items())
    return (best == claim["of"][0], told) if len(means) > 1 else (None, f"not run: the other columns ({told})")


def _faster_loss(claim: Mapping[str, Any], runs: Columns) -> Found:
    """002's appendix: how many times as fast, here and in print."""
    printed = table("002", "appendix")
    column = next(iter(printed.cells))
    if column not in runs:
        return None, "not timed"
    cells = [printed.cell(column, row, "seconds") for row in ("over samples", "tensors")]
    before, after = (cell.value for cell in cells if cell is not None)
    ours = [runs[column][row][0].final["seconds"] for row in ("over samples", "tensors")]
    return ours[0] > ours[1], f"x {ours[0] / ours[1]:.0f} here, x {before / after:.0f} in print"


def _drawn(claim: Mapping[str, Any], runs: Columns) -> Found:
    return None, "a picture: `labelkin report` draws it from these runs"


def _looked(name: str) -> Callable[[Mapping[str, Any], Columns], Found]:
    """A check that reads models, outputs or data, and so needs torch."""

    def call(claim: Mapping[str, Any], runs: Columns) -> Found:
        from labelkin.papers import _claim_checks as looking

        if "of" in claim and any(run.record is None for run in _arm(runs, claim["of"])):
            return None, "the runs' folders are not at hand"
        found: Found = getattr(looking, name)(claim, runs)
        return found

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
    "nearest": _looked("nearest"),
    "halves": _looked("halves"),
    "confusions": _looked("confusions"),
    "class-accuracies": _looked("class_accuracies"),
    "approach": _looked("approach"),
    "similar": _looked("similar"),
    "similar-halves": _looked("similar_halves"),
}
