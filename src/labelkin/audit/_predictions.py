"""Predictions whose classes, lengths and numbers are right."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._arrays import check_probs
from labelkin._checks import InputError, check_names, near
from labelkin.audit._read_files import read_arrays, read_table
from labelkin.audit._schema import Fields, Floats, Kind, Raw, class_places
from labelkin.data import class_names, load_arrays

SUFFIXES = (".npz", ".csv", ".jsonl", ".parquet")
TOLERANCE = 1e-2  # of a row's sum: files hold decimals, whose rounding their dtype does not tell
ROUNDED = 1e-3  # worth a word
LEAST_PROBABILITY = 1e-12
Source = str | os.PathLike[str] | Mapping[str, Any]


class Predictions(NamedTuple):
    source: str
    kind: Kind
    classes: tuple[str, ...]
    target: Tensor  # (n,) class positions
    predicted: Tensor  # (n,) the best-scored class, or the label given
    logits: Tensor | None  # (n, K) float64; of probabilities their logarithm
    probs: Tensor | None
    notes: tuple[str, ...]
    doubt: str | None = None  # whether the numbers are what they are said to be


def read_raw(source: Source, kind: str | None, fields: Fields) -> Raw:
    """The file, or the arrays, as they are."""
    if isinstance(source, Mapping):
        return read_arrays(source, kind, fields, "the arrays")
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in {', '.join(SUFFIXES)}.{near(path.suffix, SUFFIXES)}")
    if not path.is_file():
        beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"{path}: there is no such file.{near(path.name, beside)}")
    if not path.stat().st_size:
        raise InputError(f"{path}: the file is empty.")
    if path.suffix.lower() != ".npz":
        return read_table(path, kind, fields)
    arrays = load_arrays(path)
    if not isinstance(arrays, Mapping):
        raise InputError(
            f"{path}: a single array under the name .npz; save it with numpy.savez(target=..., logits=...)."
        )
    return read_arrays(arrays, kind, fields, str(path))


def predictions_of(raw: Raw, names: Sequence[str] | None, source: str) -> Predictions:
    """Positions among the classes: `names`, else those of the file, else what the scores or labels themselves say."""
    classes = _classes(raw, names)
    check_names("classes", classes, least=2)
    if raw.scores is not None and len(classes) != raw.scores.shape[1]:
        raise InputError(f"classes: expected {raw.scores.shape[1]} names, one for each score, got {len(classes)}.")
    target = class_places(raw.target, classes, what="target")
    notes = _without_samples(target, classes)
    if raw.scores is None:
        assert raw.predicted is not None
        predicted = class_places(raw.predicted, classes, what="predicted")
        return Predictions(source, raw.kind, classes, target, predicted, None, None, notes)
    best = torch.from_numpy(raw.scores).argmax(-1)
    if raw.kind == "logits":
        logits = torch.from_numpy(raw.scores)
        found = (target, best, logits, logits.softmax(-1))
        return Predictions(source, raw.kind, classes, *found, notes, _doubt(raw.scores))
    probs, more = _checked_probs(raw.scores, raw.places)
    logits = probs.clamp_min(_floor(probs)).log()
    return Predictions(
        source, raw.kind, classes, target, best, logits, probs, notes + more + _impossible(probs, target)
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
    some = ", ".join(repr(classes[k]) for k in absent[:5]) + (", ..." if len(absent) > 5 else "")
    return (f"{len(absent)} of {len(classes)} classes have no sample: {some}.",)


def _checked_probs(scores: Floats, places: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Rows divided by their sums, which must be near 1."""
    probs = torch.from_numpy(scores)
    check_probs("probs", probs, tolerance=TOLERANCE, hint="say --kind logits", row_name=lambda row: places[row])
    sums = probs.sum(-1, keepdim=True)
    rounded = float((sums - 1).abs().max())
    note = f"probabilities sum to 1 within {rounded:.1g} and were divided by their sums."
    return probs / sums, (note,) if rounded > ROUNDED else ()


def _floor(probs: Tensor) -> float:
    """What a probability of 0 stands for in logarithms: a tenth of the least that the file can say.

    Where it has few decimals that is much less sure than 1e-12, with which a few such samples would decide the
    temperature alone.
    """
    return max(LEAST_PROBABILITY, float(probs[probs > 0].min()) / 10)


def _impossible(probs: Tensor, target: Tensor) -> tuple[str, ...]:
    count = int((probs.gather(1, target.unsqueeze(1)) == 0).sum())
    if not count:
        return ()
    return (
        f"{count} of {len(target)} samples give their true class a probability of 0, perhaps by rounding; the temperature "
        "is only as good as what that 0 is taken for, and logits would say it.",
    )


def _doubt(scores: Floats) -> str | None:
    if scores.min() < 0 or scores.max() > 1 or (abs(scores.sum(-1) - 1) > ROUNDED).any():
        return None
    return (
        "logits: in every sample they lie from 0 to 1 and sum to 1, as probabilities do; if that is what they are, say "
        "--kind probs."
    )
