"""Read numpy's .npz and .npy files: arrays of numbers and text, never of objects."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, counted, listed, near
from labelkin._numpy_files import load_numpy
from labelkin.data._dataset import ArraySplit, RawDataset, class_names, positions

Array = np.ndarray[Any, np.dtype[Any]]
INPUT_KEYS = ("x", "inputs", "images", "data", "features")
TARGET_KEYS = ("y", "targets", "target", "labels", "label")
CLASS_NAME_KEYS = ("classes", "class_names", "label_names", "target_names")
CHANNELS = (1, 3, 4)


def read_npz(path: Path) -> RawDataset:
    """Read arrays `x` and `y`, or `x_train`, `y_train`, `x_test`, `y_test` (and `_val`), and the class names in `classes`.

    The other names in `INPUT_KEYS`, `TARGET_KEYS` and `CLASS_NAME_KEYS` work too. The split may come first (`train_images`).
    """
    arrays = load_numpy(path)
    if not isinstance(arrays, Mapping):
        raise InputError(
            f"{path}: expected a .npz file with several arrays, got a single array; save it with numpy.savez(x=..., y=...)."
        )
    named = {key.lower(): array for key, array in arrays.items()}
    given = {part: _pair(named, part) for part in ("train", "test", "val")}
    if not any(given.values()):
        given = {"train": _pair(named, "")}
    found = {part: pair for part, pair in given.items() if pair is not None}
    if "train" not in found:
        raise InputError(
            f"{path}: expected inputs and targets, as x and y or x_train and y_train, got {listed(sorted(arrays))}."
        )
    names = next((named[key] for key in CLASS_NAME_KEYS if key in named), None)
    return _read(found, names, path)


def read_npy(path: Path, *, labels: str | PathLike[str] | None = None) -> RawDataset:
    """Read inputs, and their labels from the file `labels` or from y.npy, targets.npy or labels.npy in the same folder."""
    names = [f"{name}.npy" for name in TARGET_KEYS]
    found = Path(labels) if labels is not None else labels_beside(path)
    if found is None:
        raise InputError(
            f"{path}: expected labels for these inputs; name their file with --labels (labels= in Python), or save them in "
            f"the same folder as {names[0]}."
        )
    if not found.is_file():
        raise InputError(f"labels: there is no file {str(found)!r}.{near(found.name, names)}")
    return _read({"train": (_single(path), _single(found))}, None, path)


def labels_beside(path: Path) -> Path | None:
    """Return the default label file of a `.npy` file of inputs, if it exists."""
    if path.suffix.lower() != ".npy":
        return None
    beside = (path.with_name(f"{name}.npy") for name in TARGET_KEYS)
    return next((p for p in beside if p.is_file() and p != path), None)


def as_inputs(array: Array, *, source: str) -> Tensor:
    """Return inputs (n, D) or (n, C, H, W); `uint8` images keep their dtype, others become float32. Channels may be last."""
    if array.dtype.kind not in "biuf":
        raise InputError(f"{source}: expected numeric inputs, got {array.dtype}.")
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4:
        array = _channels_first(array, source)
    elif array.ndim != 2:
        raise InputError(f"{source}: expected inputs (n, D), (n, H, W) or (n, C, H, W), got shape {array.shape}.")
    values = array if array.dtype == np.uint8 and array.ndim == 4 else array.astype(np.float32)
    check_finite(values, source=source)
    return torch.from_numpy(np.ascontiguousarray(values))


def check_finite(
    values: Array, *, source: str, columns: Sequence[str] | None = None, samples: Sequence[str] | None = None
) -> None:
    """Refuse NaN and infinity; the error has their number and first position.

    Args:
        values: (n, D) or (n, C, ...).
        source: Name of the file for the error message.
        columns: Names of the columns.
        samples: Names of the samples.
    """
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    bad = ~np.isfinite(values).reshape(len(values), values.shape[1], -1)
    counts = bad.sum(axis=(0, 2))
    first = int(np.flatnonzero(bad.any(axis=(1, 2)))[0])
    kind = "column" if values.ndim == 2 else "channel"
    named = ", ".join(f"{columns[j] if columns else j} ({counts[j]})" for j in np.flatnonzero(counts)[:5])
    others = f" and {np.count_nonzero(counts) - 5} more" if np.count_nonzero(counts) > 5 else ""
    raise InputError(
        f"{source}: {counted(int(bad.sum()), 'value')} missing, NaN or infinite, in {kind} {named}{others}, first in "
        f"{samples[first] if samples else f'sample {first}'}; fill them in or remove these samples."
    )


def _read(pairs: Mapping[str, tuple[Array, Array]], names: Array | None, path: Path) -> RawDataset:
    inputs = {part: as_inputs(x, source=f"{path} ({part})") for part, (x, _) in pairs.items()}
    labels = {part: _labels(y, len(inputs[part]), f"{path} ({part})") for part, (_, y) in pairs.items()}
    own = class_names(labels["train"])
    splits = {part: ArraySplit(inputs[part], positions(labels[part], own, source=f"{path} ({part})")) for part in pairs}
    classes = own if names is None else _renamed(own, names, path)
    return RawDataset(classes, splits["train"], splits.get("test"), splits.get("val"))


def _renamed(own: tuple[str, ...], names: Array, path: Path) -> tuple[str, ...]:
    """Replace the labels 0, 1, ... by the given names; labels that are already names are not changed."""
    given = tuple(str(name) for name in names.reshape(-1).tolist())
    if set(own) <= set(given) or not all(label.isdecimal() and int(label) < len(given) for label in own):
        return own
    if len(given) != len(own):
        raise InputError(
            f"{path}: expected one name per class, got {counted(len(given), 'name')} for {len(own)} classes."
        )
    return given


def _labels(array: Array, count: int, source: str) -> list[str]:
    """Return the labels as text."""
    labels = array.reshape(len(array)) if array.ndim == 2 and array.shape[1] == 1 else array
    if labels.ndim != 1 or len(labels) != count:
        raise InputError(f"{source}: expected {counted(count, 'label')}, one per input, got shape {array.shape}.")
    if labels.dtype.kind == "f":
        if not (np.isfinite(labels) & (labels == np.floor(labels))).all():
            raise InputError(f"{source}: expected labels that are whole numbers or names, got fractions or NaN.")
        labels = labels.astype(np.int64)
    if labels.dtype.kind not in "biuUS":
        raise InputError(f"{source}: expected labels that are whole numbers or names, got {array.dtype}.")
    return [value.decode() if isinstance(value, bytes) else str(value) for value in labels.tolist()]


def _channels_first(array: Array, source: str) -> Array:
    """Return images as (n, C, H, W)."""
    first, last = array.shape[1] in CHANNELS, array.shape[3] in CHANNELS
    if first == last:
        raise InputError(
            f"{source}: expected (n, C, H, W) or (n, H, W, C) with C one of 1, 3, 4, and height and width "
            f"larger than that, got shape {array.shape}."
        )
    return array if first else array.transpose(0, 3, 1, 2)


def _pair(named: Mapping[str, Array], part: str) -> tuple[Array, Array] | None:
    """Return the inputs and targets of a split, under any of their names."""
    found = []
    for words in (INPUT_KEYS, TARGET_KEYS):
        spellings = [word for w in words for word in ((f"{w}_{part}", f"{part}_{w}", f"{part}{w}") if part else (w,))]
        found.append(next((named[s] for s in spellings if s in named), None))
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _single(path: Path) -> Array:
    """Load the only array of a file."""
    array = load_numpy(path)
    if isinstance(array, Mapping):
        raise InputError(f"{path}: expected a single array in a .npy file, got several; rename the file to .npz.")
    return array
