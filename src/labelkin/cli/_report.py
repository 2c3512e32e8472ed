"""The commands `labelkin report` and `labelkin reproduce`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._errors import going_on
from labelkin.cli._option_groups import gathered, words
from labelkin.cli._options import EngineOptions
from labelkin.cli._show import aside, form_of, progress, results_last, say, say_json, say_table, this_command


def report(
    source: Annotated[
        Path, Argument(help="A folder of runs, one run's folder, or a plan in .yaml.", metavar="RUNS|PLAN")
    ] = Path("runs"),
    output: Annotated[Path, Option("--output", "-o", help="The .html file to write.", metavar="FILE")] = Path(
        "report.html"
    ),
    runs: Annotated[Path, Option(help="Where the runs of a plan are kept.")] = Path("runs"),
    reference: Annotated[
        str | None, Option(help="The objective that the others are compared with. Default: one-hot, or the plan's.")
    ] = None,
    tsne: Annotated[
        bool, Option("--tsne", help="Features in the plane by t-SNE, which takes seconds an objective, not by MDS.")
    ] = False,
) -> None:
    """Write a page with the result, curves, learned labels and mistakes: one file, no network.

    Runs of several settings (data, backbone, training) give a page each: report-1.html, report-2.html and so on.
    """
    from labelkin.report import read_comparisons, targets, write_report
    from labelkin.runs import DataCache

    found = read_comparisons(source, runs=runs, reference=reference)
    paths, sets = targets(output, len(found.comparisons)), DataCache()
    with results_last():
        for comparison, path in zip(found.comparisons, paths, strict=True):
            write_report(
                comparison,
                path,
                projection="tsne" if tsne else "mds",
                data=sets,
                problems=found.problems,
                say=aside,
            )
    for path in paths:
        say(f"The report is in {path}")


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
    from labelkin.papers import (
        recipe,
        reproduction_as_dict,
        reproduction_as_markdown,
        reproduction_notes,
        reproduction_tables,
    )

    recipe(what)  # a wrong name is said before torch is there
    from labelkin.papers import reproduce as rerun

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
        say_json(reproduction_as_dict(found))
        return
    if form == "markdown":
        say(reproduction_as_markdown(found))
    else:
        for headings, lines in reproduction_tables(found):
            say_table(headings, lines)
            say("")
    for note in reproduction_notes(found):
        say(note)


def _list(*, as_json: bool) -> None:
    from labelkin.papers import list_recipes
    from labelkin.papers import listing_as_dict as as_dict

    found = list_recipes()
    if as_json:
        say_json([as_dict(entry) for entry in found])
        return
    rows = [(e.id, e.title, ", ".join(e.data) or "-", ", ".join(e.backbones) or "-", e.cost, e.at_hand) for e in found]
    say_table(("id", "what it is", "data", "backbones", "cost", "data at hand"), rows)
    say("")
    for entry in found:
        for told in (*([f"needs {entry.weights}"] if entry.weights else []), *entry.not_run):
            say(f"{entry.id}: {told}")
