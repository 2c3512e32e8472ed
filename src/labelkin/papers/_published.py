"""What the five papers print, as data: one JSON file a paper, each table with its source, units and what is illegible.

A cell is a number, `[number, spread]`, null where print is blank (the measure's `blank` says what that means), a list of
words, or "N/A" as printed. What cannot be read with certainty is absent, and named under `left_out`.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from labelkin._checks import InputError, near

PAPERS = ("000", "001", "002", "003", "004")


class Cell(NamedTuple):
    """A printed number; `rounding` is half a unit of its last digit."""

    value: float
    spread: float | None
    rounding: float


class Measure(NamedTuple):
    name: str
    unit: str
    better: str | None  # "higher", "lower", or None where it is no result


class Table(NamedTuple):
    paper: str
    name: str
    source: str
    caption: str
    runs: int | None  # behind each cell; None where the paper does not say
    measures: dict[str, Measure]
    cells: Mapping[str, Mapping[str, Mapping[str, Any]]]  # column, row, measure
    notes: tuple[str, ...]
    left_out: tuple[str, ...]

    def cell(self, column: str, row: str, measure: str) -> Cell | None:
        """The number printed there; None where there is none."""
        return _number(self.cells.get(column, {}).get(row, {}).get(measure))

    def numbers(self) -> Iterator[tuple[str, str, str, Cell]]:
        """Every printed number with its column, row and measure."""
        for column, rows in self.cells.items():
            for row, measures in rows.items():
                for measure in measures:
                    if (found := self.cell(column, row, measure)) is not None:
                        yield column, row, measure, found


class Figure(NamedTuple):
    """A figure: its curves and pictures are lost, what the paper says of it is not."""

    paper: str
    name: str
    source: str
    shows: str
    claims: Mapping[str, str]
    left_out: tuple[str, ...]


@cache
def paper(number: str) -> dict[str, Any]:
    """Title, authors, tables and figures of a paper."""
    if number not in PAPERS:
        raise InputError(f"there is no paper {number!r}; the papers are {', '.join(PAPERS)}.")
    loaded: dict[str, Any] = json.loads(
        (files("labelkin.papers") / "published" / f"{number}.json").read_text(encoding="utf-8")
    )
    return loaded


def table(number: str, name: str) -> Table:
    found = _entry(number, "tables", name)
    measures = {key: Measure(key, value["unit"], value["better"]) for key, value in found["measures"].items()}
    return Table(
        number,
        name,
        found["source"],
        found["caption"],
        found.get("runs"),
        measures,
        found["cells"],
        tuple(found["notes"]),
        tuple(found["left_out"]),
    )


def figure(number: str, name: str) -> Figure:
    found = _entry(number, "figures", name)
    return Figure(number, name, found["source"], found["shows"], found["claims"], tuple(found.get("left_out", ())))


def _entry(number: str, kind: str, name: str) -> dict[str, Any]:
    entries: dict[str, dict[str, Any]] = paper(number)[kind]
    if name not in entries:
        raise InputError(f"paper {number} has no {name!r} among its {kind}.{near(name, entries)}")
    return entries[name]


def _number(printed: Any) -> Cell | None:
    value, spread = printed if _is_pair(printed) else (printed, None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    digits = len(repr(value).partition(".")[2])
    return Cell(float(value), spread, 0.5 * 10.0**-digits)


def _is_pair(printed: Any) -> bool:
    return isinstance(printed, list) and len(printed) == 2 and all(isinstance(part, (int, float)) for part in printed)
