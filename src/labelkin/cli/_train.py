"""One run."""

import shlex
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._errors import going_on
from labelkin.cli._option_groups import gathered, typed_besides
from labelkin.cli._options import DATA, CorpusOptions, DataOptions, MethodOptions, TrainingOptions
from labelkin.cli._show import aside, progress, results_last, say, say_json, say_metrics, this_command


@gathered
def train(
    context: typer.Context,
    data: Annotated[str | None, Argument(help=f"{DATA}.")] = None,
    objective: Annotated[str | None, Option(help="One of `labelkin objectives`.", metavar="NAME")] = None,
    seed: Annotated[int, Option(help="Of first weights and batches.")] = 0,
    out: Annotated[
        Path | None, Option(help="Folder of the run. Default: its place in the store, runs/OBJECTIVE-seedSEED-ID.")
    ] = None,
    resume: Annotated[
        Path | None, Option(help="Go on with the run of this folder, as its config.json says.", metavar="DIR")
    ] = None,
    tensorboard: Annotated[bool, Option("--tensorboard", help="Log to DIR/tensorboard.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    *,
    method: MethodOptions,
    data_options: DataOptions,
    corpus: CorpusOptions,
    training: TrainingOptions,
) -> None:
    """Train one model and keep it in a folder; the same command goes on with a run that was stopped."""
    from labelkin.runs import RunSpec, check_options_are_used, is_unfinished, run_name, run_spec, tensorboard_log
    from labelkin.runs import train_run as run_training
    from labelkin.training import Settings

    if resume is not None:
        _check_alone(context)
        spec, folder, going = run_spec(resume), resume, True
    elif data is None or objective is None:
        raise InputError("train: expected DATA and --objective NAME, as `labelkin train digits --objective one-hot`.")
    else:
        corpus.check(data)
        spec = RunSpec(
            data=data,
            objective=objective,
            backbone=method.backbone,
            taxonomy=method.taxonomy,
            settings=Settings.of(seed=seed, **training.settings()),
            data_options={**data_options.chosen(), **corpus.chosen()},
            options=method.options.get(objective, {}),
        )
        check_options_are_used(method.options, [objective])
        folder = out or Path("runs", run_name(spec))
        going = is_unfinished(spec, folder)
        if going:
            aside(f"{folder}: holds this run, not finished; going on with it.")
    shown = partial(progress, f"{spec.objective} seed {spec.settings.seed}", spec.settings.epochs)
    log = tensorboard_log(folder) if tensorboard else nullcontext(lambda row: None)
    with going_on(partial(_next_command, folder)), results_last(), log as logged:
        trained = run_training(spec, folder, resume=going, progress=shown, log=logged)
    if json:
        say_json({"folder": str(folder), "epoch": trained.epoch, "seconds": trained.seconds, **trained.metrics})
    else:
        say_metrics(trained.metrics)
        say(f"The run is in {folder}")


def _check_alone(context: typer.Context) -> None:
    """A run that goes on takes nothing from the command line that could change it."""
    if (typed := typed_besides(context, ("resume", "tensorboard", "json"))) is not None:
        raise InputError(f"--resume takes everything from the folder's config.json; leave {typed} out.")


def _next_command(folder: Path) -> str:
    """What goes on with the run, or begins it where it had not begun."""
    begun = (folder / "config.json").exists()
    return f"labelkin train --resume {shlex.quote(str(folder))}" if begun else this_command()
