"""The samples of a set that a trained model is measured on."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from labelkin.data.dataset import FileSplit, Split
from labelkin.data.images import ImageForm
from labelkin.data.loading import read_set


class HeldOut(NamedTuple):
    classes: tuple[str, ...]
    split: Split


def read_held_out(
    name: str | os.PathLike[str],
    *,
    shape: Sequence[int],
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    **options: Any,
) -> HeldOut:
    """The test split of a set (or its validation split), or all of it where it comes without; images as `shape` says."""
    _, found = read_set(name, data_dir=data_dir, download=download, options=options)
    split = next(part for part in (found.test, found.val, found.train) if part is not None)
    if isinstance(split, FileSplit) and len(shape) == 3:
        split = replace(split, form=ImageForm(*shape))
    return HeldOut(found.classes, split)
