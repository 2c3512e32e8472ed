"""The commands `labelkin runs`, which work on recorded runs without torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from labelkin._checks import InputError, counted, listed
from labelkin.cli._compare import say_comparisons
from labelkin.cli._option_groups import words
from labelkin.cli._show import output_format, say, say_json, say_problems, say_status, say_table

if TYPE_CHECKING:
    from labelkin.runs import Record

app = typer.Typer(no_args_is_help=True, help="List, show, compare, export, pack and delete recorded runs.")
Folder = Annotated[Path, Option("--store", help="Folder of the runs.", metavar="DIR")]
Ids = Annotated[list[str], Argument(help="Run ids from `labelkin runs list`, or their first characters.")]


@app.command("list")
def list_runs(
    store: Annotated[Path, Argument(help="Folder of the runs.")] = Path("runs"),
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the runs in a folder."""
    from labelkin.comparison import setting_differences
    from labelkin.runs import Store

    recorded = Store(store)
    runs: list[dict[str, Any]] = []

    def summarized() -> Iterator[Record]:  # one run at a time, because there may be thousands
        for record in recorded.each():
            runs.append(_summary(record))
            yield record

    differing = setting_differences(summarized())
    say_problems(recorded.problems)
    if json:
        say_json([{**run, "differs": own} for run, own in zip(runs, differing, strict=True)])
        return
    shown = any(differing)
    rows = [
        (*map(_cell, run.values()), *([_in_words(own)] if shown else []))
        for run, own in zip(runs, differing, strict=True)
    ]
    say_table((*COLUMNS, *(["differs in"] if shown else [])), rows)
    say_status(f"{counted(len(runs), 'run')}, {sum(run['state'] == FINISHED for run in runs):,} finished")


@app.command()
def show(ids: Ids, store: Folder = Path("runs")) -> None:
    """Print the configuration and results of runs as JSON."""
    from labelkin.runs import Store

    records = [Store(store).find(run_id) for run_id in ids]
    values = [{"path": str(r.path), **r.config, "final": r.final, "seconds": r.seconds} for r in records]
    say_json(values[0] if len(values) == 1 else values)


@app.command("compare")
def compare_runs(
    store: Annotated[Path, Argument(help="Folder of the runs.")] = Path("runs"),
    reference: Annotated[str, Option(help="Objective to compare the others with.")] = "one-hot",
    data: Annotated[str | None, Option(help="Only runs on this data set.")] = None,
    labels: Annotated[str | None, Option("--objectives", help="Only these objectives.", metavar="A,B,C")] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print a Markdown table.")] = False,
    csv: Annotated[bool, Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Compare recorded runs without training: one table per setting."""
    from labelkin.comparison import group_by_setting, runs_with_labels, summarize
    from labelkin.runs import Store

    form = output_format(json=json, markdown=markdown, csv=csv)
    recorded = Store(store)
    records = [record for record in recorded.readable() if data in (None, record.data)]
    say_problems(recorded.problems)
    chosen = runs_with_labels(records, words(labels) or sorted({record.label for record in records}))
    if not any(record.finished for record in chosen):
        raise InputError(f"{store}: contains no finished runs{'' if data is None else f' on {data!r}'}.")
    settings = [runs for _, runs in group_by_setting(chosen).values() if any(run.finished for run in runs)]
    say_comparisons([summarize(runs, reference=reference) for runs in settings], form)


@app.command()
def rm(
    ids: Ids,
    store: Folder = Path("runs"),
    yes: Annotated[bool, Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete runs permanently."""
    from labelkin.runs import Store

    recorded = Store(store)
    records = {record.id: record for record in map(recorded.find, ids)}
    for record in records.values():
        say(f"{record.path}")
    if not yes:
        typer.confirm(f"Delete {counted(len(records), 'run')}?", abort=True, err=True)
    for record in records.values():
        if kept := recorded.remove(record):
            say_status(f"{record.path}: kept {counted(len(kept), 'file')} that labelkin did not write: {listed(kept)}")


@app.command()
def export(
    output: Annotated[Path, Option("--output", "-o", help="A .json or .csv file.", metavar="FILE")],
    store: Annotated[Path, Argument(help="Folder of the runs.")] = Path("runs"),
    recipe: Annotated[str | None, Option(help="Id of the published table that the runs reproduce.")] = None,
    note: Annotated[
        list[str] | None, Option("--missing", help="Sentence that describes missing results. Repeat for more.")
    ] = None,
    command: Annotated[str | None, Option(help="Command that produced the runs.")] = None,
    machine: Annotated[
        str | None, Option(help="Description of the machine. Default: the device that the runs recorded.")
    ] = None,
    follow_up: Annotated[
        bool, Option("--follow-up", help="The runs were planned after results on the same data had been seen.")
    ] = False,
) -> None:
    """Write configurations, results and learning curves of all finished runs to one file."""
    from labelkin.runs import export_runs

    count = export_runs(
        store, output, recipe=recipe, missing=note or [], command=command, machine=machine, follow_up=follow_up
    )
    say(f"Wrote {counted(count, 'run')} to {output}")


@app.command()
def pack(
    output: Annotated[Path, Option("--output", "-o", help="A .zip file.", metavar="FILE")],
    store: Annotated[Path, Argument(help="Folder of the runs.")] = Path("runs"),
) -> None:
    """Write the results and decisions of all finished runs to one small file, without weights."""
    from labelkin.runs import pack_runs

    count = pack_runs(store, output)
    say(f"Wrote {counted(count, 'run')} to {output} ({output.stat().st_size / 1000:,.0f} kB)")


@app.command()
def unpack(
    file: Annotated[Path, Argument(help="A file written by `labelkin runs pack`.")],
    output: Annotated[Path, Option("--output", "-o", help="Folder of the runs.", metavar="DIR")] = Path("runs"),
) -> None:
    """Unpack runs into a folder, to list, compare and export them there."""
    from labelkin.runs import unpack_runs

    found = unpack_runs(file, output)
    were = "was" if len(found.known) == 1 else "were"
    known = f"; {len(found.known)} {were} already there" if found.known else ""
    say(f"Wrote {counted(len(found.written), 'run')} to {output}{known}")


FINISHED = "finished"
COLUMNS = ("id", "label", "seed", "data", "backbone", "epochs", "accuracy", "state")


def _summary(record: Record) -> dict[str, Any]:
    accuracy = None if record.final is None else record.final.get("accuracy")
    state = FINISHED if record.finished else "unfinished"
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
    return dict(zip(COLUMNS, values, strict=True))


def _in_words(differing: Mapping[str, Any]) -> str:
    parts = (f"{name} {'+'.join(map(str, v)) if isinstance(v, list) else v}" for name, v in differing.items())
    return ", ".join(part if not part.endswith(" ") else f"{part}none" for part in parts)


def _cell(value: object) -> str:
    return "–" if value is None else f"{100 * value:.2f} %" if isinstance(value, float) else str(value)
