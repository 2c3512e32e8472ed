"""Predict files without labels and write a table."""

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, near
from labelkin._files import write_text
from labelkin.data.images import OnError
from labelkin.data.unlabelled import Unlabelled, read_unlabelled
from labelkin.experiments.apart import check_apart
from labelkin.experiments.device import fastest_device
from labelkin.experiments.predictor import Predictor, load_run, run_spec

FIELDS = ("input", "row", "class", "probability", "path")


def write_predictions(
    run: str | os.PathLike[str],
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    on_error: OnError = "stop",
) -> int:
    """Predict the class of every input (see `read_unlabelled`) and write one row each to `.csv` or `.jsonl`.

    A row has the file, the position in it from 0 if it holds several samples, the class, its probability if the objective
    defines one, and the path to the class if the run has a taxonomy. An output that would overwrite an input or a file that the
    run was trained on is refused. Returns the number of rows.
    """
    target = Path(output)
    write = _writer(target)
    check_apart(target, inputs=inputs, run=run, spec=run_spec(run))
    predictor = load_run(run).to(fastest_device())
    found = read_unlabelled(inputs, shape=predictor.shape, samples=predictor.samples, on_error=on_error)
    rows = [row for part in found if len(part.inputs) for row in _rows(predictor, part)]
    write_text(target, write(rows))
    return len(rows)


def _rows(predictor: Predictor, part: Unlabelled) -> Iterator[dict[str, Any]]:
    predicted = predictor.predict(part.inputs)
    positions = predicted.positions.tolist()
    paths = {position: predictor.path(position) for position in set(positions)}
    known = predicted.probabilities
    probabilities = [None] * len(positions) if known is None else known.tolist()
    for values in zip(part.files, part.rows, positions, probabilities, strict=True):
        file, row, position, probability = values
        told = None if probability is None else round(probability, 6)
        found = (file, row, predictor.classes[position], told, paths[position])
        yield dict(zip(FIELDS, found, strict=True))


def _writer(target: Path) -> Any:
    writers = {".csv": _as_csv, ".jsonl": _as_jsonl}
    if target.suffix.lower() not in writers:
        raise InputError(f"{target}: expected a name that ends in .csv or .jsonl.{near(target.suffix, writers)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; make it first.")
    return writers[target.suffix.lower()]


def _as_csv(rows: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _as_jsonl(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
