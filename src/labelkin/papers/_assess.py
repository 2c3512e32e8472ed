"""Judge every cell and claim of a paper against measured runs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labelkin.papers import _measured as verdict
from labelkin.papers._claims import Checked, check
from labelkin.papers._measured import Arms, Measured, Run, Verdict, judge, measured
from labelkin.papers._published import Cell, Figure, Measure, Table
from labelkin.papers._recipe import Part, Recipe

ACCURACY = Measure("accuracy", "%", "higher")
NOT_ASKED = "not asked for"
NOT_COMPARED = ("seconds", "seconds_an_epoch")  # another machine


class Conditions(NamedTuple):
    """How the runs differ from the paper's, as far as verdicts go."""

    protocol: str = "clean"
    scale: float = 1.0  # of the epochs
    subset: float | None = None  # of the training samples
    other: Mapping[str, str] = {}  # by column: what was trained in place of what, in words
    not_run: Mapping[str, str] = {}  # by column, or column and row: why

    @property
    def same(self) -> bool:
        return self.scale == 1.0 and self.subset is None


class Judged(NamedTuple):
    """A cell."""

    column: str
    row: str
    measure: Measure
    published: Cell | None  # None: printed blank, or nothing is printed
    measured: Measured | None
    verdict: Verdict


class Reproduction(NamedTuple):
    recipe: Recipe
    conditions: Conditions
    cells: list[Judged]
    claims: list[Checked]


def assess(recipe: Recipe, runs: Mapping[str, Arms], conditions: Conditions) -> Reproduction:
    """`runs` by column and row, as far as there are any."""
    printed = recipe.printed
    if isinstance(printed, Figure):
        cells = [cell for part in recipe.parts for cell in _measured_alone(part, runs.get(part.column, {}))]
    else:
        cells = _cells(recipe, printed, runs, conditions)
    checked = [check(claim, recipe, runs) for claim in recipe.claims]
    return Reproduction(recipe, conditions, cells, checked)


def _cells(recipe: Recipe, table: Table, runs: Mapping[str, Arms], conditions: Conditions) -> list[Judged]:
    found = []
    for column, rows in table.cells.items():
        for row, measures in rows.items():
            part = _part_of(recipe, column, row)
            arms = _with_best(recipe, runs.get(column, {}), table)
            for name in measures:
                if table.measures[name].better is not None:
                    found.append(_cell(recipe, table, part, (column, row, name), arms, conditions))
    return found


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
        word = "not measured" if value is None else "nothing printed to compare with"
        return Judged(column, row, measure, published, value, _unrun(word))
    if name in NOT_COMPARED:
        return Judged(column, row, measure, published, value, _unrun("not compared: another machine"))
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
    """The runs behind each row and measure; a row that stands for the best takes those of the best arm."""
    if not recipe.best_rows:
        return {(row, name): runs for row, runs in arms.items() for name in table.measures}
    found: dict[tuple[str, str], Sequence[Run]] = {}
    for row, by in recipe.best_rows.items():
        for name, measure in table.measures.items():
            chosen_by = measure if by == "each" else table.measures[by]
            if measure.better is not None and (best := _best(arms, chosen_by)) is not None:
                found[row, name] = best
    return found


def _best(arms: Arms, measure: Measure) -> Sequence[Run] | None:
    values = {row: value for row, runs in arms.items() if (value := measured(measure, runs)) is not None}
    if not values:
        return None
    sign = 1 if measure.better == "higher" else -1
    return arms[max(values, key=lambda row: sign * values[row].mean)]


def _measured_alone(part: Part, arms: Arms) -> list[Judged]:
    """A figure's rows: accuracies, to which nothing is printed."""
    rows = dict.fromkeys([*part.plan.get("objectives", {}), *arms])
    return [
        Judged(part.column, row, ACCURACY, None, value, _unrun("nothing printed to compare with"))
        for row in rows
        if (value := measured(ACCURACY, arms.get(row, ()))) is not None
    ]


def _part_of(recipe: Recipe, column: str, row: str) -> Part | None:
    """A column may have several parts, each with rows of its own."""
    parts = [part for part in recipe.parts if part.column == column]
    return next((p for p in parts if row in p.plan.get("objectives", {})), parts[0] if parts else None)


def _why_not(recipe: Recipe, part: Part | None, column: str, row: str, conditions: Conditions) -> str:
    if conditions.not_run.get(column) == NOT_ASKED:
        return NOT_ASKED
    if row in recipe.not_run:
        return recipe.not_run[row]
    if part is not None and part.not_run is not None:
        return part.not_run
    if part is None or (part.plan and not recipe.best_rows and row not in part.plan["objectives"]):
        return "others' figures, printed for comparison"
    return conditions.not_run.get(f"{column} / {row}") or conditions.not_run.get(column, "no run of it here")


def _unrun(words: str) -> Verdict:
    return Verdict(None, float("nan"), None, words)


def _speed(published: Cell | None, value: Measured | None) -> str:
    """Epochs saved: a share, or never."""
    if value is None or published is None:
        if value is None and published is None:
            return "never reached, as printed"
        return "never reached, unlike in print" if value is None else "reached, unlike in print"
    return "reached, as printed" if value.mean >= 0 else "reached late"


def summary(found: Reproduction) -> str:
    printed = [cell for cell in found.cells if cell.published is not None]
    run = [cell for cell in printed if cell.measured is not None]
    parts = [_levels(printed, run)] if printed else []
    parts += [_directions(run), _claims(found)]
    if run and not found.conditions.same:
        parts.append("The runs are not the paper's in length or data, so only directions are judged.")
    return " ".join(part for part in parts if part) or "Nothing was run."


def _levels(printed: list[Judged], run: list[Judged]) -> str:
    words = (verdict.WITHIN, verdict.BETTER, verdict.WORSE)
    counted = [(word, sum(cell.verdict.level == word for cell in run)) for word in words]
    told = ", ".join(f"{count} {word}" for word, count in counted if count)
    return f"Of {len(printed)} printed numbers {len(run)} were measured{f': {told}' if told else ''}."


def _directions(run: list[Judged]) -> str:
    ways = [cell.verdict.direction for cell in run if cell.verdict.direction not in (None, verdict.FLAT)]
    if not ways:
        return ""
    settled, leaning = ways.count(verdict.REPRODUCED), ways.count(verdict.UNSETTLED)
    compared = f"{len(ways)} comparison{'s' if len(ways) > 1 else ''}"
    return (
        f"The printed direction is reproduced in {settled} of {compared}, and seen without being settled in {leaning}."
    )


def _claims(found: Reproduction) -> str:
    if not found.claims:
        return ""
    tested = sum(claim.holds is not None for claim in found.claims)
    held = sum(claim.holds is True and claim.settled for claim in found.claims)
    leaning = sum(claim.holds is True and not claim.settled for claim in found.claims)
    count = f"{len(found.claims)} claim{'s' if len(found.claims) > 1 else ''}"
    told = f"Of {count} {tested} could be checked, and {held} held"
    return f"{told}, beside {leaning} that did without being settled." if leaning else f"{told}."
