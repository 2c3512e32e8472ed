"""Count what is measured of each table and figure, and the cost of what is not; `labelkin reproduce --list` shows it.

`python -m labelkin.papers` writes it to published/coverage.json, because the results files are not part of the package.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labelkin._checks import counted
from labelkin.papers._published import Figure
from labelkin.papers._recipe import Part, Recipe, recipe, recipe_ids

if TYPE_CHECKING:  # it imports torch, which reading the file does not need
    from labelkin.papers._evidence import Evidence

SEEDS = 3  # of each cell, so that every verdict has an interval
FILE = "coverage.json"


class Coverage(NamedTuple):
    """What is measured of a table or figure, and what the rest costs."""

    numbers: int  # published numbers that were measured
    published: int  # published numbers that a run can measure
    checked: int  # claims that were checked
    claims: int
    seeds: tuple[
        int, int
    ]  # the least and the largest number of seeds of a measured cell; (0, 0) if nothing is measured
    shorter: bool  # whether some runs have fewer epochs than the paper's
    files: tuple[str, ...]
    left_runs: int  # runs that are missing for three seeds per cell
    left_hours: float  # on one H200, one run after another
    basis: str  # of the estimate
    shared: str | None  # the recipe whose runs it takes
    command: str
    why_not: str  # why nothing can be run, or ""

    @property
    def measured(self) -> str:
        """A description of what is measured."""
        if not self.seeds[1] and not self.checked:
            return "no"
        parts = [f"{self.numbers} of {counted(self.published, 'number')}"] if self.published else []
        parts += [f"{self.checked} of {counted(self.claims, 'claim')}"] if self.claims else []
        low, high = self.seeds
        parts += [f"n = {low}" if low == high else f"n = {low} to {high}"] if high else []
        return ", ".join(parts + (["fewer epochs"] if self.shorter else []))

    @property
    def files_named(self) -> str:
        """The results files."""
        return ", ".join(f"`results/{name}.json`" for name in self.files) or "-"

    @property
    def left(self) -> str:
        """A description of the cost of what is not measured."""
        if not self.left_runs:
            return "-" if self.why_not or self.seeds[1] or self.checked else "no training"
        also = f", shared with {self.shared}" if self.shared else ""
        return f"{_in_words(self.left_runs, self.left_hours, self.basis)}{also}"

    @property
    def command_shown(self) -> str:
        """The command that measures the rest."""
        return f"`{self.command}`" if self.left != "-" else "-"


def coverage(known: Mapping[str, "Evidence"]) -> dict[str, Coverage]:
    """Return what is measured and what is not for every table and figure."""
    return {name: _coverage(recipe(name), known.get(name)) for name in recipe_ids()}


def _coverage(found: Recipe, one: "Evidence | None") -> Coverage:
    cells = [] if one is None else [cell for cell in one.judged.cells if cell.measured is not None]
    counts = [len(cell.measured.values) for cell in cells if cell.measured is not None]
    missing = missing_runs(found, one)
    reasons = dict.fromkeys(part.not_run for part in found.parts if part.not_run is not None)
    return Coverage(
        numbers=sum(cell.published is not None for cell in cells),
        published=_published(found),
        checked=0 if one is None else sum(claim.holds is not None for claim in one.judged.claims),
        claims=len(found.claims),
        seeds=(min(counts), max(counts)) if counts else (0, 0),
        shorter=one is not None and any("epochs" in words for words in one.judged.conditions.other.values()),
        files=() if one is None else (*(f.name for f in one.files), *(u.name for u in one.untrained)),
        left_runs=sum(runs for _, runs in missing),
        left_hours=round(_hours(missing), 2),
        basis=_basis(missing),
        shared=found.uses,
        command=_command(found),
        why_not="" if found.runs or not reasons else "; ".join(map(str, reasons)),
    )


def missing_runs(
    found: Recipe, one: "Evidence | None", places: Collection[tuple[str, str]] | None = None
) -> list[tuple[Part, int]]:
    """Return the number of runs of each part that are missing for three seeds per cell.

    Args:
        found: The recipe.
        one: What was measured, if anything.
        places: The columns and rows to count. None for all.
    """
    left = [
        (part, row, SEEDS - _full(part, row, one))
        for part in found.parts
        for row in part.plan.get("objectives", {})
        if places is None or (part.column, row) in places
    ]
    return [(part, seeds * _points(part, row)) for part, row, seeds in left if seeds > 0]


def cost_in_words(missing: Sequence[tuple[Part, int]]) -> str:
    """Return the number of runs and their estimated time on one H200."""
    return _in_words(sum(runs for _, runs in missing), _hours(missing), _basis(missing))


def _in_words(runs: int, hours: float, basis: str) -> str:
    return f"{runs} run{'s' if runs > 1 else ''}, about {hours:.{1 if hours >= 0.1 else 2}f} GPU hours ({basis})"


def _hours(missing: Sequence[tuple[Part, int]]) -> float:
    return sum(runs * part.epochs * (part.seconds_an_epoch or 0.0) for part, runs in missing) / 3600


def _basis(missing: Sequence[tuple[Part, int]]) -> str:
    """Return the seconds an epoch that the recipe assumes."""
    seconds = sorted({float(part.seconds_an_epoch or 0.0) for part, _ in missing})
    return f"{' to '.join(f'{value:g}' for value in dict.fromkeys([*seconds[:1], *seconds[-1:]]))} s an epoch"


def _full(part: Part, row: str, one: "Evidence | None") -> int:
    """Return the number of seeds of a cell whose runs have the paper's number of epochs."""
    runs = () if one is None else one.runs.get(part.column, {}).get(row, ())
    return len({run.seed for run in runs if len(run.curve) >= part.epochs})


def _points(part: Part, row: str) -> int:
    """Return the number of runs of a row with one seed; a grid has several."""
    alone = part._replace(plan={**part.plan, "objectives": {row: part.plan["objectives"][row]}})
    return alone.runs_per_seed


def _published(found: Recipe) -> int:
    table = found.published
    if isinstance(table, Figure):
        return 0
    return sum(table.measures[measure].better is not None for _, _, measure, _ in table.numbers())


def _command(found: Recipe) -> str:
    """Return the command for three seeds: the recipe's own, with another number of seeds."""
    words = found.command.split(" ")
    if "--seeds" in words:
        words[words.index("--seeds") + 1] = str(SEEDS)
    return " ".join(words)


def coverage_text(covered: Mapping[str, Coverage]) -> str:
    """Return the text of published/coverage.json."""
    return json.dumps({name: one._asdict() for name, one in covered.items()}, indent=1, ensure_ascii=False) + "\n"


def coverage_file() -> Path:
    """Return the path of published/coverage.json."""
    return Path(str(files("labelkin.papers"))) / "published" / FILE


@cache
def known_coverage() -> dict[str, Coverage]:
    """Read published/coverage.json."""
    text = (files("labelkin.papers") / "published" / FILE).read_text(encoding="utf-8")
    content: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _restored(values) for name, values in content.items()}


def _restored(values: Mapping[str, Any]) -> Coverage:
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return Coverage(**plain)
