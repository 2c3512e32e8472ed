"""Read predictions and check their classes, lengths and numbers."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._arrays import PERCENT_ROUNDING, check_probs
from labelkin._checks import InputError, check_names, counted, listed, near
from labelkin._numpy_files import load_numpy
from labelkin.audit._read_files import read_arrays, read_table
from labelkin.audit._schema import Fields, Floats, Kind, Raw, class_positions
from labelkin.data import class_names

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
        target: (n,) positions of the true classes.
        predicted: (n,) positions of the predicted classes.
        logits: (n, K) float64 logits, or logarithms of the probabilities; None for predicted labels.
        probs: (n, K) float64 probabilities; None for predicted labels.
        notes: Remarks on the data.
        doubt: A warning that the logits look like probabilities.
    """

    source: str
    kind: Kind
    classes: tuple[str, ...]
    target: Tensor
    predicted: Tensor
    logits: Tensor | None
    probs: Tensor | None
    notes: tuple[str, ...]
    doubt: str | None = None


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
    """Return the arrays of an .npz file by name."""
    arrays = load_numpy(path)
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
        raise InputError(f"classes: expected {raw.scores.shape[1]} names, one for each score, got {len(classes)}.")
    target = class_positions(raw.target, classes, what="target")
    notes = _without_samples(target, classes)
    if raw.scores is None:
        assert raw.predicted is not None
        predicted = class_positions(raw.predicted, classes, what="predicted")
        return Predictions(source, raw.kind, classes, target, predicted, None, None, notes)
    best = torch.from_numpy(raw.scores).argmax(-1)
    if raw.kind == "logits":
        logits = torch.from_numpy(raw.scores)
        fields = (target, best, logits, logits.softmax(-1))
        return Predictions(source, raw.kind, classes, *fields, notes, doubt(raw.scores))
    probs, rounding = checked_probs(raw.scores, raw.sample_names)
    logits = probs.clamp_min(_floor(probs)).log()
    return Predictions(
        source, raw.kind, classes, target, best, logits, probs, notes + rounding + _zero_probability(probs, target)
    )


def _classes(raw: Raw, names: Sequence[str] | None) -> tuple[str, ...]:
    if names is not None:
        return tuple(names)
    if raw.names is not None:
        return raw.names
    if raw.scores is not None:
        return tuple(str(k) for k in range(raw.scores.shape[1]))
    return class_names([*raw.target, *(raw.predicted or ())])


def _without_samples(target: Tensor, classes: Sequence[str]) -> tuple[str, ...]:
    absent = (target.bincount(minlength=len(classes)) == 0).nonzero().flatten().tolist()
    if not absent:
        return ()
    verb = "has" if len(absent) == 1 else "have"
    return (f"{len(absent)} of {len(classes)} classes {verb} no samples: {listed([classes[k] for k in absent])}.",)


def checked_probs(scores: Floats, sample_names: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Return the rows divided by their sums, which must be close to 1, and a note if they were not very close."""
    probs = torch.from_numpy(scores)
    check_probs("probs", probs, tolerance=TOLERANCE, hint="pass --kind logits", row_name=lambda row: sample_names[row])
    sums = probs.sum(-1, keepdim=True)
    deviation = float((sums - 1).abs().max())
    note = f"Sums of probabilities differ from 1 by up to {deviation:.1g}; each row was divided by its sum."
    return probs / sums, (note,) if deviation > ROUNDED else ()


def _floor(probs: Tensor) -> float:
    """Return what replaces a probability of 0 in logarithms: a tenth of the smallest positive probability.

    In a file with few decimals a 0 may stand for a much larger number than 1e-12; with that value, a few such samples would
    determine the temperature.
    """
    return max(LEAST_PROBABILITY, float(probs[probs > 0].min()) / 10)


def _zero_probability(probs: Tensor, target: Tensor) -> tuple[str, ...]:
    count = int((probs.gather(1, target.unsqueeze(1)) == 0).sum())
    if not count:
        return ()
    return (
        f"{counted(count, 'sample')} of {len(target):,} {'has' if count == 1 else 'have'} probability 0 for the true class, "
        "perhaps because of rounding; this makes the temperature unreliable. Use logits if you can.",
    )


def doubt(scores: Floats) -> str | None:
    """Return a question if logits look like probabilities or percentages."""
    if scores.min() < 0:
        return None
    sums = scores.sum(-1)
    if scores.max() > 1 and (abs(sums - 100) < PERCENT_ROUNDING).all():
        return (
            "logits: no value is negative and every row sums to about 100; if these are percentages, divide them by 100 and "
            "pass --kind probs."
        )
    if scores.max() > 1 or (abs(sums - 1) > ROUNDED).any():
        return None
    return (
        "logits: all values are between 0 and 1 and every row sums to 1; if these are probabilities, pass --kind probs."
    )
