"""Commands on a finished run: evaluate, predict, export, serve, translate, inspect and diagnose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from labelkin._checks import InputError, counted
from labelkin.cli._decision_options import RunConfidence, RunCosts, RunCoverage, RunRule, RunShares, RunThreshold
from labelkin.cli._option_groups import column_names, words
from labelkin.cli._show import other_output_to_stderr, say, say_actions, say_json, say_metrics, say_status, say_table

if TYPE_CHECKING:
    from torch import Tensor

    from labelkin.analysis import Diagnosis


OnError = Literal["stop", "skip"]
Run = Annotated[Path, Argument(help="Folder of a finished run.")]


def evaluate(
    run: Run,
    data: Annotated[
        str | None,
        Argument(
            help="Other data with the same class names. Default: the run's test set, if its data have not changed."
        ),
    ] = None,
    data_dir: Annotated[Path | None, Option(help="Folder of the built-in data sets.")] = None,
    label: Annotated[str | None, Option(help="Label column of a table. Default: the run's, or label.")] = None,
    text: Annotated[str | None, Option(help="Text column of a table. Default: the run's.")] = None,
    features: Annotated[str | None, Option(help="Feature columns of a table: a,b,c. Default: the run's.")] = None,
    on_error: Annotated[OnError | None, Option(help="On an unreadable image: stop or skip. Default: stop.")] = None,
    unseen: Annotated[
        bool, Option("--unseen", help="Leave out the samples of DATA that the run was trained on.")
    ] = False,
    costs: Annotated[
        Path | None, Option(help="Costs by class name to decide with. Default: the run's.", metavar="FILE")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluate a run on its test set or on other data."""
    from labelkin.runs import evaluate as run_evaluation

    given = {
        "data_dir": data_dir,
        "label": column_names(label),
        "text": text,
        "features": words(features),
        "on_error": on_error,
    }
    options = {name: value for name, value in given.items() if value is not None}
    with other_output_to_stderr():
        result = run_evaluation(run, data, data_options=options, unseen=unseen, costs=costs)
    if json:
        say_json({"data": result.data, "samples": result.samples, "seen": result.seen, **result.metrics})
    else:
        say(f"{counted(result.samples, 'sample')} of {result.data}")
        say_metrics(result.metrics)


def predict(
    run: Run,
    inputs: Annotated[
        list[Path],
        Argument(
            help="Images (for a text run: .txt files), folders of them, .npy or .npz arrays, or .csv, .jsonl or .parquet "
            "tables."
        ),
    ],
    output: Annotated[Path, Option("--output", "-o", help="A .csv or .jsonl file.", metavar="FILE")],
    on_error: Annotated[OnError, Option(help="On an unreadable image: stop or skip.")] = "stop",
    decide: RunRule = None,
    threshold: RunThreshold = None,
    coverage: RunCoverage = None,
    confidence: RunConfidence = None,
    costs: RunCosts = None,
    shares: RunShares = None,
    all_probs: Annotated[
        bool, Option("--all-probs", help="Add a column p_CLASS with the probability of each class.")
    ] = False,
    explain: Annotated[
        bool,
        Option(
            "--explain",
            help="Add a column why with the probabilities along the path to the answer, or the expected cost of an action.",
        ),
    ] = False,
) -> None:
    """Predict classes and write them with calibrated probabilities and tree paths to a file.

    Rows are numbered from 0. The probability is empty if the objective defines none and the run is not calibrated, and the path
    is empty if the run has no taxonomy. The kind is class, ancestor, none (the root) or action; an action has neither
    probability nor path.
    """
    from labelkin.runs import predict_files

    with other_output_to_stderr():
        new = shares_of_run(shares, run)
        options = {
            "decide": decide,
            "threshold": threshold,
            "coverage": coverage,
            "confidence": confidence,
            "costs": costs,
            "shares": new,
        }
        written = predict_files(run, inputs, output, options, on_error=on_error, all_probs=all_probs, explain=explain)
    say(f"Wrote {written.rows} prediction{'' if written.rows == 1 else 's'} to {output}")
    say_actions(written.actions, written.rows)
    say_caveats(run, coverage, confidence, new)


def say_caveats(run: Path, coverage: float | None, confidence: float | None, shares: Tensor | None) -> None:
    """Print the caveats about the answers of a run."""
    from labelkin.runs import caveats

    for caveat in caveats(run, coverage=coverage, confidence=confidence, shares=shares):
        say_status(f"Note: {caveat}")


def shares_of_run(shares: Path | None, run: Path) -> Tensor | None:
    """Read class shares in the order of the classes of a run."""
    from labelkin.runs import load_run
    from labelkin.training import shares_for

    return None if shares is None else shares_for(shares, load_run(run).classes)


def export(
    run: Run,
    output: Annotated[Path, Option("--output", "-o", help="A .onnx or .pt2 file.", metavar="FILE")],
    decide: RunRule = None,
    threshold: RunThreshold = None,
    coverage: RunCoverage = None,
    confidence: RunConfidence = None,
    costs: RunCosts = None,
    shares: RunShares = None,
    force: Annotated[bool, Option("--force", help="Replace a file that labelkin did not write.")] = False,
) -> None:
    """Export a run to ONNX or torch.export: photos or features in; class, node, path and probability out.

    Preprocessing, temperature and decision rule are part of the file, and class and node names are in its metadata.
    """
    from labelkin.runs import export_model as run_export

    with other_output_to_stderr():
        new = shares_of_run(shares, run)
        exported = run_export(
            run,
            output,
            decide=decide,
            threshold=threshold,
            coverage=coverage,
            confidence=confidence,
            costs=costs,
            shares=new,
            force=force,
        )
    how = (
        f"checked with {exported.checked_by}" if exported.checked_by else "not checked; install onnxruntime to check it"
    )
    say(f"Wrote {exported.path} ({how})")
    say_caveats(run, coverage, confidence, new)


def translate(
    run: Run,
    file: Annotated[Path, Argument(help="Text file with one sentence per line, UTF-8, optionally .gz.")],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Write to this file instead of stdout.", metavar="FILE")
    ] = None,
    beam: Annotated[int | None, Option(help="Beam width; 1 is greedy. Default: the run's.")] = None,
    length_penalty: Annotated[
        float | None,
        Option(help="Length penalty: 0 ranks by probability, 1 by mean log-probability per word. Default: the run's."),
    ] = None,
) -> None:
    """Translate a file line by line with a translation run."""
    from labelkin.translate import translate_file

    with other_output_to_stderr():
        result = translate_file(run, file, output, beam=beam, length_penalty=length_penalty)
    if output is None:
        for line in result:
            say(line)
    else:
        say(f"Wrote {counted(len(result), 'translation')} to {output}")


def inspect(
    run: Run,
    label: Annotated[list[str], Option(help="Word or class name. Repeat for more.", metavar="NAME")],
    top: Annotated[
        int | None, Option(help="Number of neighbors to show. Default: 10, or all if there are fewer.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the nearest labels in the label embedding that a run learned."""
    from labelkin.translate import nearest_labels

    with other_output_to_stderr():
        result = nearest_labels(run, label, top=top)
    if json:
        say_json([entry._asdict() for entry in result])
    else:
        say_table(("label", "nearest labels"), [(entry.label, ", ".join(entry.nearest)) for entry in result])


def diagnose(
    run: Run,
    reference: Annotated[
        Path | None, Option(help="Folder of a one-hot run on the same data, for comparison.", metavar="RUN")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain why a tree loss or smoothed targets make no difference.

    Checks four causes on the run's test set: a flat tree, targets without structure, weights that vanish, and a tree
    that the mistakes already follow.
    """
    with other_output_to_stderr():
        result = _diagnosis(run, reference)
    if json:
        say_json(result.as_dict())
        return
    say(f"{result.cause}\n\n{result}\n")
    say_table(("figure", "value"), [(name, f"{value:.4g}") for name, value in result.figures().items()])


def _diagnosis(run: Path, reference: Path | None) -> Diagnosis:
    import torch

    from labelkin import analysis
    from labelkin.runs import RunFolder, load_run

    predictor = load_run(run)
    outputs = RunFolder(run).outputs()
    plain = None
    if reference is not None:
        load_run(reference)  # raises InputError unless this is a finished run
        plain = RunFolder(reference).outputs()
        if not torch.equal(plain["target"], outputs["target"]):
            raise InputError(
                f"--reference: {reference} was tested on other samples than {run}; choose a run on the same data."
            )
    return analysis.diagnose(
        predictor.model.objective,
        outputs["scores"],
        outputs["target"],
        taxonomy=predictor.taxonomy,
        reference=None if plain is None else plain["scores"],
    )


def serve(
    run: Annotated[Path, Argument(help="Folder of a finished run on images, texts or rows of features.")],
    decide: RunRule = None,
    threshold: RunThreshold = None,
    coverage: RunCoverage = None,
    confidence: RunConfidence = None,
    costs: RunCosts = None,
    shares: RunShares = None,
    host: Annotated[
        str,
        Option(help="Address to listen on. If other machines can reach it, requests need the token that is printed."),
    ] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0 for any free one.")] = 8765,
) -> None:
    """Serve a run on a local web page, and as JSON: drop a photo, or paste a text or a row of features.

    The page shows the answer, its path in the class tree with probabilities, and what other rules would answer.
    """
    from labelkin.serve import serve as run_server

    new = shares_of_run(shares, run)
    say_caveats(run, coverage, confidence, new)
    run_server(
        run,
        host=host,
        port=port,
        decide=decide,
        threshold=threshold,
        coverage=coverage,
        confidence=confidence,
        costs=costs,
        shares=new,
        say=say,
    )
