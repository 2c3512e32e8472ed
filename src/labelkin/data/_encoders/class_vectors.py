"""Vectors of classes, from an encoder of their names or from a file."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_names, listed, near
from labelkin._numpy_files import load_numpy
from labelkin.data._encoders import encoder
from labelkin.data._encoders.hashed import HashedTfidf
from labelkin.data._readers.rows import read_rows

TABLES = (".csv", ".jsonl", ".parquet")


def class_vectors(source: str, classes: Sequence[str]) -> Tensor:
    r"""Return one vector per class, from an encoder of their names or from a file.

    Args:
        source: One of these:

            - An encoder (`minilm`, `hf:NAME`, `st:NAME` or the folder of a model), which encodes the class names, as
              StaticLabel does in paper 001 (Chen et al.). Dots, dashes and underscores in names are read as spaces.
            - A `.npy` file with numbers (K, D), one row per class in the order of `classes`.
            - A table (`.csv`, `.jsonl`, `.parquet`) whose first column is the class and whose other columns are numbers. Rows
              may be in any order; rows of other classes are ignored. Use it for vectors of sounds or images.
        classes: Names of the classes.

    Returns:
        (K, D) float32, in the order of `classes`.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from labelkin.data import class_vectors
        >>> with TemporaryDirectory() as folder:
        ...     table = Path(folder, "vectors.csv")
        ...     _ = table.write_text("class,a,b\ndog,0,1\ncat,1,0\n")
        ...     class_vectors(str(table), ["cat", "dog"])
        tensor([[1., 0.],
                [0., 1.]])
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
            f"vectors: {source!r} does not know the meaning of words, so all classes would be equally far apart; use a trained "
            "encoder (minilm, hf:NAME, st:NAME) or a file."
        )
    return found.encode([spoken(name) for name in classes])


def spoken(name: str) -> str:
    """Return a class name such as `comp.sys.mac` or `aquarium_fish` as separate words."""
    return re.sub(r"[._\-/+\s]+", " ", name).strip() or name


def _from_array(path: Path, classes: Sequence[str]) -> Tensor:
    array = load_numpy(path)
    if (
        not isinstance(array, np.ndarray)
        or array.ndim != 2
        or array.dtype.kind not in "iuf"
        or len(array) != len(classes)
    ):
        got = f"{array.shape} of {array.dtype}" if isinstance(array, np.ndarray) else "several arrays"
        raise InputError(f"vectors: {path}: expected ({len(classes)}, D) numbers, one row per class, got {got}.")
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
