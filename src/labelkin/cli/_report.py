"""The commands `labelkin report` and `labelkin reproduce`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._engine_options import EngineOptions
from labelkin.cli._errors import suggest_resuming
from labelkin.cli._option_groups import with_option_groups, words
from labelkin.cli._show import (
    other_output_to_stderr,
    output_format,
    progress,
    say,
    say_json,
    say_problems,
    say_status,
    say_table,
    typed_command,
)


def report(
    source: Annotated[
        Path, Argument(help="A folder of runs, the folder of one run, or a plan (.yaml).", metavar="RUNS|PLAN")
    ] = Path("runs"),
    output: Annotated[Path, Option("--output", "-o", help="HTML file to write.", metavar="FILE")] = Path("report.html"),
    runs: Annotated[Path, Option(help="Folder with the runs of the plan.")] = Path("runs"),
    reference: Annotated[
        str | None, Option(help="Objective to compare the others with. Default: the plan's, or one-hot.")
    ] = None,
    tsne: Annotated[
        bool, Option("--tsne", help="Project features with t-SNE instead of MDS; takes a few seconds per objective.")
    ] = False,
) -> None:
    """Write an HTML report of runs: results, curves, learned labels and mistakes in one file.

    Runs with different settings (data, backbone, training) get one report each: report-1.html, report-2.html and so on.
    """
    from labelkin.comparison import comparison_titles
    from labelkin.report import read_comparisons, targets, write_report
    from labelkin.runs import DataCache

    result = read_comparisons(source, runs=runs, reference=reference)
    say_problems(result.problems)
    paths, sets = targets(output, len(result.comparisons)), DataCache()
    with other_output_to_stderr():
        for comparison, path in zip(result.comparisons, paths, strict=True):
            write_report(
                comparison,
                path,
                projection="tsne" if tsne else "mds",
                data=sets,
                problems=result.problems,
                say=say_status,
            )
    titles = comparison_titles(result.comparisons) if len(paths) > 1 else [""]
    for path, title in zip(paths, titles, strict=True):
        say(f"The report is in {path}{title and f': {title}'}")


@with_option_groups
def reproduce(
    what: Annotated[str | None, Argument(help="A table or figure from --list, such as 003-table2.")] = None,
    list_all: Annotated[
        bool, Option("--list", help="List tables and figures: their data, what is measured, and the cost of the rest.")
    ] = False,
    seeds: Annotated[int | None, Option(help="Number of seeds. Default: as in the paper, at most 3.")] = None,
    scale: Annotated[
        float, Option(help="Fraction of the paper's epochs. Below 1, only signs of differences are checked.")
    ] = 1.0,
    subset: Annotated[
        float | None,
        Option(help="Fraction of each class's training samples to use. Only signs of differences are checked then."),
    ] = None,
    protocol: Annotated[
        str,
        Option(
            help="clean: nothing is chosen on the test set. as-published: evaluate as the paper did.",
            metavar="clean|as-published",
        ),
    ] = "clean",
    columns: Annotated[str | None, Option(help="Only columns whose name contains one of these.", metavar="A,B")] = None,
    rows: Annotated[str | None, Option(help="Only rows whose name contains one of these.", metavar="A,B")] = None,
    backbone: Annotated[
        str | None,
        Option(help="Network to use instead of the paper's. Only signs of differences are checked then."),
    ] = None,
    from_scratch: Annotated[
        bool,
        Option(
            "--from-scratch",
            help="Start networks from random weights where the paper starts from pretrained ones, which are downloaded. "
            "Only signs of differences are checked then.",
        ),
    ] = False,
    precision: Annotated[
        str, Option(help="Floating-point precision.", metavar="32-true|64-true|bf16-mixed")
    ] = "32-true",
    out: Annotated[Path, Option(help="Folder of the runs. Finished runs in it are reused.")] = Path("runs"),
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print Markdown tables.")] = False,
    *,
    machine: EngineOptions,
) -> None:
    """Reproduce a table or figure of a paper and print published and measured values."""
    if list_all:
        _list(as_json=json)
        return
    if what is None:
        raise InputError(
            "reproduce: expected the name of a table or figure, as in `labelkin reproduce 003-table2`; see --list."
        )
    form, where = output_format(json=json, markdown=markdown), machine.chosen()
    from labelkin.papers import (
        recipe,
        reproduction_as_dict,
        reproduction_as_markdown,
        reproduction_notes,
        reproduction_tables,
    )

    recipe(what)  # reports a wrong name before torch is imported
    from labelkin.papers import reproduce as rerun

    with suggest_resuming(typed_command), other_output_to_stderr():
        result = rerun(
            what,
            seeds=seeds,
            scale=scale,
            subset=subset,
            protocol=protocol,
            columns=words(columns),
            rows=words(rows),
            precision=precision,
            backbone=backbone,
            from_scratch=from_scratch,
            store=out,
            progress=progress,
            say=say_status,
            **where,
        )
    if form == "json":
        say_json(reproduction_as_dict(result))
        return
    if form == "markdown":
        say(reproduction_as_markdown(result))
    else:
        for headings, lines in reproduction_tables(result):
            say_table(headings, lines)
            say("")
    for note in reproduction_notes(result):
        say(note)


def _list(*, as_json: bool) -> None:
    from labelkin.papers import list_recipes
    from labelkin.papers import listing_as_dict as as_dict

    result = list_recipes()
    if as_json:
        say_json([as_dict(entry) for entry in result])
        return
    rows = [(e.id, e.title, ", ".join(e.data) or "-", e.at_hand, e.measured, e.left) for e in result]
    say_table(("id", "title", "data", "data available", "measured", "cost of the rest"), rows)
    say("")
    say(
        "The cost is that of three seeds per cell: epochs x seconds an epoch (in parentheses), one run at a time on one H200."
    )
    say("To measure the rest:")
    for entry in result:
        if entry.left != "-":
            say(f"  {entry.command}")
    say("")
    for entry in result:
        for note in (*([f"needs {entry.weights}"] if entry.weights else []), *entry.not_run):
            say(f"{entry.id}: {note}")
