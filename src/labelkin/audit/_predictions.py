"""Read predictions from files or from a finished run, and check their classes, lengths and numbers."""

import os
from collections.abc import Mapping, Sequence
from math import inf, isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from labelkin._arrays import PERCENT_ROUNDING, check_probs
from labelkin._checks import InputError, check_names, counted, listed, near, refuse_damaged
from labelkin._numpy_files import open_numpy
from labelkin.audit._columns import Column, ColumnWriter
from labelkin.audit._names import ASK
from labelkin.audit._pairs import Pairs, count_pairs
from labelkin.audit._read_files import read_arrays, read_table
from labelkin.audit._schema import Fields, Kind, Labels, Raw, class_positions
from labelkin.audit._scores import IN_MEMORY, Scores
from labelkin.data import class_names
from labelkin.runs import RunFolder, calibration_of, existing_run_folder, kind_in, restored_context
from labelkin.structure import Taxonomy

SUFFIXES = (".npz", ".csv", ".jsonl", ".parquet")
TOLERANCE = 1e-2  # of a row's sum; wide, because text files often hold few decimals
ROUNDED = 1e-3  # a larger deviation of a row's sum is noted
LEAST_PROBABILITY = 1e-12
Source = str | os.PathLike[str] | Mapping[str, Any]


class Predictions(NamedTuple):
    """Checked predictions.

    Attributes:
        source: The file's path, or "arrays".
        kind: What the predictions are.
        classes: The class names.
        true: (n,) positions of the true classes, in memory or in a file.
        answers: (n,) positions of the predicted classes.
        pairs: How often each class was predicted for each true class.
        logit_rows: (n, K) logits, or logarithms of the probabilities; None for predicted labels.
        prob_rows: (n, K) probabilities; None for predicted labels.
        notes: Remarks on the data.
        doubt: A warning that the logits look like probabilities.
    """

    source: str
    kind: Kind
    classes: tuple[str, ...]
    true: Column
    answers: Column
    pairs: Pairs
    logit_rows: Scores | None
    prob_rows: Scores | None
    notes: tuple[str, ...]
    doubt: str | None = None

    @property
    def target(self) -> Tensor:
        """(n,) positions of the true classes, in memory."""
        return self.true.tensor()

    @property
    def predicted(self) -> Tensor:
        """(n,) positions of the predicted classes, in memory."""
        return self.answers.tensor()

    @property
    def logits(self) -> Tensor | None:
        """(n, K) float64 logits, or logarithms of the probabilities, in memory; None for predicted labels."""
        return None if self.logit_rows is None else self.logit_rows.tensor()

    @property
    def probs(self) -> Tensor | None:
        """(n, K) float64 probabilities, in memory; None for predicted labels."""
        return None if self.prob_rows is None else self.prob_rows.tensor()


def read_raw(source: Source, kind: str | None, fields: Fields) -> Raw:
    """Read a file or a mapping of arrays."""
    if isinstance(source, Mapping):
        return read_arrays(source, kind, fields, "the mapping")
    path = check_file(source)
    if path.suffix.lower() != ".npz":
        return read_table(path, kind, fields)
    return read_arrays(load_named_arrays(path), kind, fields, str(path))


def check_file(source: str | os.PathLike[str]) -> Path:
    """Return the path of a file of predictions; refuse other formats, missing and empty files."""
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in {', '.join(SUFFIXES)}.{near(path.suffix, SUFFIXES)}")
    if not path.is_file():
        siblings = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"{path}: there is no such file.{near(path.name, siblings)}")
    if not path.stat().st_size:
        raise InputError(f"{path}: the file is empty.")
    return path


def load_named_arrays(path: Path) -> Mapping[str, Any]:
    """Return the arrays of an .npz file by name; large tables stay in the file."""
    arrays = open_numpy(path, most=IN_MEMORY)
    if not isinstance(arrays, Mapping):
        raise InputError(
            f"{path}: expected an .npz file of named arrays, got a single array; write it with "
            "numpy.savez(path, target=..., logits=...)."
        )
    return arrays


def check_predictions(raw: Raw, names: Sequence[str] | None, source: str) -> Predictions:
    """Return predictions with class positions instead of labels.

    Args:
        raw: The predictions as read.
        names: The class names; None takes those of the source, or derives them from the scores or labels.
        source: The name of the source.
    """
    classes = _classes(raw, names)
    check_names("classes", classes, least=2)
    if raw.scores is not None and len(classes) != raw.scores.shape[1]:
        raise InputError(
            f"classes: expected {counted(raw.scores.shape[1], 'name')}, one for each score, got {len(classes)}."
        )
    if raw.scores is not None and names is None and raw.names is None:
        _check_numbered(raw.target, source)
    true = class_positions(raw.target, classes, what="target")
    if raw.scores is None:
        assert raw.predicted is not None
        answers = class_positions(raw.predicted, classes, what="predicted")
    else:
        answers = _most_probable(raw.scores)
    pairs = count_pairs(zip(true.blocks(), answers.blocks(), strict=True), len(classes))
    fields = (true, answers, pairs)
    notes = _without_samples(pairs, classes)
    if raw.scores is None:
        return Predictions(source, raw.kind, classes, *fields, None, None, notes)
    if raw.kind == "logits":
        rows = (raw.scores, raw.scores.map(lambda block: block.softmax(-1)))
        return Predictions(source, raw.kind, classes, *fields, *rows, notes, doubt(raw.scores))
    probs, rounding = checked_probs(raw.scores, raw.sample_names)
    least, impossible = _extremes(probs, true)
    floor = max(LEAST_PROBABILITY, least / 10)
    logits = probs.map(lambda block: block.clamp_min(floor).log())
    notes += rounding + _zero_probability(impossible, len(true))
    return Predictions(source, raw.kind, classes, *fields, logits, probs, notes)


def _most_probable(scores: Scores) -> Column:
    found = ColumnWriter()
    for _, block in scores.blocks():
        found.add(block.argmax(-1).numpy())
    return found.column()


def _classes(raw: Raw, names: Sequence[str] | None) -> tuple[str, ...]:
    if names is not None:
        return tuple(names)
    if raw.names is not None:
        return raw.names
    if raw.scores is not None:
        return tuple(str(k) for k in range(raw.scores.shape[1]))
    return class_names([*raw.target.distinct, *(() if raw.predicted is None else raw.predicted.distinct)])


def _check_numbered(labels: Labels, source: str) -> None:
    """Refuse labels that are names if the source does not say which score is of which class."""
    named = sorted({label for label in labels.distinct if not label.isdecimal()})
    if named:
        raise InputError(
            f"target: the labels are names ({listed(named, 3)}), but {source} does not say which score is of which class; "
            f"{ASK}."
        )


def _without_samples(pairs: Pairs, classes: Sequence[str]) -> tuple[str, ...]:
    present = set(pairs.true.tolist())
    absent = [k for k in range(len(classes)) if k not in present]
    if not absent:
        return ()
    verb = "has" if len(absent) == 1 else "have"
    return (f"{len(absent)} of {len(classes)} classes {verb} no samples: {listed([classes[k] for k in absent])}.",)


def checked_probs(scores: Scores, sample_names: Sequence[str]) -> tuple[Scores, tuple[str, ...]]:
    """Return the rows divided by their sums, which must be close to 1, and a note if they were not very close."""
    deviation = 0.0
    for place, block in scores.blocks():
        own = sample_names[place]
        check_probs("probs", block, tolerance=TOLERANCE, hint="pass --kind logits", row_name=own.__getitem__)
        deviation = max(deviation, float((block.sum(-1) - 1).abs().max()))
    note = f"Sums of probabilities differ from 1 by up to {deviation:.1g}; each row was divided by its sum."
    return scores.map(lambda block: block / block.sum(-1, keepdim=True)), (note,) if deviation > ROUNDED else ()


def _extremes(probs: Scores, true: Column) -> tuple[float, int]:
    """Return the smallest positive probability, and the number of samples whose true class has probability 0.

    A tenth of the smallest one replaces a probability of 0 in logarithms: in a file with few decimals a 0 may stand for a much
    larger number than 1e-12; with that value, a few such samples would determine the temperature.
    """
    least, impossible = inf, 0
    for block, target in probs.beside(true):
        least = min(least, float(block.masked_fill(block <= 0, inf).min()))
        impossible += int((block.gather(1, target.unsqueeze(1)) == 0).sum())
    return least, impossible


def _zero_probability(count: int, samples: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (
        f"{counted(count, 'sample')} of {samples:,} {'has' if count == 1 else 'have'} probability 0 for the true class, "
        "perhaps because of rounding; this makes the temperature unreliable. Use logits if you can.",
    )


def doubt(scores: Scores) -> str | None:
    """Return a question if logits look like probabilities or percentages."""
    shares = percentages = True
    for _, block in scores.blocks():
        sums, positive = block.sum(-1), bool(block.min() >= 0)
        shares &= positive and bool(block.max() <= 1) and bool(((sums - 1).abs() <= ROUNDED).all())
        percentages &= positive and bool(((sums - 100).abs() < PERCENT_ROUNDING).all())
        if not shares and not percentages:
            return None
    if percentages:
        return (
            "logits: no value is negative and every row sums to about 100; if these are percentages, divide them by 100 and "
            "pass --kind probs."
        )
    return (
        "logits: all values are between 0 and 1 and every row sums to 1; if these are probabilities, pass --kind probs."
    )


class RunPredictions(NamedTuple):
    """The predictions of a run as `read_arrays` takes them, and its taxonomy, unless it was built from the data."""

    arrays: dict[str, Any]
    taxonomy: Taxonomy | None


def read_run(path: str | os.PathLike[str]) -> RunPredictions:
    """Read the test set's true classes and calibrated scores; predicted labels if the scores are not probabilities."""
    folder = RunFolder(existing_run_folder(path))
    if kind_in(folder.config) == "translation":
        raise InputError(
            f"{path}: this is a translation run, which has no classes to audit; give a classification run."
        )
    if folder.final is None:
        raise InputError(f"{path}: the run is not finished; resume it with `labelkin train --resume {path}`.")
    if not (folder.path / "outputs.safetensors").exists():
        raise InputError(
            f"{path}: the run has no stored outputs, as after `labelkin runs unpack`; give the original folder."
        )
    setup, outputs = folder.setup, folder.outputs()
    with refuse_damaged(folder.path / "setup.safetensors"):
        context = restored_context(setup["context"])
    names = np.array(context.classes)
    with refuse_damaged(folder.path / "outputs.safetensors"):
        scores, positions = outputs["scores"].double().numpy(), outputs["target"].numpy()
        if scores.shape != (len(positions), len(names)) or positions.min() < 0:
            raise ValueError(f"its scores have the shape {scores.shape}, expected {(len(positions), len(names))}")
        target = names[positions]
    temperature = calibration_of(folder).temperature
    arrays: dict[str, Any] = {"target": target, "classes": list(context.classes)}
    if isnan(temperature):
        arrays["predicted"] = names[scores.argmax(-1)]
    else:
        arrays["logits"] = scores / temperature
    return RunPredictions(arrays, None if folder.config["tree"] == "built" else context.tree())
