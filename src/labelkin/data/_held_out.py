"""The samples of a set that a trained model is measured on."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from labelkin.data._dataset import FileSplit, Split
from labelkin.data._encoders import restored
from labelkin.data._loading import read_set, reader_at
from labelkin.data._readers.images import ImageForm
from labelkin.data._readers.tables import LABEL, read_rows
from labelkin.data._readers.texts import TextSplit, warn_unknown, without_words
from labelkin.data._sets.sources import DATASETS
from labelkin.data._unlabeled import SampleFormat, table_at


class HeldOut(NamedTuple):
    classes: tuple[str, ...]
    split: Split


def read_held_out(
    name: str | os.PathLike[str],
    *,
    shape: Sequence[int],
    samples: SampleFormat | None = None,
    trained: Mapping[str, Any] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    **options: Any,
) -> HeldOut:
    """The test split of a set (or its validation split), or all of it where it comes without.

    Images come as `shape` says; a model of texts reads tables as such, and encodes texts as in training. Of a
    table, the columns that were trained on are taken by name, wherever they stand. Of the options that a model was
    `trained` with, those hold here that the reader takes and that are not given anew; a table that lacks its column of
    labels may have the usual one.
    """
    encoder = None if samples is None else samples.encoder
    path = Path(name).expanduser()
    if samples is not None and os.fspath(name) not in DATASETS and path.exists():
        options = {**_held(trained or {}, samples, path), **options}
    _, found = read_set(name, data_dir=data_dir, download=download, options=options)
    split = next(part for part in (found.test, found.val, found.train) if part is not None)
    if isinstance(split, FileSplit) and len(shape) == 3:
        split = replace(split, form=ImageForm(*shape))
    if isinstance(split, TextSplit) and encoder is not None:
        split = split.encoded_by(by := restored(encoder))
        unknown = without_words(split.inputs)
        warn_unknown(f"{name}: {unknown:,} of {len(split):,} texts", unknown, by.name)
    return HeldOut(found.classes, split)


def _held(trained: Mapping[str, Any], samples: SampleFormat, path: Path) -> dict[str, Any]:
    """What of the training's options holds for the data at a path."""
    columns = {"text": samples.text, "features": samples.columns, "image": samples.image}
    known = reader_at(path, texts=samples.encoder is not None).options
    held = {key: value for key, value in {**trained, **columns}.items() if key in known and value is not None}
    table = table_at(path)
    there = () if table is None else read_rows(table).columns
    for key, usual in (("label", LABEL in there), ("image", True)):
        if key in held and held[key] not in there and usual:
            del held[key]
    return held
