"""The command `labelkin train`."""

import shlex
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._completion import complete_data, complete_objective
from labelkin.cli._corpus_options import CorpusOptions
from labelkin.cli._errors import suggest_resuming
from labelkin.cli._option_groups import first_option_besides, with_option_groups
from labelkin.cli._options import DATA, DataOptions, MethodOptions, TrainingOptions
from labelkin.cli._show import other_output_to_stderr, progress, say, say_json, say_metrics, say_status, typed_command

if TYPE_CHECKING:
    from labelkin.runs import RunSpec
    from labelkin.training import Progress


@with_option_groups
def train(
    context: typer.Context,
    data: Annotated[str | None, Argument(help=f"{DATA}.", autocompletion=complete_data)] = None,
    objective: Annotated[
        str | None,
        Option(
            help="Objective to train; see `labelkin objectives`. Default: kin if there is a taxonomy, else label-embedding.",
            metavar="NAME",
            autocompletion=complete_objective,
        ),
    ] = None,
    seed: Annotated[int, Option(help="Random seed of initial weights and batches.")] = 0,
    fold: Annotated[int | None, Option(help="With --folds K: the fold to test on, 0 to K - 1.", metavar="N")] = None,
    out: Annotated[Path | None, Option(help="Folder of the run. Default: runs/OBJECTIVE-seedSEED-ID.")] = None,
    resume: Annotated[
        Path | None, Option(help="Resume the run in this folder with the settings of its config.json.", metavar="DIR")
    ] = None,
    tensorboard: Annotated[
        bool, Option("--tensorboard", help="Write TensorBoard logs to the folder tensorboard/ of the run.")
    ] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    *,
    method: MethodOptions,
    data_options: DataOptions,
    corpus: CorpusOptions,
    training: TrainingOptions,
) -> None:
    """Train one model. Run the same command again to resume an interrupted run."""
    from labelkin.runs import (
        DataCache,
        RunSpec,
        check_options_are_used,
        first_choice,
        is_unfinished,
        run_name,
        run_spec,
        tensorboard_log,
    )
    from labelkin.runs import train_run as run_training
    from labelkin.training import Settings

    sets, why = DataCache(), ""
    if resume is not None:
        _check_alone(context)
        spec, folder, begun = run_spec(resume), resume, True
    elif data is None:
        raise InputError("train: expected DATA, as in `labelkin train digits`, or --resume DIR.")
    else:
        corpus.check(data)
        if (fold is None) != (data_options.folds is None):
            raise InputError(
                "--folds and --fold: expected both, as in `--folds 5 --fold 0`; `labelkin compare` trains all folds."
            )
        spec = RunSpec(
            data=data,
            objective=objective or "one-hot",
            backbone=method.backbone,
            taxonomy=method.taxonomy,
            settings=Settings.of(seed=seed, **training.settings()),
            data_options={**data_options.chosen(), **({} if fold is None else {"fold": fold}), **corpus.chosen()},
        )
        if objective is None:
            choice = first_choice(spec, sets)
            objective = choice.trained
            why = f"Training {objective}, because {choice.reason}; --objective names another."
        check_options_are_used(method.options, [objective])
        spec = replace(spec, objective=objective, options=method.options.get(objective, {}))
        folder = out or Path("runs", run_name(spec))
        begun = is_unfinished(spec, folder)
        if begun:
            say_status(f"{folder}: this run is not finished; resuming it.")
    show_progress = partial(_show_progress, spec, why)
    log = tensorboard_log(folder) if tensorboard else nullcontext(lambda row: None)
    with suggest_resuming(partial(_next_command, folder)), other_output_to_stderr(), log as logged:
        trained = run_training(
            spec, folder, resume=begun, workspace=sets.workspace(spec), progress=show_progress, log=logged
        )
    if json:
        say_json({"folder": str(folder), "epoch": trained.epoch, "seconds": trained.seconds, **trained.metrics})
    else:
        say_metrics(trained.metrics)
        say(f"The run is in {folder}")


def _show_progress(spec: "RunSpec", why: str, steps: int) -> "Progress":
    """Explain the choice of the objective once the run has passed all checks, and show the progress of its training."""
    if why:
        say_status(why)
    return progress(f"{spec.objective} seed {spec.settings.seed}", spec.settings.epochs, steps)


def _check_alone(context: typer.Context) -> None:
    """Refuse options that could change a run that is resumed."""
    if (typed := first_option_besides(context, ("resume", "tensorboard", "json"))) is not None:
        raise InputError(f"--resume: all settings come from config.json of the run; leave {typed} out.")


def _next_command(folder: Path) -> str:
    """Return the command that resumes the run, or starts it if it has not started."""
    begun = (folder / "config.json").exists()
    return f"labelkin train --resume {shlex.quote(str(folder))}" if begun else typed_command()
