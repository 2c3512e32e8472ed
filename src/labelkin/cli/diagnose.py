"""Why a structured loss changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from labelkin._checks import InputError
from labelkin.cli.run import Run
from labelkin.cli.show import results_last, say, say_json, say_table

if TYPE_CHECKING:
    from labelkin.analysis import Diagnosis


def diagnose(
    run: Run,
    reference: Annotated[
        Path | None, Option(help="Folder of a one-hot run on the same data, to judge by.", metavar="RUN")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say why a tree loss or smoothed targets change nothing: four causes, or none.

    The tree may be flat, the targets without structure, the weights vanish, or the tree be respected already. Judged on
    the run's own test set, by the tree that the run was measured with.
    """
    with results_last():
        found = _diagnosed(run, reference)
    if json:
        say_json(found.as_dict())
        return
    say(f"{found.cause}\n\n{found}\n")
    say_table(("figure", "value"), [(name, f"{value:.4g}") for name, value in found.figures().items()])


def _diagnosed(run: Path, reference: Path | None) -> Diagnosis:
    import torch

    from labelkin import analysis
    from labelkin.experiments import load_run
    from labelkin.training import RunFolder

    predictor = load_run(run)
    outputs = RunFolder(run).outputs()
    plain = None
    if reference is not None:
        load_run(reference)  # refuses what is not a finished run
        plain = RunFolder(reference).outputs()
        if not torch.equal(plain["target"], outputs["target"]):
            raise InputError(f"{reference}: was tested on other samples than {run}; name a run on the same data.")
    return analysis.diagnose(
        predictor.model.objective,
        outputs["scores"],
        outputs["target"],
        taxonomy=predictor.taxonomy,
        reference=None if plain is None else plain["scores"],
    )
