"""The store: what was trained, and what came of it. None of this needs torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from labelkin._checks import InputError, listed
from labelkin.cli._compare import say_comparisons
from labelkin.cli._option_groups import words
from labelkin.cli._show import aside, form_of, say, say_json, say_table

if TYPE_CHECKING:
    from labelkin.runs import Record

app = typer.Typer(no_args_is_help=True, help="List, show, compare, export and remove recorded runs.")
Folder = Annotated[Path, Option("--store", help="Folder of the runs.", metavar="DIR")]
Ids = Annotated[list[str], Argument(help="Ids, as `labelkin runs list` shows them; their beginning is enough.")]


@app.command("list")
def list_runs(
    store: Annotated[Path, Argument(help="Folder of the runs.")] = Path("runs"),
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """All runs of a folder, finished or not."""
    from labelkin.runs import Store

    found = Store(store)
    records = found.records()
    _tell(found.problems)
    if json:
        say_json([_facts(record) for record in records])
        return
    rows = [tuple(_shown(value) for value in _facts(record).values()) for record in records]
    say_table(tuple(FACTS), rows)
    aside(f"{len(records)} runs, {sum(record.finished for record in records)} finished")


@app.command()
def show(ids: Ids, store: Folder = Path("runs")) -> None:
    """What runs were asked to be, and what came of them, as JSON."""
    from labelkin.runs import Store

    found = [Store(store).find(wanted) for wanted in ids]
    told = [{"path": str(r.path), **r.config, "final": r.final, "seconds": r.seconds} for r in found]
    say_json(told[0] if len(told) == 1 else told)


@app.command("compare")
def compare_runs(
    store: Annotated[Path, Argument(help="Folder of the runs.")] = Path("runs"),
    reference: Annotated[str, Option(help="What the others are measured against.")] = "one-hot",
    data: Annotated[str | None, Option(help="Of this data set alone.")] = None,
    labels: Annotated[str | None, Option("--objectives", help="These alone.", metavar="A,B,C")] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print a Markdown table.")] = False,
    csv: Annotated[bool, Option("--csv", help="Print CSV.")] = False,
) -> None:
    """What the recorded runs show, a table for each setting; nothing is trained."""
    from labelkin.comparison import group_by_setting, runs_with_labels, summarize
    from labelkin.runs import Store

    form = form_of(json=json, markdown=markdown, csv=csv)
    found = Store(store)
    records = [record for record in found.records() if data in (None, record.data)]
    _tell(found.problems)
    chosen = runs_with_labels(records, words(labels) or sorted({record.label for record in records}))
    if not any(record.finished for record in chosen):
        raise InputError(f"{store}: has no finished runs{'' if data is None else f' on {data!r}'}.")
    settings = [runs for _, runs in group_by_setting(chosen).values() if any(run.finished for run in runs)]
    say_comparisons([summarize(runs, reference=reference) for runs in settings], form)


@app.command()
def rm(
    ids: Ids,
    store: Folder = Path("runs"),
    yes: Annotated[bool, Option("--yes", help="Without asking.")] = False,
) -> None:
    """Remove runs for good."""
    from labelkin.runs import Store

    place = Store(store)
    found = {record.id: record for record in map(place.find, ids)}
    for record in found.values():
        say(f"{record.path}")
    if not yes:
        typer.confirm(f"Remove {len(found)} runs?", abort=True, err=True)
    for record in found.values():
        if kept := place.remove(record):
            aside(f"{record.path}: kept {len(kept)} files that labelkin did not write: {listed(kept)}")


@app.command()
def export(
    output: Annotated[Path, Option("--output", "-o", help="A .json or .csv file.", metavar="FILE")],
    store: Annotated[Path, Argument(help="Folder of the runs.")] = Path("runs"),
    recipe: Annotated[str | None, Option(help="The published table that the runs reproduce.")] = None,
    note: Annotated[
        list[str] | None, Option("--missing", help="What is not in it, a sentence; again for more.")
    ] = None,
    command: Annotated[str | None, Option(help="The command that made the runs.")] = None,
    machine: Annotated[
        str | None, Option(help="The machine, in words. Default: the device that the runs name.")
    ] = None,
) -> None:
    """Write the finished runs' configurations, results and accuracy by epoch to one file."""
    from labelkin.runs import export_runs

    count = export_runs(store, output, recipe=recipe, missing=note or [], command=command, machine=machine)
    say(f"{count} runs in {output}")


FACTS = ("id", "label", "seed", "data", "backbone", "epochs", "accuracy", "state")


def _facts(record: Record) -> dict[str, Any]:
    accuracy = None if record.final is None else record.final.get("accuracy")
    state = "finished" if record.finished else "unfinished"
    values = (
        record.id,
        record.label,
        record.seed,
        record.data,
        record.backbone,
        record.settings["epochs"],
        accuracy,
        state,
    )
    return dict(zip(FACTS, values, strict=True))


def _shown(value: object) -> str:
    return "–" if value is None else f"{100 * value:.2f} %" if isinstance(value, float) else str(value)


def _tell(problems: list[str]) -> None:
    for problem in problems:
        aside(f"Note: {problem}")
