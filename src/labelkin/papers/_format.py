"""Format a reproduction as tables, Markdown and plain values."""

import os
from collections.abc import Sequence
from datetime import date
from math import isnan
from typing import Any

from labelkin.papers._assess import NOT_REQUESTED, Judged, Reproduction, summary
from labelkin.papers._measured import Measured
from labelkin.papers._published import Cell, Figure, Measure

HEADINGS = ("column", "row", "measure", "published", "measured", "n", "verdict")
CLAIMS = ("claim of the paper", "holds", "evidence")
UNDEFINED = "–"


def cell_rows(found: Reproduction) -> list[tuple[str, ...]]:
    """Return one row of text per cell."""
    return [
        (
            cell.column,
            cell.row,
            measure_name(cell.measure),
            _published(cell.published),
            _value(cell.measured, cell.published, cell.measure),
            str(len(cell.measured.values)) if cell.measured is not None else "0",
            cell.verdict.words,
        )
        for cell in found.cells
    ]


def measure_name(measure: Measure) -> str:
    """Return the name of a measure with its unit."""
    return measure.name.replace("_", " ") + ("" if measure.unit in ("share", "names") else f" ({measure.unit})")


def _published(cell: Cell | None) -> str:
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
    """Return the summary of a reproduction and its differences from the paper, in one or two sentences each.

    Args:
        found: The result of `reproduce`.

    Returns:
        The notes; the summary comes first.

    Example:
        >>> from labelkin.papers import reproduce, reproduction_notes
        >>> reproduction_notes(reproduce("004-table2"))[0]
        '0 of 8 published numbers were measured.'
    """
    recipe, conditions = found.recipe, found.conditions
    published = recipe.published
    notes = [summary(found), f"Protocol: {conditions.protocol}. {published.source} of paper {recipe.paper}."]
    if conditions.scale != 1.0:
        notes.append(f"The runs have {conditions.scale:g} of the paper's epochs, so levels are not compared.")
    if conditions.subset is not None:
        notes.append(f"The runs use {conditions.subset:g} of the training samples, so levels are not compared.")
    notes += [f"{column}: {words}." for column, words in conditions.other.items()]
    notes += [f"Differs from the paper: {words}." for words in recipe.departures]
    if not isinstance(published, Figure):
        notes += list(published.notes)
    left = "; ".join(published.left_out)
    notes += [f"Left out because it is illegible: {left}."] if left else []
    reasons = {name: why for name, why in conditions.not_run.items() if why != NOT_REQUESTED}
    notes += [f"{name}: not run, {why}." for name, why in reasons.items() if _nothing_measured(found, name)]
    return notes


def _nothing_measured(found: Reproduction, column: str) -> bool:
    return not any(cell.column == column and cell.measured is not None for cell in found.cells)


def claim_rows(found: Reproduction) -> list[tuple[str, ...]]:
    """Return one row of text per claim."""
    word = {True: "yes", False: "no", None: "not checked"}
    return [(c.claim, word[c.holds] + ("" if c.settled else ", not significant"), c.found) for c in found.claims]


def reproduction_tables(found: Reproduction) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Return the tables of a reproduction: its cells and its claims, if there are any.

    Args:
        found: The result of `reproduce`.

    Returns:
        The headings and rows of each table.

    Example:
        >>> from labelkin.papers import reproduce, reproduction_tables
        >>> [headings for headings, _ in reproduction_tables(reproduce("004-table2"))]
        [('column', 'row', 'measure', 'published', 'measured', 'n', 'verdict')]
    """
    tables: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
    rows = [row for row in cell_rows(found) if row[-1] != f"not run: {NOT_REQUESTED}"]
    if rows:
        tables.append((HEADINGS, rows))
    if found.claims:
        tables.append((CLAIMS, claim_rows(found)))
    return tables


def reproduction_as_markdown(found: Reproduction) -> str:
    """Return the tables of a reproduction as Markdown.

    Args:
        found: The result of `reproduce`.

    Returns:
        The tables, separated by empty lines.

    Example:
        >>> from labelkin.papers import reproduce, reproduction_as_markdown
        >>> reproduction_as_markdown(reproduce("004-table2")).splitlines()[0]
        '| column | row | measure | published | measured | n | verdict |'
    """
    return "\n\n".join(markdown_table(headings, rows) for headings, rows in reproduction_tables(found))


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def reproduction_as_dict(found: Reproduction) -> dict[str, Any]:
    """Return a reproduction as plain values.

    Args:
        found: The result of `reproduce`.

    Returns:
        The id, machine and date, the summary, the conditions, and one dict per cell and claim.

    Example:
        >>> from labelkin.papers import reproduce, reproduction_as_dict
        >>> reproduction_as_dict(reproduce("004-table2"))["id"]
        '004-table2'
    """
    return {
        "id": found.recipe.id,
        "machine": _machine(),
        "date": date.today().isoformat(),
        "summary": summary(found),
        "protocol": found.conditions.protocol,
        "scale": found.conditions.scale,
        "cells": [_cell_dict(cell) for cell in found.cells],
        "claims": [claim._asdict() for claim in found.claims],
        "notes": reproduction_notes(found),
    }


def _machine() -> str:
    """Describe the device and the version of torch."""
    from labelkin.runs import environment

    known = environment()
    device = f"{os.cpu_count()} CPU cores" if known["device"] == "cpu" else known["device"]
    return f"{device}, torch {known['torch']}"


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
        "values": {} if value is None else {str(seed): number for seed, number in value.values.items()},
        "level": verdict.level,
        "direction": verdict.direction,
        "verdict": verdict.words,
    }
