"""Predictions as arrays: those of an .npz file, or at hand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from labelkin._checks import InputError
from labelkin.audit.labels import label_texts
from labelkin.audit.raw import PREDICTED, Fields, Floats, Raw, find_kind, find_target, named
from labelkin.data.arrays import NAMES, check_finite


def read_arrays(arrays: Mapping[str, Any], kind: str | None, fields: Fields, source: str) -> Raw:
    """The true class of each sample, logits or probs (n, K) or predicted classes, and names in `classes` if they are there."""
    keys = sorted(arrays)
    if fields.columns is not None:
        raise InputError(f"columns: {source} holds arrays; name the one with the scores (--scores).")
    found = find_kind(kind, keys, source)
    given = named("predicted", fields.predicted or PREDICTED, keys, source) if found == "labels" else None
    scores = None if given else named("scores", fields.scores or found, keys, source)
    target = find_target(fields.target, keys, source)
    names = next((_plain(arrays[key]) for key in NAMES if key in arrays), None)
    count = len(np.atleast_1d(_plain(arrays[target])))
    places = [f"sample {i}" for i in range(count)]
    return Raw(
        kind=found,
        target=_labels(arrays[target], target, source, places),
        scores=None if scores is None else _scores(arrays[scores], scores, source, count),
        predicted=None if given is None else _labels(arrays[given], given, source, places),
        names=None if names is None else tuple(str(name) for name in names.reshape(-1).tolist()),
        places=places,
    )


def _labels(values: Any, name: str, source: str, places: list[str]) -> list[str]:
    array = _plain(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "iufUS":
        raise InputError(
            f"{name}: expected one class a sample in {source}, by name or as a whole number, got {array.dtype} of shape "
            f"{array.shape}."
        )
    if not len(array):
        raise InputError(f"{name}: {source} has no samples.")
    if len(array) != len(places):
        raise InputError(f"{name}: expected {len(places)} in {source}, as many as there are targets, got {len(array)}.")
    return label_texts(array.tolist(), what=f"{source}: {name}", places=places)


def _scores(values: Any, name: str, source: str, count: int) -> Floats:
    array = _plain(values)
    if array.ndim != 2 or array.dtype.kind not in "iuf" or array.shape[1] < 2:
        raise InputError(
            f"{name}: expected numbers of shape (n, K) in {source}, a column for each of two classes or more, got "
            f"{array.dtype} of shape {array.shape}."
        )
    if len(array) != count:
        raise InputError(f"{name}: expected {count} rows in {source}, one for each target, got {len(array)}.")
    check_finite(array, source=f"{source}: {name}")
    return array.astype(np.float64)


def _plain(values: Any) -> npt.NDArray[Any]:
    return values.detach().cpu().double().numpy() if isinstance(values, Tensor) else np.asarray(values)
