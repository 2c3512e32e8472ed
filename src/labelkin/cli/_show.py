"""Printing: results to stdout, status and errors to stderr, tables drawn on a terminal and plain elsewhere."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from math import isnan
from typing import TYPE_CHECKING, Any

import typer

from labelkin._checks import InputError, visible

if TYPE_CHECKING:
    from labelkin.comparison import Comparison
    from labelkin.training import Progress


MOST_DRAWN = 1000  # rows of a table with lines


def say(text: str) -> None:
    """Print a result to stdout. With several processes, only the first prints."""
    if _first_process():
        typer.echo(visible(text))


def say_actions(actions: Mapping[str, int], samples: int) -> None:
    """Print how many of the samples go to each action, an answer that is not a class."""
    for name, count in actions.items():
        say(f"{count:,} ({100 * count / max(samples, 1):.1f} %) go to {name!r}.")


def say_status(text: str) -> None:
    """Print a status message to stderr, above the progress bars. With several processes, only the first prints."""
    if _first_process():
        print(visible(text), file=sys.stderr, flush=True)  # typer.echo writes past rich, into the middle of a bar


def say_problems(problems: Sequence[str]) -> None:
    """Print a note on each run that cannot be read to stderr."""
    for problem in problems:
        say_status(f"Note: {problem}")


def output_format(*, json: bool = False, markdown: bool = False, csv: bool = False) -> str:
    """Return the requested format: "json", "markdown", "csv", or "text" by default."""
    requested = [name for name, wanted in (("json", json), ("markdown", markdown), ("csv", csv)) if wanted]
    if len(requested) > 1:
        raise InputError(f"expected one output format, got {' and '.join(f'--{name}' for name in requested)}.")
    return requested[0] if requested else "text"


def say_json(value: Any) -> None:
    """Print a value as JSON, with null for NaN."""
    say(json.dumps(_without_nan(value), indent=1, ensure_ascii=False))


def _without_nan(value: Any) -> Any:
    """Replace NaN, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and isnan(value) else value


# Fractions, shown in percent.
SHARES: tuple[str, ...] = (
    "accuracy",
    "top5",
    "ece",
    "crm_accuracy",
    "decided_accuracy",
    "decided_ece",
    "balanced_accuracy",
)
SHARES += ("decided_balanced_accuracy", "macro_f1", "decided_macro_f1")


def say_metrics(metrics: Mapping[str, float]) -> None:
    """Print one metric per line."""
    width = max((len(name) for name in metrics), default=0) + 2
    for name, value in metrics.items():
        shown = f"{100 * value:.2f} %" if name in SHARES else f"{value:.3f}"
        if name == "calibration_samples":
            shown = f"{value:.0f}" if value else "0 (not calibrated: fewer than 50 samples were held out)"
        say(f"{name:<{width}}{'undefined' if isnan(value) else shown}")


def say_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; a long one always plain, because drawing takes half a second for a thousand rows."""
    if not sys.stdout.isatty() or len(rows) > MOST_DRAWN:
        widths = [max(len(line[i]) for line in (headings, *rows)) for i in range(len(headings))]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in (headings, *rows)
        )
        say("\n".join(lines))
    elif _first_process():
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Column, Table
        from rich.text import Text

        table = Table(*(Column(Text(visible(heading))) for heading in headings), box=SIMPLE_HEAD)
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        Console().print(table)


def say_comparison(comparison: Comparison, form: str = "text") -> None:
    """Print a comparison as "text", "markdown" or "csv"."""
    from labelkin.comparison import (
        comparison_as_csv,
        comparison_as_markdown,
        comparison_notes,
        table_cells,
        table_headings,
        terminal_columns,
    )

    if form != "text":
        say({"markdown": comparison_as_markdown, "csv": comparison_as_csv}[form](comparison).rstrip("\n"))
        return
    shown = terminal_columns(comparison)
    say_table(table_headings(comparison, shown), [table_cells(row, shown) for row in comparison.rows])
    say("")
    for note in comparison_notes(comparison, shown):
        say(note)
    say(f"The runs are in {comparison.folder}")


def say_comparison_briefly(comparison: Comparison) -> None:
    """Print the first columns of a comparison, which decide it."""
    from labelkin.comparison import table_cells, table_headings, terminal_columns

    shown = terminal_columns(comparison)[:4]
    say_table(table_headings(comparison, shown), [table_cells(row, shown) for row in comparison.rows])


@contextmanager
def other_output_to_stderr() -> Iterator[None]:
    """Redirect stdout to stderr, so that stdout contains only the result."""
    with redirect_stdout(sys.stderr):
        yield


def progress(title: str, epochs: int, steps: int) -> Progress:
    """Return a progress display on stderr; processes other than the first show none."""
    from labelkin.training import Silent, progress_for

    return progress_for(title, epochs, steps, terminal=sys.stderr.isatty()) if _first_process() else Silent()


def typed_command() -> str:
    """Return the command line as the user typed it."""
    return shlex.join(["labelkin", *sys.argv[1:]])


def _first_process() -> bool:
    return int(os.environ.get("LOCAL_RANK", "0")) == 0
