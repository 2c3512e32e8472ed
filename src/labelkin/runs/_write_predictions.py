"""Write the predictions of a run to a table."""

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

from torch import Tensor

from labelkin._checks import InputError, near
from labelkin._files import write_text
from labelkin.data import OnError, UnlabeledBatch, read_unlabeled
from labelkin.runs._answers import Rule, check_rule
from labelkin.runs._overwrite_guard import check_no_overwrite
from labelkin.runs._predictor import Prediction, Predictor, load_run, run_spec
from labelkin.runs._setup import fastest_device

FIELDS = ("input", "row", "class", "probability", "path")


def write_predictions(
    run: str | os.PathLike[str],
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    on_error: OnError = "stop",
    decide: Rule = "argmax",
    threshold: float | None = None,
    costs: Tensor | None = None,
    all_probs: bool = False,
) -> int:
    """Predict the class of every input and write one row per sample to a `.csv` or `.jsonl` file.

    A row has the file, the position in it from 0 if it holds several samples, the answer, its calibrated probability if there
    is one, and the path to the answer if the run has a taxonomy. An output that would overwrite an input or a file that the run
    was trained on is refused.

    Args:
        run: The folder of a finished run, or the result of `labelkin.train`.
        inputs: Images, arrays, tables or folders of images, as `labelkin.data.read_unlabeled` reads them.
        output: The file to write.
        on_error: On an unreadable image: "stop" or "skip".
        decide: "argmax", "crm" or "fallback"; see `Predictor.predict`, also for the next two.
        threshold: The threshold of "fallback".
        costs: (K, K) costs for "crm", in the order of the run's classes.
        all_probs: Whether to add a column `p_CLASS` with the probability of each class.

    Returns:
        The number of rows.

    Example:
        >>> import labelkin, numpy, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> run = labelkin.train("digits", out=f"{folder}/run", epochs=1)
        >>> numpy.save(f"{folder}/new.npy", labelkin.data.load("digits").test.inputs[:4].numpy())
        >>> labelkin.runs.write_predictions(run, [f"{folder}/new.npy"], f"{folder}/predictions.csv")
        4
    """
    target = Path(output)
    write = _writer(target)
    check_no_overwrite(target, inputs=inputs, run=run, spec=run_spec(run))
    predictor = load_run(run).to(fastest_device())
    check_rule(decide, threshold=threshold, costs=costs, named=not predictor.tree_built)
    if all_probs and isnan(predictor.calibration.temperature):
        raise InputError(f"all_probs: {os.fspath(run)} has no probabilities; leave it out.")
    predict = partial(predictor.predict, decide=decide, threshold=threshold, costs=costs)
    parts = read_unlabeled(inputs, shape=predictor.shape, samples=predictor.samples, on_error=on_error)
    rows = [
        row for part in parts if len(part.inputs) for row in _rows(predictor, predict(part.inputs), part, all_probs)
    ]
    write_text(target, write(rows, _columns(predictor, all_probs)))
    return len(rows)


def _columns(predictor: Predictor, all_probs: bool) -> list[str]:
    return [*FIELDS, *(f"p_{name}" for name in predictor.classes if all_probs)]


def _rows(
    predictor: Predictor, predicted: Prediction, part: UnlabeledBatch, all_probs: bool
) -> Iterator[dict[str, Any]]:
    assert predicted.nodes is not None
    nodes = predicted.nodes.tolist()
    paths = {node: predictor.path_to_node(node) for node in set(nodes)}
    known = predicted.probabilities
    probabilities = [None] * len(nodes) if known is None else [round(value, 6) for value in known.tolist()]
    every = (
        predicted.all_probabilities.tolist()
        if all_probs and predicted.all_probabilities is not None
        else [()] * len(nodes)
    )
    columns = _columns(predictor, all_probs)
    for file, row, name, node, probability, all_ in zip(
        part.files, part.rows, predicted.classes, nodes, probabilities, every, strict=True
    ):
        fields = (file, row, name, probability, paths[node], *(round(value, 6) for value in all_))
        yield dict(zip(columns, fields, strict=True))


def _writer(target: Path) -> Any:
    writers = {".csv": _as_csv, ".jsonl": _as_jsonl}
    if target.suffix.lower() not in writers:
        raise InputError(f"{target}: expected a name that ends in .csv or .jsonl.{near(target.suffix, writers)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; create it first.")
    return writers[target.suffix.lower()]


def _as_csv(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _as_jsonl(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
