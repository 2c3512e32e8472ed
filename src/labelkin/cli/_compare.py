"""The commands `labelkin compare` and `labelkin demo`."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._engine_options import EngineOptions
from labelkin.cli._errors import suggest_resuming
from labelkin.cli._option_groups import first_option_besides, whole_numbers, with_option_groups, words
from labelkin.cli._options import DATA, DataOptions, GridOptions, MethodOptions, TrainingOptions
from labelkin.cli._show import (
    other_output_to_stderr,
    output_format,
    progress,
    say,
    say_comparison,
    say_json,
    say_status,
    typed_command,
)

if TYPE_CHECKING:
    from labelkin.comparison import Comparison, Plan
    from labelkin.runs import DataCache


@with_option_groups
def compare(
    context: typer.Context,
    data: Annotated[
        str,
        Argument(help=f"{DATA}; or a plan (.yaml)."),
    ] = "digits",
    objectives: Annotated[
        str | None, Option(help="Objectives to train, such as one-hot,label-embedding. Default: all.", metavar="A,B,C")
    ] = None,
    seeds: Annotated[str, Option(help="Random seeds; each objective is trained once per seed.", metavar="A,B,C")] = "0",
    out: Annotated[Path, Option(help="Folder of the runs. Finished runs in it are reused.")] = Path("runs"),
    keep: Annotated[
        str, Option(help="Keep trained weights, or only the results of each run.", metavar="weights|results")
    ] = "weights",
    dry_run: Annotated[bool, Option("--dry-run", help="Check and list the runs without training them.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print a Markdown table.")] = False,
    csv: Annotated[bool, Option("--csv", help="Print CSV.")] = False,
    html: Annotated[Path | None, Option(help="Also write the HTML report.", metavar="FILE")] = None,
    *,
    machine: EngineOptions,
    method: MethodOptions,
    grid: GridOptions,
    data_options: DataOptions,
    training: TrainingOptions,
) -> None:
    """Train several objectives with the same settings and print a table of results."""
    from labelkin.comparison import check_runs, compare_plan, describe_plan, plan_for, read_plan
    from labelkin.runs import DataCache

    form = output_format(json=json, markdown=markdown, csv=csv)
    if data.endswith((".yaml", ".yml")):
        _check_alone(context)
        plan = read_plan(data)
    else:
        if grid.gridded and not data_options.validation_fraction:
            raise InputError(
                "--grid: values are chosen on a validation split; add one, for example `--validation 0.1`."
            )
        plan = plan_for(
            data,
            objectives=words(objectives),
            seeds=whole_numbers("seeds", seeds),
            backbone=method.backbone,
            taxonomy=method.taxonomy,
            data_options={name: value for name, value in data_options.chosen().items() if name != "folds"},
            folds=data_options.folds,
            options=method.options,
            grids=grid.grids,
            training=training.settings(),
        )
    if html is not None:
        _check_page(html, plan)
    if dry_run:
        check_runs(plan.runs(), DataCache())
        say_status(describe_plan(plan, out))
        _list_runs(plan, out)
        return
    sets = DataCache()
    with suggest_resuming(typed_command), other_output_to_stderr():
        compared = compare_plan(plan, out, keep=keep, data=sets, progress=progress, say=say_status, **machine.chosen())
    say_comparisons(compared, form)
    if html is not None:
        write_pages(compared, html, sets)


def write_pages(compared: "list[Comparison]", path: Path, data: "DataCache", *, also: Sequence[str] = ()) -> None:
    """Write one report per comparison, using data that are already loaded; `also` are sentences for the top of each."""
    from labelkin.report import targets, write_report

    for comparison, target in zip(compared, targets(path, len(compared)), strict=True):
        with other_output_to_stderr():
            write_report(comparison, target, data=data, also=also, say=say_status)
        say_status(f"The report is in {target}")


def _check_page(path: Path, plan: "Plan") -> None:
    """Check before training that the report can be written."""
    from labelkin.report import check_classifies, targets

    targets(path, 1)
    check_classifies(*plan.data)


def say_comparisons(compared: "list[Comparison]", form: str) -> None:
    """Print one table per setting, or one JSON value."""
    if form == "json":
        values = [comparison.as_dict() for comparison in compared]
        say_json(values[0] if len(values) == 1 else values)
        return
    from labelkin.comparison import comparison_titles

    for place, (comparison, heading) in enumerate(zip(compared, comparison_titles(compared), strict=True)):
        if len(compared) > 1:
            say(f"{chr(10) if place else ''}{heading}:")
        say_comparison(comparison, form)
        if comparison.not_begun and form == "text":
            say(f"{len(comparison.not_begun)} runs of the plan have not started and are not in the table.")


def _list_runs(plan: "Plan", store: Path) -> None:
    from labelkin.comparison import is_finished

    for run in plan.runs():
        say(f"{run.name}  {run.spec.data}  {run.title}{'  finished' if is_finished(store, run) else ''}")


def _check_alone(context: typer.Context) -> None:
    """Refuse options that would change the results of a plan; options for output and machine are allowed."""
    allowed = (
        "data",
        "out",
        "dry_run",
        "json",
        "markdown",
        "csv",
        "html",
        "jobs",
        "fleet",
        "mps",
        "engine",
        "address",
        "budget",
        "keep",
    )
    if (typed := first_option_besides(context, allowed)) is not None:
        raise InputError(f"{typed}: cannot be combined with a plan; leave {typed} out, or set it in the plan.")


def demo(
    out: Annotated[Path, Option(help="Folder of the runs. Finished runs in it are reused.")] = Path("runs/demo"),
    fresh: Annotated[bool, Option("--fresh", help="Delete the demo's runs first.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Which module of Python's standard library is this function from? Train four objectives and write a report.

    Takes about a minute on two cores; nothing is downloaded.
    """
    from labelkin.comparison import demo as run_demo
    from labelkin.runs import DataCache

    sets = DataCache()
    with suggest_resuming(lambda: shlex.join(["labelkin", "demo", "--out", str(out)])), other_output_to_stderr():
        comparison, lines = run_demo(out, fresh=fresh, data=sets, progress=progress, say=say_status)
    if json:
        say_json({**comparison.as_dict(), "summary": list(lines)})
    else:
        say_comparisons([comparison], "text")
    write_pages([comparison], out / "report.html", sets, also=lines[1:])
    if not json:
        for line in ("", *lines):
            say(line)
