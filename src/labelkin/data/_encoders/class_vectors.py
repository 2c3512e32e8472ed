"""A vector a class, from its name by an encoder of texts, or from a file."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_names, listed, near
from labelkin.data._encoders import encoder
from labelkin.data._encoders.hashed import HashedTfidf
from labelkin.data._readers.arrays import load_arrays
from labelkin.data._readers.tables import read_rows

TABLES = (".csv", ".jsonl", ".parquet")


def class_vectors(source: str, classes: Sequence[str]) -> Tensor:
    """(K, D) float32, in the order of `classes`, from what `source` names.

    - An encoder (`minilm`, `hf:NAME`, `st:NAME`, a model's folder): the names themselves, their dots, dashes and
      underscores read as spaces. That is StaticLabel's way in 001 (Chen et al.).
    - A `.npy` file: (K, D) numbers, a row a class, in their order.
    - A table (`.csv`, `.jsonl`, `.parquet`): the first column is the class, the others are numbers; rows in any order, and
      those of other classes are left alone. So vectors made of sounds or images can be given.
    """
    check_names("classes", classes, least=2)
    path = Path(source).expanduser()
    suffix = path.suffix.lower()
    if suffix in (".npy", *TABLES) and not path.is_file():
        raise InputError(f"vectors: there is no file {source!r}.")
    if suffix in (".npy", *TABLES):
        vectors = _from_array(path, classes) if suffix == ".npy" else _from_table(path, classes)
        wrong = [name for name, fine in zip(classes, vectors.isfinite().all(1).tolist(), strict=True) if not fine]
        if wrong:
            raise InputError(f"vectors: {path}: expected finite numbers, got NaN or infinite ones for {listed(wrong)}.")
        return vectors
    found = encoder(source)
    if isinstance(found, HashedTfidf):
        raise InputError(
            f"vectors: {source!r} knows words by their spelling alone and sets every class apart alike; give a trained "
            "encoder (minilm, hf:NAME, st:NAME) or a file."
        )
    return found.encode([spoken(name) for name in classes])


def spoken(name: str) -> str:
    """`comp.sys.mac` and `aquarium_fish` as words."""
    return re.sub(r"[._\-/+\s]+", " ", name).strip() or name


def _from_array(path: Path, classes: Sequence[str]) -> Tensor:
    array = load_arrays(path)
    if (
        not isinstance(array, np.ndarray)
        or array.ndim != 2
        or array.dtype.kind not in "iuf"
        or len(array) != len(classes)
    ):
        got = f"{array.shape} of {array.dtype}" if isinstance(array, np.ndarray) else "several arrays"
        raise InputError(f"vectors: {path}: expected ({len(classes)}, D) numbers, one row a class, got {got}.")
    return torch.from_numpy(array.astype(np.float32))


def _from_table(path: Path, classes: Sequence[str]) -> Tensor:
    columns, rows = read_rows(path)
    found: dict[str, list[float]] = {}
    for line, (name, *values) in rows:
        if str(name) not in classes:
            continue
        try:
            found[str(name)] = [float(value) for value in values]
        except (TypeError, ValueError):
            raise InputError(f"vectors: {path}, line {line}: expected numbers after {str(name)!r}.") from None
    missing = [name for name in classes if name not in found]
    if missing:
        hint = near(missing[0], found)
        raise InputError(f"vectors: {path}: has no row for {listed(missing)} in its column {columns[0]!r}.{hint}")
    return torch.tensor([found[name] for name in classes])
