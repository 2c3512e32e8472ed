"""Write the predictions of a run to a table."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from labelkin._checks import InputError, near
from labelkin._files import check_replaceable, write_text
from labelkin.data import OnError, UnlabeledBatch, read_unlabeled
from labelkin.decide import RuleName
from labelkin.runs._places import check_no_overwrite
from labelkin.runs._prediction import Prediction
from labelkin.runs._predictor import Predictor, load_run, run_spec
from labelkin.runs._run_rule import has_reasons
from labelkin.runs._setup import fastest_device

FIELDS = ("input", "row", "class", "probability", "path")
KIND, WHY = "kind", "why"


class Written(NamedTuple):
    """What was written to a file of predictions.

    Attributes:
        rows: The number of rows.
        actions: How often each action was chosen; empty if the rule has none to choose.
    """

    rows: int
    actions: dict[str, int]


def write_predictions(
    run: str | os.PathLike[str],
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    on_error: OnError = "stop",
    decide: RuleName | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    confidence: float | None = None,
    costs: Any = None,
    shares: Tensor | None = None,
    all_probs: bool = False,
    explain: bool = False,
) -> int:
    """Predict the class of every input and write one row per sample to a `.csv` or `.jsonl` file.

    A row has the file, the position in it from 0 if it holds several samples, the answer, its calibrated probability if there
    is one, the path to the answer if the run has a taxonomy, and the kind of answer: "class", "ancestor" for an inner node,
    "none" for the root, or "action" for an action of the costs, which has no probability and no path. An output that would
    overwrite an input or a file that the run was trained on is refused.

    Args:
        run: The folder of a finished run, or the result of `labelkin.train`.
        inputs: Images, arrays, tables or folders of images, as `labelkin.data.read_unlabeled` reads them.
        output: The file to write.
        on_error: On an unreadable image: "stop" or "skip".
        decide: "argmax", "crm" or "fallback"; see `Predictor.rule`, also for the next five.
        threshold: The threshold of "fallback".
        coverage: The coverage of "fallback".
        confidence: The confidence of the coverage.
        costs: Costs for "crm", also of actions: a file, a mapping, a DataFrame or a matrix.
        shares: (K,) shares or counts of the classes in the new samples, in the order of the run's classes.
        all_probs: Whether to add a column `p_CLASS` with the probability of each class.
        explain: Whether to add a column `why` with the probabilities along the path, such as "animal 0.93 > dog 0.71", or the
            expected cost of an action.

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
    given = {
        "decide": decide,
        "threshold": threshold,
        "coverage": coverage,
        "confidence": confidence,
        "costs": costs,
        "shares": shares,
    }
    return predict_files(run, inputs, output, given, on_error=on_error, all_probs=all_probs, explain=explain).rows


def predict_files(
    run: str | os.PathLike[str],
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    options: Mapping[str, Any],
    *,
    on_error: OnError = "stop",
    all_probs: bool = False,
    explain: bool = False,
) -> Written:
    """Do what `write_predictions` does, with the options of `Predictor.rule` by name, and count the actions too."""
    target = Path(output)
    write = _writer(target)
    check_no_overwrite(target, inputs=inputs, run=run, spec=run_spec(run))
    check_replaceable(target, by="labelkin predict", is_ours=_is_ours)
    predictor = load_run(run).to(fastest_device())
    rule = predictor.rule(**options)
    for name, wanted in (("all_probs", all_probs), ("explain", explain)):
        if wanted and isnan(predictor.calibration.temperature):
            raise InputError(f"{name}: {os.fspath(run)} has no probabilities; leave it out.")
    if explain and not has_reasons(predictor, rule):
        raise InputError(
            f"explain: {os.fspath(run)} has no taxonomy, so answers have no path; leave it out, or pass costs to compare."
        )
    parts = read_unlabeled(inputs, shape=predictor.shape, samples=predictor.samples, on_error=on_error)
    further = [KIND, *([WHY] if explain else []), *(f"p_{name}" for name in predictor.classes if all_probs)]
    columns = [*FIELDS, *further]
    rows: list[dict[str, Any]] = []
    for part in parts:
        if len(part.inputs):
            rows += _rows(predictor, predictor.predict(part.inputs, decide=rule), part, columns)
    write_text(target, write(rows, columns))
    chosen = Counter(row["class"] for row in rows if row[KIND] == "action")
    return Written(len(rows), {name: chosen[name] for name in rule.actions if rule.name == "crm"})


def _rows(
    predictor: Predictor, predicted: Prediction, part: UnlabeledBatch, columns: Sequence[str]
) -> Iterator[dict[str, Any]]:
    assert predicted.nodes is not None
    assert predicted.rule is not None
    nodes = predicted.nodes.tolist()
    paths = {node: predictor.path_to_node(node) for node in set(nodes)}
    known, every = predicted.probabilities, predicted.all_probabilities
    values: dict[str, Sequence[Any]] = {
        "input": part.files,
        "row": part.rows,
        "class": predicted.classes,
        "probability": [None] * len(nodes) if known is None else _rounded(known),
        "path": [paths[node] for node in nodes],
        KIND: predicted.rule.kinds(predicted.nodes),
    }
    if WHY in columns:
        values[WHY] = predictor.explain(predicted)
    if every is not None and len(columns) > len(values):
        values |= {f"p_{name}": _rounded(every[:, k]) for k, name in enumerate(predictor.classes)}
    for row in zip(*values.values(), strict=True):
        yield dict(zip(values, row, strict=True))


def _rounded(values: Tensor) -> list[float | None]:
    return [None if isnan(value) else round(value, 6) for value in values.tolist()]  # an action has no probability


def _writer(target: Path) -> Any:
    writers = {".csv": _as_csv, ".jsonl": _as_jsonl}
    if target.suffix.lower() not in writers:
        raise InputError(f"{target}: expected a name that ends in .csv or .jsonl.{near(target.suffix, writers)}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; create it first.")
    return writers[target.suffix.lower()]


def _is_ours(start: bytes) -> bool:
    """Return whether a file begins as a table or lines of predictions do."""
    names = [f'"{name}":'.encode() for name in FIELDS[:3]]
    line = start.partition(b"\n")[0]
    return line.startswith(",".join(FIELDS).encode()) or (line.startswith(b"{") and all(name in line for name in names))


def _as_csv(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _as_jsonl(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
