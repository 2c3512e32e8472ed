"""Compare every cell and claim of a table or figure with measured runs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labelkin.papers._claims import Checked, check
from labelkin.papers._measured import (
    BETTER,
    FLAT,
    REPRODUCED,
    UNSETTLED,
    WITHIN,
    WORSE,
    Arms,
    Measured,
    Run,
    Verdict,
    judge,
    measured,
)
from labelkin.papers._published import Cell, Figure, Measure, Table
from labelkin.papers._recipe import Part, Recipe

NOTHING_PUBLISHED = "no published number to compare with"
ACCURACY = Measure("accuracy", "%", "higher")
NOT_REQUESTED = "not requested"
NOT_COMPARED = ("seconds", "seconds_an_epoch")  # measures that depend on the machine


class Conditions(NamedTuple):
    """The differences between the runs and those of the paper that affect the verdicts."""

    protocol: str = "clean"
    scale: float = 1.0  # share of the paper's epochs
    subset: float | None = None  # share of the training samples
    other: Mapping[str, str] = {}  # column -> a description of how its runs differ from the paper's
    not_run: Mapping[str, str] = {}  # column, or "column / row" -> why it was not run

    @property
    def same(self) -> bool:
        """Whether the runs have the length and the data of the paper's."""
        return self.scale == 1.0 and self.subset is None


class Judged(NamedTuple):
    """A cell with its published and measured values and the verdict."""

    column: str
    row: str
    measure: Measure
    published: Cell | None  # None if the paper gives no number
    measured: Measured | None
    verdict: Verdict


class Reproduction(NamedTuple):
    """A table or figure with the verdict on each cell and claim."""

    recipe: Recipe
    conditions: Conditions
    cells: list[Judged]
    claims: list[Checked]


def assess(recipe: Recipe, runs: Mapping[str, Arms], conditions: Conditions) -> Reproduction:
    """Compare the runs, given by column and row, with the published table or figure."""
    published = recipe.published
    if isinstance(published, Figure):
        cells = [cell for part in recipe.parts for cell in _measured_alone(part, runs.get(part.column, {}))]
    else:
        cells = _cells(recipe, published, runs, conditions)
    checked = [check(claim, recipe, runs) for claim in recipe.claims]
    return Reproduction(recipe, conditions, cells, checked)


def _cells(recipe: Recipe, table: Table, runs: Mapping[str, Arms], conditions: Conditions) -> list[Judged]:
    judged = []
    for column, rows in table.cells.items():
        for row, measures in rows.items():
            part = _part_of(recipe, column, row)
            arms = _with_best(recipe, runs.get(column, {}), table)
            for name in measures:
                if table.measures[name].better is not None:
                    judged.append(_cell(recipe, table, part, (column, row, name), arms, conditions))
    return judged


def _cell(
    recipe: Recipe,
    table: Table,
    part: Part | None,
    place: tuple[str, str, str],
    arms: Mapping[tuple[str, str], Sequence[Run]],
    conditions: Conditions,
) -> Judged:
    column, row, name = place
    measure, published = table.measures[name], table.cell(*place)
    base = None if part is None else part.plan.get("reference")
    ours = arms.get((row, name), ())
    theirs = arms.get((base, name), ()) if base is not None else ()
    value = measured(measure, ours, theirs)
    if not ours:
        reason = _why_not(recipe, part, column, row, conditions)
        return Judged(column, row, measure, published, None, _unrun(f"not run: {reason}"))
    if name == "epochs_saved":
        return Judged(column, row, measure, published, value, _unrun(_speed(published, value)))
    if value is None or published is None:
        word = "not measured" if value is None else NOTHING_PUBLISHED
        return Judged(column, row, measure, published, value, _unrun(word))
    if name in NOT_COMPARED:
        return Judged(column, row, measure, published, value, _unrun("not compared: measured on another machine"))
    if part is not None and part.unjudged is not None:
        return Judged(column, row, measure, published, value, _unrun(f"not judged: {part.unjudged}"))
    against = None if base is None else table.cell(column, base, name)
    reference = measured(measure, theirs) if row != base and against is not None else None
    pair = None if reference is None or against is None else (against, reference)
    same = conditions.same and column not in conditions.other
    return Judged(
        column, row, measure, published, value, judge(published, value, measure.better, reference=pair, levels=same)
    )


def _with_best(recipe: Recipe, arms: Arms, table: Table) -> dict[tuple[str, str], Sequence[Run]]:
    """Return the runs of each row and measure; a row for the best of several takes the runs of the best arm."""
    if not recipe.best_rows:
        return {(row, name): runs for row, runs in arms.items() for name in table.measures}
    best_runs: dict[tuple[str, str], Sequence[Run]] = {}
    for row, by in recipe.best_rows.items():
        for name, measure in table.measures.items():
            chosen_by = measure if by == "each" else table.measures[by]
            if measure.better is not None and (best := _best(arms, chosen_by)) is not None:
                best_runs[row, name] = best
    return best_runs


def _best(arms: Arms, measure: Measure) -> Sequence[Run] | None:
    values = {row: value for row, runs in arms.items() if (value := measured(measure, runs)) is not None}
    if not values:
        return None
    sign = 1 if measure.better == "higher" else -1
    return arms[max(values, key=lambda row: sign * values[row].mean)]


def _measured_alone(part: Part, arms: Arms) -> list[Judged]:
    """Return the accuracies of a figure's rows, for which the paper gives no numbers."""
    rows = dict.fromkeys([*part.plan.get("objectives", {}), *arms])
    return [
        Judged(part.column, row, ACCURACY, None, value, _unrun(NOTHING_PUBLISHED))
        for row in rows
        if (value := measured(ACCURACY, arms.get(row, ()))) is not None
    ]


def _part_of(recipe: Recipe, column: str, row: str) -> Part | None:
    """Return the part of a column that has the row; a column may have several parts with different rows."""
    parts = [part for part in recipe.parts if part.column == column]
    return next((p for p in parts if row in p.plan.get("objectives", {})), parts[0] if parts else None)


def _why_not(recipe: Recipe, part: Part | None, column: str, row: str, conditions: Conditions) -> str:
    if conditions.not_run.get(column) == NOT_REQUESTED:
        return NOT_REQUESTED
    if row in recipe.not_run:
        return recipe.not_run[row]
    if part is not None and part.not_run is not None:
        return part.not_run
    if part is None or (part.plan and not recipe.best_rows and row not in part.plan["objectives"]):
        return "the paper cites this number from other work"
    return conditions.not_run.get(f"{column} / {row}") or conditions.not_run.get(column, "not trained")


def _unrun(words: str) -> Verdict:
    return Verdict(None, float("nan"), None, words)


def _speed(published: Cell | None, value: Measured | None) -> str:
    """Return the verdict on epochs saved: whether the reference's best accuracy is reached, here and in the paper."""
    if value is None or published is None:
        if value is None and published is None:
            return "never reached, as published"
        return "never reached, unlike in the paper" if value is None else "reached, unlike in the paper"
    return "reached, as published" if value.mean >= 0 else "reached late"


def summary(found: Reproduction) -> str:
    """Summarize a reproduction in a few sentences."""
    published = [cell for cell in found.cells if cell.published is not None]
    run = [cell for cell in published if cell.measured is not None]
    parts = [_levels(published, run)] if published else []
    parts += [_directions(run), _claims(found)]
    if run and not found.conditions.same:
        parts.append("The runs differ from the paper's in length or data, so only directions are compared.")
    return " ".join(part for part in parts if part) or "Nothing was run."


def _levels(published: list[Judged], run: list[Judged]) -> str:
    words = (WITHIN, BETTER, WORSE)
    counted = [(word, sum(cell.verdict.level == word for cell in run)) for word in words]
    counts = ", ".join(f"{count} {word}" for word, count in counted if count)
    return f"{len(run)} of {len(published)} published numbers were measured{f': {counts}' if counts else ''}."


def _directions(run: list[Judged]) -> str:
    ways = [cell.verdict.direction for cell in run if cell.verdict.direction not in (None, FLAT)]
    if not ways:
        return ""
    significant, leaning = ways.count(REPRODUCED), ways.count(UNSETTLED)
    compared = f"{len(ways)} comparison{'s' if len(ways) > 1 else ''}"
    return (
        f"The published direction is reproduced in {significant} of {compared}, and has the same sign without being "
        f"significant in {leaning}."
    )


def _claims(found: Reproduction) -> str:
    if not found.claims:
        return ""
    tested = sum(claim.holds is not None for claim in found.claims)
    held = sum(claim.holds is True and claim.settled for claim in found.claims)
    leaning = sum(claim.holds is True and not claim.settled for claim in found.claims)
    count = f"{len(found.claims)} claim{'s' if len(found.claims) > 1 else ''}"
    sentence = f"{tested} of {count} could be checked; {held} held"
    return f"{sentence}, and {leaning} held without being significant." if leaning else f"{sentence}."
