"""Read unlabeled inputs in the form a trained model expects."""

import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, counted, listed, near
from labelkin._numpy_files import load_numpy
from labelkin.data._dataset import ArraySplit, Dataset
from labelkin.data._encoders import restored
from labelkin.data._loading import TABLES, part_tables
from labelkin.data._readers.arrays import INPUT_KEYS, as_inputs, check_finite
from labelkin.data._readers.columns import Columns, filled
from labelkin.data._readers.folders import LEFT_BY_SYSTEMS, kinds_of
from labelkin.data._readers.images import SUFFIXES, ImageForm, OnError, read_images
from labelkin.data._readers.rows import ROW_NAMES, read_rows
from labelkin.data._readers.tables import column_roles
from labelkin.data._readers.texts import TEXT, TextSplit, check_utf8, column_place, decoded, warn_unknown, without_words
from labelkin.data._sets.sources import DATASETS


def files_at(path: Path, *, single: Collection[str], kind: str, others: Sequence[str]) -> list[Path]:
    """Return the file itself, or all files below a folder whose suffix is in `single`.

    `kind` names such a file in error messages; `others` are further suffixes that a single file may have.
    """
    if path.is_dir():
        inside = [p for p in sorted(path.rglob("*")) if p.is_file() and p.name.lower() not in LEFT_BY_SYSTEMS]
        visible = [p for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts)]
        found = [p for p in visible if p.suffix.lower() in single]
        others = [p.name for p in visible if p.suffix.lower() not in single]
        if not found:
            also = f", but {kinds_of(others)}" if others else ""
            raise InputError(f"{path}: the folder contains no {kind}{also}.")
        if others:
            warnings.warn(
                f"{path}: {counted(len(others), 'file')} {'is' if len(others) == 1 else 'are'} skipped: {kinds_of(others)}.",
                stacklevel=2,
            )
        return found
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"there is no file or folder {str(path)!r}.{near(path.name, siblings)}")
    if path.suffix.lower() not in (*single, *others):
        article = "an" if kind == "image" else "a"
        raise InputError(
            f"{path}: expected {article} {kind}, a folder of {kind}s, or a file that ends in {listed(list(others))}."
        )
    return [path]


PLAIN = (".txt",)


class Texts(NamedTuple):
    """Some texts, each with its file, and its row in the file (from 0) if the file is a table."""

    files: list[str]
    rows: list[int | None]
    texts: list[str]


def text_files(path: Path) -> list[Path]:
    """Return the file itself, or all text files below a folder."""
    return files_at(path, single=PLAIN, kind="text file", others=TABLES)


def read_unlabeled_texts(files: Sequence[Path], column: str, *, at_once: int) -> Iterator[Texts]:
    """Yield texts, at most `at_once` at a time. A `.txt` file is one text; a table has one per row. Empty texts are refused."""
    found = ((file, row, text) for file in files for row, text in _texts(file, column))
    while part := list(islice(found, at_once)):
        yield Texts([str(file) for file, _, _ in part], [row for _, row, _ in part], [text for *_, text in part])


def _texts(file: Path, column: str) -> Iterator[tuple[int | None, str]]:
    """Yield the row (None for a `.txt` file) and the text of every text in a file."""
    if file.suffix.lower() in PLAIN:
        text = decoded(file.read_bytes(), file)
        if not text.strip():
            raise InputError(f"{file}: the file contains no text; remove it.")
        yield None, text
        return
    check_utf8(file)
    columns, rows = read_rows(file)
    place = column_place("text", column, columns, file)
    texts = ((line, "" if row[place] is None else str(row[place])) for line, row in rows)
    for number, (line, text) in enumerate(texts):
        if not text.strip():
            empty = 1 + sum(not other.strip() for _, other in texts)
            raise InputError(
                f"{file}, line {line} (row {number}): expected a text in column {column!r}, got an empty cell "
                f"({counted(empty, 'empty row')} in all); remove them."
            )
        yield number, text


ARRAYS = (".npy", ".npz")
AT_ONCE = 1024  # images or rows


class SampleFormat(NamedTuple):
    """The kind of samples in a dataset: pixels, columns of a table, or encoded texts."""

    pixels: bool  # uint8 values, which are divided by 255
    columns: list[str] | None = None  # numeric columns of a table, in order
    image: str | None = None  # column of the image paths in a table
    text: str | None = None  # column of the texts in a table
    encoder: dict[str, Any] | None = None  # state of the encoder of the texts
    categories: dict[str, list[str]] | None = None  # values of the columns that hold categories
    fill: list[float] | None = None  # the values that replace missing ones: the means of the training samples


class UnlabeledBatch(NamedTuple):
    """Some inputs (n, ...), each with its file, and its row in the file (from 0) if the file contains several."""

    files: list[str]
    rows: list[int | None]
    inputs: Tensor


def sample_format(
    dataset: Dataset,
    source: str | os.PathLike[str],
    *,
    label: str | Sequence[str] | None = None,
    image: str | None = None,
    features: Sequence[str] | None = None,
    text: str | None = None,
    encoding: str | None = None,
    **_: Any,
) -> SampleFormat:
    """Return the format of the samples of a dataset that was loaded from `source` with these options."""
    if isinstance(dataset.train, TextSplit):
        assert dataset.train.encoder is not None
        return SampleFormat(pixels=False, text=text or TEXT, encoder=dataset.train.encoder.state())
    pixels = not isinstance(dataset.train, ArraySplit) or dataset.train.inputs.dtype == torch.uint8
    table = None if os.fspath(source) in DATASETS else table_at(Path(source).expanduser())
    if table is None:
        return SampleFormat(pixels)
    roles = column_roles(table, label, image, features, encoding)
    if roles.image is not None:
        return SampleFormat(pixels, image=roles.image)
    categories = {name: list(values) for name, values in roles.categories.items()}
    return SampleFormat(
        pixels, list(roles.features), categories=categories or None, fill=dataset.normalize.mean.tolist()
    )


def read_unlabeled(
    paths: Sequence[str | os.PathLike[str]],
    *,
    shape: Sequence[int],
    samples: SampleFormat,
    on_error: OnError = "stop",
) -> Iterator[UnlabeledBatch]:
    """Read image files, folders of images, `.npy` and `.npz` arrays, and tables, in the order given.

    A model of texts reads `.txt` files with one text each, folders of them, and tables.

    Args:
        paths: Files and folders.
        shape: Shape of the model's inputs; images are converted to it as in training.
        samples: Format of the samples that the model was trained on. Columns of a table are selected by name; other columns
            are ignored.
        on_error: "stop" raises `UnreadableImage` for an image that cannot be read; "skip" warns and leaves it out.
    """
    files_of = _files if samples.encoder is None else text_files
    found = [file for path in paths for file in files_of(Path(path).expanduser())]
    if not found:
        raise InputError("inputs: expected at least one file or folder.")
    if samples.encoder is not None:
        return _read_texts(found, samples.text or TEXT, samples.encoder)
    return _read(found, tuple(shape), samples, on_error)


def _read(
    found: Sequence[Path], shape: tuple[int, ...], samples: SampleFormat, on_error: OnError
) -> Iterator[UnlabeledBatch]:
    for kind, files in groupby(found, key=_kind):
        if kind == "image":
            while part := list(islice(files, AT_ONCE)):
                yield _from_images(part, [None] * len(part), _form(shape, part[0]), on_error)
            continue
        for file in files:
            yield from [_from_array(file, shape)] if kind == "array" else _from_table(file, shape, samples, on_error)


def _read_texts(found: Sequence[Path], column: str, state: dict[str, Any]) -> Iterator[UnlabeledBatch]:
    encoder = restored(state)
    unknown = count = 0
    for files, rows, texts in read_unlabeled_texts(found, column, at_once=AT_ONCE):
        inputs = encoder.encode(texts)
        unknown, count = unknown + without_words(inputs), count + len(inputs)
        yield UnlabeledBatch(files, rows, inputs)
    warn_unknown(f"{unknown:,} of {counted(count, 'text')}", unknown, encoder.name)


def _kind(file: Path) -> str | None:
    """Return the kind of a file by its suffix."""
    kinds = {"image": SUFFIXES, "array": ARRAYS, "table": TABLES}
    return next((kind for kind, suffixes in kinds.items() if file.suffix.lower() in suffixes), None)


def _files(path: Path) -> list[Path]:
    """Return the file itself, or all images below a folder."""
    return files_at(path, single=SUFFIXES, kind="image", others=(*ARRAYS, *TABLES))


def _from_images(
    paths: Sequence[Path], rows: Sequence[int | None], form: ImageForm, on_error: OnError, *, file: Path | None = None
) -> UnlabeledBatch:
    images, kept = read_images(paths, form, on_error=on_error)
    order = kept.tolist()
    return UnlabeledBatch([str(file or paths[i]) for i in order], [rows[i] for i in order], images)


def _from_array(file: Path, shape: tuple[int, ...]) -> UnlabeledBatch:
    array = load_numpy(file)
    if not isinstance(array, np.ndarray):
        named = {name.lower(): part for name, part in array.items()}
        known = [name for name in INPUT_KEYS if name in named]
        if not known and len(named) != 1:
            raise InputError(
                f"{file}: expected a single array, or one named {listed(INPUT_KEYS)}, got {listed(sorted(named))}."
            )
        array = named[known[0]] if known else next(iter(named.values()))
    inputs = as_inputs(array, source=str(file))
    if tuple(inputs.shape[1:]) != shape:
        raise InputError(f"{file}: expected samples of shape {shape}, as in training, got {tuple(inputs.shape[1:])}.")
    return UnlabeledBatch([str(file)] * len(inputs), list(range(len(inputs))), inputs)


def _from_table(
    file: Path, shape: tuple[int, ...], samples: SampleFormat, on_error: OnError
) -> Iterator[UnlabeledBatch]:
    columns, rows = read_rows(file)
    numbered = enumerate(rows)
    if len(shape) == 3:
        place = columns.index(_image_column(file, columns, samples.image))
        while part := list(islice(numbered, AT_ONCE)):
            paths = [file.parent / str(row[place]) for _, (_, row) in part]
            yield _from_images(paths, [i for i, _ in part], _form(shape, file), on_error, file=file)
        return
    categories = samples.categories or {}
    wanted = _wanted(file, columns, shape, samples.columns, categories)
    cells, fill = Columns(wanted, categories, file), samples.fill
    places = [columns.index(name) for name in wanted]
    while part := list(islice(numbered, AT_ONCE)):
        lines = [f"line {line}" for _, (line, _) in part]
        values = cells.checked(np.stack([cells.row([row[i] for i in places], line) for _, (line, row) in part]), lines)
        if fill is None:
            check_finite(values, source=str(file), columns=cells.features, samples=lines)
        inputs = torch.from_numpy(values)
        inputs = inputs if fill is None else filled(inputs, torch.tensor(fill))
        yield UnlabeledBatch([str(file)] * len(part), [i for i, _ in part], inputs)


def _wanted(
    file: Path,
    columns: Sequence[str],
    shape: tuple[int, ...],
    trained: Sequence[str] | None,
    categories: dict[str, list[str]],
) -> list[str]:
    """Return the columns that were trained on, or all columns if the model was not trained on a table."""
    wanted = [name for name in columns if name not in ROW_NAMES] if trained is None else list(trained)
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise InputError(
            f"{file}: expected the column {listed(missing)} that the model was trained on.{near(missing[0], columns)}"
        )
    if not categories and (len(wanted),) != shape:
        raise InputError(
            f"{file}: expected {counted(shape[0], 'column')} of numbers, as in training, got {len(wanted)}."
        )
    return wanted


def _image_column(file: Path, columns: Sequence[str], trained: str | None) -> str:
    """Return the column that was trained on, or the first one that contains names of image files."""
    if trained in columns:
        return str(trained)
    found = column_roles(file, None, None, None).image
    if found is None:
        wanted = "a column of image paths" if trained is None else f"the column {trained!r} of image paths"
        raise InputError(f"{file}: expected {wanted}, got the columns {listed(columns)}.{near(trained or '', columns)}")
    return found


def _form(shape: tuple[int, ...], file: Path) -> ImageForm:
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise InputError(
            f"{file}: the model expects samples of shape {shape}, which is not the shape of an image; "
            "give arrays or a table of numbers instead."
        )
    return ImageForm(*shape)


def table_at(path: Path) -> Path | None:
    """Return the table at a path, or the training table if it is a folder of tables."""
    if path.is_dir():
        return part_tables(path).get("train")
    return path if path.suffix.lower() in TABLES else None
