"""What a finished run is for: measuring, predicting, exporting."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from labelkin.cli.show import results_last, say, say_json, say_metrics
from labelkin.cli.values import words

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
    from labelkin.experiments import evaluate as run_evaluation

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
    from labelkin.experiments import write_predictions

    with results_last():
        count = write_predictions(run, inputs, output, on_error=on_error)
    say(f"{count} predictions in {output}")


def export(
    run: Run,
    output: Annotated[Path, Option("--output", "-o", help="A .onnx or .pt2 file.", metavar="FILE")],
) -> None:
    """Write the model for other runtimes: samples as the data had them in, log-probabilities out."""
    from labelkin.experiments import export as run_export

    with results_last():
        exported = run_export(run, output)
    how = f"checked with {exported.checked_by}" if exported.checked_by else "not checked: install onnxruntime for that"
    say(f"The model is in {exported.path} ({how})")
