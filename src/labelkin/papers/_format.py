"""A reproduction as text, as Markdown and as plain values."""

from collections.abc import Sequence
from math import isnan
from typing import Any

from labelkin.papers._assess import NOT_ASKED, Judged, Reproduction, summary
from labelkin.papers._measured import Measured
from labelkin.papers._published import Cell, Figure, Measure

HEADINGS = ("column", "row", "measure", "published", "measured", "n", "verdict")
CLAIMS = ("the paper says", "held", "found")
UNDEFINED = "–"


def cells(found: Reproduction) -> list[tuple[str, ...]]:
    """A row for each cell."""
    return [
        (
            cell.column,
            cell.row,
            named(cell.measure),
            _printed(cell.published),
            _value(cell.measured, cell.published, cell.measure),
            str(len(cell.measured.values)) if cell.measured is not None else "0",
            cell.verdict.words,
        )
        for cell in found.cells
    ]


def named(measure: Measure) -> str:
    return measure.name.replace("_", " ") + ("" if measure.unit in ("share", "names") else f" ({measure.unit})")


def _printed(cell: Cell | None) -> str:
    if cell is None:
        return UNDEFINED
    return f"{cell.value:g}" + ("" if cell.spread is None else f" ± {cell.spread:g}")


def _value(value: Measured | None, cell: Cell | None, measure: Measure) -> str:
    if value is None:
        return UNDEFINED
    digits = 3 if measure.unit == "share" else 2
    if cell is not None:
        digits = max(digits, len(f"{cell.value:g}".partition(".")[2]))
    if measure.unit == "s":
        return f"{value.mean:.3g}"
    return f"{value.mean:.{digits}f}" + ("" if value.spread is None else f" ± {value.spread:.{digits}f}")


def reproduction_notes(found: Reproduction) -> list[str]:
    """What holds of the whole: the summary first."""
    recipe, conditions = found.recipe, found.conditions
    printed = recipe.printed
    told = [summary(found), f"Protocol: {conditions.protocol}. {printed.source} of paper {recipe.paper}."]
    if conditions.scale != 1.0:
        told.append(f"A scaled run: {conditions.scale:g} of the paper's epochs. Levels are not compared.")
    if conditions.subset is not None:
        told.append(f"{conditions.subset:g} of the training samples. Levels are not compared.")
    told += [f"{column}: {words}." for column, words in conditions.other.items()]
    told += [f"Not the paper's: {words}." for words in recipe.departures]
    if not isinstance(printed, Figure):
        told += list(printed.notes)
    left = "; ".join(printed.left_out)
    told += [f"Left out as illegible: {left}."] if left else []
    reasons = {name: why for name, why in conditions.not_run.items() if why != NOT_ASKED}
    told += [f"{name}: not run, {why}." for name, why in reasons.items() if _nothing_of(found, name)]
    return told


def _nothing_of(found: Reproduction, column: str) -> bool:
    return not any(cell.column == column and cell.measured is not None for cell in found.cells)


def claims(found: Reproduction) -> list[tuple[str, ...]]:
    word = {True: "yes", False: "no", None: "cannot be told"}
    return [(c.claim, word[c.holds] + ("" if c.settled else ", not settled"), c.found) for c in found.claims]


def reproduction_tables(found: Reproduction) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Headings and rows: the cells, then the claims, as far as there are any."""
    told: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
    wanted = [row for row in cells(found) if row[-1] != f"not run: {NOT_ASKED}"]
    if wanted:
        told.append((HEADINGS, wanted))
    if found.claims:
        told.append((CLAIMS, claims(found)))
    return told


def reproduction_as_markdown(found: Reproduction) -> str:
    return "\n\n".join(markdown_table(headings, rows) for headings, rows in reproduction_tables(found))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def reproduction_as_dict(found: Reproduction) -> dict[str, Any]:
    return {
        "id": found.recipe.id,
        "summary": summary(found),
        "protocol": found.conditions.protocol,
        "scale": found.conditions.scale,
        "cells": [_cell_dict(cell) for cell in found.cells],
        "claims": [claim._asdict() for claim in found.claims],
        "notes": reproduction_notes(found),
    }


def _cell_dict(cell: Judged) -> dict[str, Any]:
    value, verdict = cell.measured, cell.verdict
    return {
        "column": cell.column,
        "row": cell.row,
        "measure": cell.measure.name,
        "unit": cell.measure.unit,
        "published": None if cell.published is None else cell.published.value,
        "published_spread": None if cell.published is None else cell.published.spread,
        "measured": None if value is None or isnan(value.mean) else value.mean,
        "measured_spread": None if value is None else value.spread,
        "n": 0 if value is None else len(value.values),
        "level": verdict.level,
        "direction": verdict.direction,
        "verdict": verdict.words,
    }
