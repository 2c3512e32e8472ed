"""The papers' tables and figures, rerun."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli.gather import gathered
from labelkin.cli.mistakes import going_on
from labelkin.cli.options import EngineOptions
from labelkin.cli.show import aside, form_of, progress, results_last, say, say_json, say_table, this_command
from labelkin.cli.values import words


@gathered
def reproduce(
    what: Annotated[str | None, Argument(help="A table or figure of --list, as 003-table2.")] = None,
    list_all: Annotated[
        bool, Option("--list", help="List them: what each needs and costs, and whether its data are at hand.")
    ] = False,
    seeds: Annotated[int | None, Option(help="How many. Default: the paper's, at most 3.")] = None,
    scale: Annotated[float, Option(help="Share of the paper's epochs; below 1, only directions are judged.")] = 1.0,
    subset: Annotated[
        float | None, Option(help="Share of every class's training samples; then, only directions are judged.")
    ] = None,
    protocol: Annotated[str, Option(metavar="clean|as-published")] = "clean",
    columns: Annotated[str | None, Option(help="Those whose names hold one of these.", metavar="A,B")] = None,
    rows: Annotated[str | None, Option(help="Those whose names hold one of these.", metavar="A,B")] = None,
    backbone: Annotated[str | None, Option(help="In place of the paper's; then, only directions are judged.")] = None,
    precision: Annotated[str, Option(metavar="32-true|64-true|bf16-mixed")] = "32-true",
    out: Annotated[Path, Option(help="Folder of the runs; finished ones there are not repeated.")] = Path("runs"),
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print Markdown tables.")] = False,
    *,
    machine: EngineOptions,
) -> None:
    """Rerun a table or figure of a paper and print published against measured, cell by cell."""
    if list_all:
        _list(as_json=json)
        return
    if what is None:
        raise InputError("which table or figure? Name one, as `labelkin reproduce 003-table2`, or see --list.")
    form, where = form_of(json=json, markdown=markdown), machine.chosen()
    from labelkin.experiments.reproduce import text
    from labelkin.experiments.reproduce.recipe import recipe

    recipe(what)  # a wrong name is said before torch is there
    from labelkin.experiments.reproduce.running import reproduce as rerun

    with going_on(this_command), results_last():
        found = rerun(
            what,
            seeds=seeds,
            scale=scale,
            subset=subset,
            protocol=protocol,
            columns=words(columns),
            rows=words(rows),
            precision=precision,
            backbone=backbone,
            store=out,
            progress=progress,
            say=aside,
            **where,
        )
    if form == "json":
        say_json(text.as_dict(found))
        return
    if form == "markdown":
        say(text.as_markdown(found))
    else:
        for headings, lines in text.tables(found):
            say_table(headings, lines)
            say("")
    for note in text.notes(found):
        say(note)


def _list(*, as_json: bool) -> None:
    from labelkin.experiments.reproduce.listing import as_dict, entries

    found = entries()
    if as_json:
        say_json([as_dict(entry) for entry in found])
        return
    rows = [(e.id, e.title, ", ".join(e.data) or "-", ", ".join(e.backbones) or "-", e.cost, e.at_hand) for e in found]
    say_table(("id", "what it is", "data", "backbones", "cost", "data at hand"), rows)
    say("")
    for entry in found:
        for told in (*([f"needs {entry.weights}"] if entry.weights else []), *entry.not_run):
            say(f"{entry.id}: {told}")
