"""The samples of a set that a trained model is measured on."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from labelkin.data.dataset import FileSplit, Split
from labelkin.data.encoders import restored
from labelkin.data.images import ImageForm
from labelkin.data.loading import read_set
from labelkin.data.sources import DATASETS
from labelkin.data.text_split import TextSplit
from labelkin.data.unlabelled import Samples


class HeldOut(NamedTuple):
    classes: tuple[str, ...]
    split: Split


def read_held_out(
    name: str | os.PathLike[str],
    *,
    shape: Sequence[int],
    samples: Samples | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    **options: Any,
) -> HeldOut:
    """The test split of a set (or its validation split), or all of it where it comes without.

    Images come as `shape` says; a model of texts reads tables as such, and encodes texts as in training.
    """
    encoder = None if samples is None else samples.encoder
    if samples is not None and encoder is not None and os.fspath(name) not in DATASETS:
        options = {"text": samples.text, **options}
    _, found = read_set(name, data_dir=data_dir, download=download, options=options)
    split = next(part for part in (found.test, found.val, found.train) if part is not None)
    if isinstance(split, FileSplit) and len(shape) == 3:
        split = replace(split, form=ImageForm(*shape))
    if isinstance(split, TextSplit) and encoder is not None:
        split = split.encoded_by(restored(encoder))
    return HeldOut(found.classes, split)
