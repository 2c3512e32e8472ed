"""Read the published numbers of the five papers: one JSON file per paper, each table with its source, units and notes.

A cell is a number, `[number, spread]`, null if the paper leaves it blank (explained in the measure's `blank`), a list
of words, or "N/A". Numbers that cannot be read with certainty are absent and named under `left_out`.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from labelkin._checks import InputError, near

PAPERS = ("000", "001", "002", "003", "004")


class Cell(NamedTuple):
    """A published number; `rounding` is half a unit of its last digit."""

    value: float
    spread: float | None
    rounding: float


class Measure(NamedTuple):
    """A measure of a table."""

    name: str
    unit: str
    better: str | None  # "higher", "lower", or None if the measure is not a result


class Table(NamedTuple):
    """A published table."""

    paper: str
    name: str
    source: str
    caption: str
    runs: int | None  # per cell; None if the paper does not state it
    measures: dict[str, Measure]
    cells: Mapping[str, Mapping[str, Mapping[str, Any]]]  # column, row, measure
    notes: tuple[str, ...]
    left_out: tuple[str, ...]

    def cell(self, column: str, row: str, measure: str) -> Cell | None:
        """Return the number in a cell, or None if there is none."""
        return _number(self.cells.get(column, {}).get(row, {}).get(measure))

    def numbers(self) -> Iterator[tuple[str, str, str, Cell]]:
        """Yield every published number with its column, row and measure."""
        for column, rows in self.cells.items():
            for row, measures in rows.items():
                for measure in measures:
                    if (cell := self.cell(column, row, measure)) is not None:
                        yield column, row, measure, cell


class Figure(NamedTuple):
    """A published figure: the claims that the paper makes about it. Its curves and pictures are not available."""

    paper: str
    name: str
    source: str
    shows: str
    claims: Mapping[str, str]
    left_out: tuple[str, ...]


@cache
def published_paper(number: str) -> dict[str, Any]:
    """Read the title, authors, tables and figures of a paper.

    Args:
        number: "000" to "004".

    Returns:
        The content of the paper's JSON file.

    Example:
        >>> from labelkin.papers import published_paper
        >>> sorted(published_paper("004")["tables"])
        ['table1', 'table2', 'table3']
    """
    if number not in PAPERS:
        raise InputError(f"paper: expected one of {', '.join(PAPERS)}, got {number!r}.")
    loaded: dict[str, Any] = json.loads(
        (files("labelkin.papers") / "published" / f"{number}.json").read_text(encoding="utf-8")
    )
    return loaded


def published_table(number: str, name: str) -> Table:
    """Read a published table.

    Args:
        number: The paper, "000" to "004".
        name: The name of the table, such as "table2".

    Returns:
        The table with its cells, measures and notes.

    Example:
        >>> from labelkin.papers import published_table
        >>> published_table("004", "table3").source
        'Table 3'
    """
    entry = _entry(number, "tables", name)
    measures = {key: Measure(key, value["unit"], value["better"]) for key, value in entry["measures"].items()}
    return Table(
        number,
        name,
        entry["source"],
        entry["caption"],
        entry.get("runs"),
        measures,
        entry["cells"],
        tuple(entry["notes"]),
        tuple(entry["left_out"]),
    )


def published_figure(number: str, name: str) -> Figure:
    """Read the claims about a published figure.

    Args:
        number: The paper, "000" to "004".
        name: The name of the figure, such as "figure3".

    Returns:
        The figure with its claims.

    Example:
        >>> from labelkin.papers import published_figure
        >>> list(published_figure("001", "figure3").claims)
        ['halves']
    """
    entry = _entry(number, "figures", name)
    return Figure(number, name, entry["source"], entry["shows"], entry["claims"], tuple(entry.get("left_out", ())))


def _entry(number: str, kind: str, name: str) -> dict[str, Any]:
    entries: dict[str, dict[str, Any]] = published_paper(number)[kind]
    if name not in entries:
        raise InputError(f"paper {number}: there is no {name!r} among its {kind}.{near(name, entries)}")
    return entries[name]


def _number(published: Any) -> Cell | None:
    value, spread = published if _is_pair(published) else (published, None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    digits = len(repr(value).partition(".")[2])
    return Cell(float(value), spread, 0.5 * 10.0**-digits)


def _is_pair(published: Any) -> bool:
    if not isinstance(published, list) or len(published) != 2:
        return False
    return all(isinstance(part, (int, float)) for part in published)
