"""One copy of a data set for several processes.

The first process that needs a data set reads it and writes its tensors to a file in a folder that the processes share. All of
them then map this file into memory, so that the samples are in memory once, however many processes train on them.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from torch.serialization import safe_globals

from labelkin.data import ArraySplit, Dataset
from labelkin.structure import Taxonomy

FOLDER = "LABELKIN_SHARED_DATA"  # names the folder in the environment of the processes
PREFIX = "labelkin-data-"
# All that a shared file may hold beside tensors and plain values; nothing else is unpickled.
PARTS: list[Any] = [Dataset, ArraySplit, Taxonomy, np.ndarray, np.dtype, np.zeros(0).__reduce__()[0]]
PARTS += sorted({type(np.dtype(code)) for code in "?" + np.typecodes["AllInteger"] + np.typecodes["Float"]}, key=repr)


@contextmanager
def sharing() -> Iterator[dict[str, str]]:
    """Create a folder for shared data sets, yield the environment variable that names it, and remove the folder.

    A process that has mapped a file keeps it in memory until it ends.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        yield {FOLDER: folder}


def shared(key: Callable[[], str], load: Callable[[], Dataset]) -> Dataset:
    """Return a data set whose samples are mapped from the file that the processes share; outside of `sharing`, load it.

    Image files that are read batch by batch are not copied. A process keeps a copy of its own if the disk is too full for the
    file, or if the data have parts other than arrays and a taxonomy.

    Args:
        key: Returns what identifies the data.
        load: Reads the data set.
    """
    folder = os.environ.get(FOLDER)
    if folder is None:
        return load()
    from filelock import FileLock

    path = Path(folder) / f"{hashlib.sha256(key().encode()).hexdigest()}.pt"
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            dataset = load()
            if not isinstance(dataset.train, ArraySplit) or not _written(dataset, path):
                return dataset
    return _mapped(path)


def _mapped(path: Path) -> Dataset:
    with safe_globals(PARTS):
        mapped: Dataset = torch.load(path, mmap=True, weights_only=True)
    return mapped


def _written(dataset: Dataset, path: Path) -> bool:
    """Write a data set to a file, whole or not at all, and return whether it could be written and can be read."""
    part = path.with_suffix(".part")
    try:
        torch.save(dataset, part)
        _mapped(part)
        part.replace(path)
        return True
    except (OSError, RuntimeError, UnpicklingError):  # torch reports a full disk as a RuntimeError
        pass
    part.unlink(missing_ok=True)
    return False
