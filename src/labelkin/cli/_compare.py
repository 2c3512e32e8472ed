"""Objectives side by side."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._errors import going_on
from labelkin.cli._option_groups import gathered, typed_besides, whole_numbers, words
from labelkin.cli._options import DATA, DataOptions, EngineOptions, GridOptions, MethodOptions, TrainingOptions
from labelkin.cli._show import aside, form_of, progress, results_last, say, say_comparison, say_json, this_command

if TYPE_CHECKING:
    from labelkin.comparison import Comparison, Plan
    from labelkin.runs import DataCache


@gathered
def compare(
    context: typer.Context,
    data: Annotated[
        str,
        Argument(help=f"{DATA}; or a plan in .yaml."),
    ] = "digits",
    objectives: Annotated[
        str | None, Option(help="Which, as one-hot,label-embedding. Default: all.", metavar="A,B,C")
    ] = None,
    seeds: Annotated[str, Option(help="A run for each.", metavar="A,B,C")] = "0",
    out: Annotated[Path, Option(help="Folder of the runs; finished ones there are not repeated.")] = Path("runs"),
    keep: Annotated[
        str, Option(help="What stays of a run: with results, no weights.", metavar="weights|results")
    ] = "weights",
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would be trained, and stop.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print a Markdown table.")] = False,
    csv: Annotated[bool, Option("--csv", help="Print CSV.")] = False,
    html: Annotated[Path | None, Option(help="Write the report's page, too.", metavar="FILE")] = None,
    *,
    machine: EngineOptions,
    method: MethodOptions,
    grid: GridOptions,
    data_options: DataOptions,
    training: TrainingOptions,
) -> None:
    """Train each objective under one protocol and print a table of how they did."""
    from labelkin.comparison import compare_plan, describe_plan, plan_for, read_plan
    from labelkin.runs import DataCache

    form = form_of(json=json, markdown=markdown, csv=csv)
    if data.endswith((".yaml", ".yml")):
        _check_alone(context)
        plan = read_plan(data)
    else:
        if grid.gridded and not data_options.validation_fraction:
            raise InputError("--grid: a value is chosen on a validation split; give one, as `--validation 0.1`.")
        plan = plan_for(
            data,
            objectives=words(objectives),
            seeds=whole_numbers("seeds", seeds),
            backbone=method.backbone,
            taxonomy=method.taxonomy,
            data_options=data_options.chosen(),
            options=method.options,
            grids=grid.grids,
            training=training.settings(),
        )
    if html is not None:
        _check_page(html, plan)
    if dry_run:
        aside(describe_plan(plan, out))
        _list_runs(plan, out)
        return
    sets = DataCache()
    with going_on(this_command), results_last():
        compared = compare_plan(plan, out, keep=keep, data=sets, progress=progress, say=aside, **machine.chosen())
    say_comparisons(compared, form)
    if html is not None:
        write_pages(compared, html, sets)


def write_pages(compared: "list[Comparison]", path: Path, data: "DataCache") -> None:
    """Write a page for each comparison, from data that were read before."""
    from labelkin.report import targets, write_report

    for comparison, target in zip(compared, targets(path, len(compared)), strict=True):
        with results_last():
            write_report(comparison, target, data=data, say=aside)
        aside(f"The report is in {target}")


def _check_page(path: Path, plan: "Plan") -> None:
    """Refuse a page that could not be written once all is trained."""
    from labelkin.report import check_classifies, targets

    targets(path, 1)
    check_classifies(*plan.data)


def say_comparisons(compared: "list[Comparison]", form: str) -> None:
    """One table a setting, or one JSON value."""
    if form == "json":
        told = [comparison.as_dict() for comparison in compared]
        say_json(told[0] if len(told) == 1 else told)
        return
    from labelkin.comparison import comparison_titles as told_apart

    for place, (comparison, heading) in enumerate(zip(compared, told_apart(compared), strict=True)):
        if len(compared) > 1:
            say(f"{chr(10) if place else ''}{heading}:")
        say_comparison(comparison, form)
        if comparison.not_begun and form == "text":
            say(f"{len(comparison.not_begun)} runs of the plan have not begun and are left out.")


def _list_runs(plan: "Plan", store: Path) -> None:
    from labelkin.comparison import is_finished

    for run in plan.runs():
        say(f"{run.name}  {run.spec.data}  {run.title}{'  finished' if is_finished(store, run) else ''}")


def _check_alone(context: typer.Context) -> None:
    """A plan says everything that changes results; the command line adds where and how they are made."""
    allowed = (
        "data",
        "out",
        "dry_run",
        "json",
        "markdown",
        "csv",
        "html",
        "jobs",
        "engine",
        "address",
        "budget",
        "keep",
    )
    if (typed := typed_besides(context, allowed)) is not None:
        raise InputError(f"a plan says what is trained; leave {typed} out, or put it in the plan.")


def demo(
    out: Annotated[Path, Option(help="Folder of the runs; finished ones there are not repeated.")] = Path("runs/demo"),
    fresh: Annotated[bool, Option("--fresh", help="Remove the demo's runs first.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train every objective on handwritten digits and write the report: two cores, a minute, nothing to download."""
    from labelkin.comparison import demo as run_demo
    from labelkin.runs import DataCache

    sets = DataCache()
    with going_on(lambda: shlex.join(["labelkin", "demo", "--out", str(out)])), results_last():
        comparison = run_demo(out, fresh=fresh, data=sets, progress=progress, say=aside)
    say_comparisons([comparison], form_of(json=json))
    write_pages([comparison], out / "report.html", sets)
