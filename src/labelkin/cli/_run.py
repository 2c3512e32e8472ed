"""Commands on a finished run: evaluate, predict, export, translate, inspect and diagnose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from labelkin._checks import InputError
from labelkin.cli._option_groups import words
from labelkin.cli._show import results_last, say, say_json, say_metrics, say_table

if TYPE_CHECKING:
    from labelkin.analysis import Diagnosis

OnError = Literal["stop", "skip"]
Run = Annotated[Path, Argument(help="Folder of a finished run, as `labelkin runs list` names them.")]


def evaluate(
    run: Run,
    data: Annotated[
        str | None,
        Argument(
            help="Other data with the same class names. Default: the run's own test set, where its data are as they were."
        ),
    ] = None,
    data_dir: Annotated[Path | None, Option(help="Where the named sets lie.")] = None,
    label: Annotated[str | None, Option(help="A table's column of labels. Default: the run's, else label.")] = None,
    text: Annotated[str | None, Option(help="A table's column of texts. Default: the run's.")] = None,
    features: Annotated[str | None, Option(help="A table's columns of numbers: a,b,c. Default: the run's.")] = None,
    on_error: Annotated[OnError | None, Option(help="What an unreadable image does. Default: stop.")] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a run on its own test set, or on other data."""
    from labelkin.runs import evaluate as run_evaluation

    given = {"data_dir": data_dir, "label": label, "text": text, "features": words(features), "on_error": on_error}
    options = {name: value for name, value in given.items() if value is not None}
    with results_last():
        found = run_evaluation(run, data, data_options=options)
    if json:
        say_json({"data": found.data, "samples": found.samples, **found.metrics})
    else:
        say(f"{found.samples} samples of {found.data}")
        say_metrics(found.metrics)


def predict(
    run: Run,
    inputs: Annotated[
        list[Path],
        Argument(
            help="Images or, for a run on texts, .txt files; folders of them; .npy or .npz arrays; .csv, .jsonl or .parquet "
            "tables."
        ),
    ],
    output: Annotated[Path, Option("--output", "-o", help="A .csv or .jsonl file.", metavar="FILE")],
    on_error: Annotated[OnError, Option(help="What an unreadable image does.")] = "stop",
) -> None:
    """Write the class of each input, its probability and the path to it in the taxonomy.

    Rows are counted from 0. The probability is empty where the objective defines none, the path where no taxonomy was
    given.
    """
    from labelkin.runs import write_predictions

    with results_last():
        count = write_predictions(run, inputs, output, on_error=on_error)
    say(f"{count} predictions in {output}")


def export(
    run: Run,
    output: Annotated[Path, Option("--output", "-o", help="A .onnx or .pt2 file.", metavar="FILE")],
) -> None:
    """Write the model for other runtimes: samples as the data had them in, log-probabilities out."""
    from labelkin.runs import export_model as run_export

    with results_last():
        exported = run_export(run, output)
    how = f"checked with {exported.checked_by}" if exported.checked_by else "not checked: install onnxruntime for that"
    say(f"The model is in {exported.path} ({how})")


def translate(
    run: Run,
    file: Annotated[Path, Argument(help="A sentence a line, UTF-8; also .gz.")],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Write here instead of to the screen.", metavar="FILE")
    ] = None,
    beam: Annotated[int | None, Option(help="Width of the search; 1 is greedy. Default: the run's.")] = None,
    length_penalty: Annotated[
        float | None, Option(help="0: plain probability. 1: mean over words. Default: the run's.")
    ] = None,
) -> None:
    """Translate a file, line by line, with a run on a parallel corpus."""
    from labelkin.translate import translate_file

    with results_last():
        found = translate_file(run, file, output, beam=beam, length_penalty=length_penalty)
    if output is None:
        for line in found:
            say(line)
    else:
        say(f"{len(found)} translations in {output}")


def inspect(
    run: Run,
    label: Annotated[list[str], Option(help="A word or class name; again for more.", metavar="NAME")],
    top: Annotated[int, Option(help="How many.")] = 10,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the labels nearest to one, by the embedding that the run learned."""
    from labelkin.translate import nearest_labels

    with results_last():
        found = nearest_labels(run, label, top=top)
    if json:
        say_json([entry._asdict() for entry in found])
    else:
        say_table(("label", "nearest, nearest first"), [(entry.label, ", ".join(entry.nearest)) for entry in found])


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
    from labelkin.runs import RunFolder, load_run

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
