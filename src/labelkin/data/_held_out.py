"""Read the samples that a trained model is evaluated on."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from labelkin._checks import counted
from labelkin.data._dataset import ArraySplit, FileSplit, Split
from labelkin.data._encoders import restored
from labelkin.data._loading import read_set, reader_at
from labelkin.data._readers.columns import filled
from labelkin.data._readers.images import ImageForm
from labelkin.data._readers.rows import read_rows
from labelkin.data._readers.tables import LABEL
from labelkin.data._readers.texts import TextSplit, warn_unknown, without_words
from labelkin.data._sets.sources import DATASETS
from labelkin.data._unlabeled import SampleFormat, table_at


class HeldOut(NamedTuple):
    """Samples for evaluation, and the names of their classes."""

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
    """Read the test split of a dataset, else its validation split, else all of its samples.

    Args:
        name: A name or path, as for `load`.
        shape: Shape of the model's inputs; images are converted to it.
        samples: Format of the samples that the model was trained on. Texts are encoded by the same encoder, and columns of a
            table are selected by name.
        trained: Options of `load` that the model was trained with. They apply here too if the reader has them and `options`
            does not override them. A table without the label column of the training may use the default one.
        data_dir: Folder with the data, as for `load`.
        download: Whether to download a published dataset that is not found.
        **options: Options of `load`, such as `label`.
    """
    encoder = None if samples is None else samples.encoder
    path = Path(name).expanduser()
    if samples is not None and os.fspath(name) not in DATASETS and path.exists():
        options = {**_held(trained or {}, samples, path), **options}
    _, found = read_set(name, data_dir=data_dir, download=download, options=options)
    split = next(part for part in (found.test, found.val, found.train) if part is not None)
    if isinstance(split, FileSplit) and len(shape) == 3:
        split = replace(split, form=ImageForm(*shape))
    fill = None if samples is None else samples.fill
    if isinstance(split, ArraySplit) and fill is not None and split.shape == (len(fill),):
        split = replace(split, inputs=filled(split.inputs, torch.tensor(fill)))
    if isinstance(split, TextSplit) and encoder is not None:
        split = split.encoded_by(by := restored(encoder))
        unknown = without_words(split.inputs)
        warn_unknown(f"{name}: {unknown:,} of {counted(len(split), 'text')}", unknown, by.name)
    return HeldOut(found.classes, split)


def _held(trained: Mapping[str, Any], samples: SampleFormat, path: Path) -> dict[str, Any]:
    """Return the options of the training that apply to the data at a path."""
    columns: dict[str, Any] = {"text": samples.text, "features": samples.columns, "image": samples.image}
    columns["categories"] = None if samples.columns is None else samples.categories or {}
    known = reader_at(path, texts=samples.encoder is not None).options
    held = {key: value for key, value in {**trained, **columns}.items() if key in known and value is not None}
    table = table_at(path)
    there = () if table is None else read_rows(table).columns
    for key, usual in (("label", LABEL in there), ("image", True)):
        named = [held[key]] if isinstance(held.get(key), str) else held.get(key, ())
        if any(name not in there for name in named) and usual:
            del held[key]
    return held
