"""Objectives side by side."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelkin.cli.gather import gathered
from labelkin.cli.mistakes import going_on
from labelkin.cli.options import DataOptions, MethodOptions, TrainingOptions
from labelkin.cli.show import progress, results_last, say_comparison, this_command
from labelkin.cli.values import whole_numbers, words


@gathered
def compare(
    data: Annotated[
        str, Argument(help="A set of `labelkin data list`, a folder of images, or a .npz, .npy, .csv or .jsonl file.")
    ] = "digits",
    objectives: Annotated[
        str | None, Option(help="Which, as one-hot,label-embedding. Default: all.", metavar="A,B,C")
    ] = None,
    seeds: Annotated[str, Option(help="A run for each.", metavar="A,B,C")] = "0",
    out: Annotated[Path, Option(help="Folder of the runs; finished ones there are not repeated.")] = Path("runs"),
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print a Markdown table.")] = False,
    *,
    method: MethodOptions,
    data_options: DataOptions,
    training: TrainingOptions,
) -> None:
    """Train each objective under one protocol and print a table of how they did."""
    from labelkin.experiments import compare as run_comparison

    with going_on(this_command), results_last():
        comparison = run_comparison(
            data,
            objectives=words(objectives),
            seeds=whole_numbers("seeds", seeds),
            backbone=method.backbone,
            taxonomy=method.taxonomy,
            out=out,
            data_options=data_options.chosen(),
            options=method.options,
            progress=progress,
            **training.settings(),
        )
    say_comparison(comparison, as_json=json, markdown=markdown)


def demo(
    out: Annotated[Path, Option(help="Folder of the runs; finished ones there are not repeated.")] = Path("runs/demo"),
    fresh: Annotated[bool, Option("--fresh", help="Remove the demo's runs first.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train every objective on handwritten digits: under a minute on two cores, nothing to download."""
    from labelkin.experiments.demo import demo as run_demo

    with going_on(lambda: f"labelkin demo --out {out}"), results_last():
        comparison = run_demo(out, fresh=fresh, progress=progress)
    say_comparison(comparison, as_json=json)
