"""Load a dataset from a name or a path."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError, check_choice, check_count, check_number, listed, near
from labelkin.data._coarse import with_coarse_labels
from labelkin.data._dataset import Dataset, RawDataset
from labelkin.data._locate import find_or_download
from labelkin.data._readers.arrays import read_npy, read_npz
from labelkin.data._readers.columns import without_missing
from labelkin.data._readers.folders import SPLIT_NAMES, read_image_folder
from labelkin.data._readers.images import OnError
from labelkin.data._readers.tables import column_roles, read_tables
from labelkin.data._readers.texts import TextSplit, encoded, read_text_tables
from labelkin.data._sets.cifar import cifar_at, read_cifar
from labelkin.data._sets.images import has_idx_files, is_awa2, is_food101, read_awa2, read_food101, read_idx_folder
from labelkin.data._sets.sources import DATASETS, IMAGE_OPTIONS
from labelkin.data._splits import (
    divided,
    in_memory,
    restricted,
    with_calibration,
    with_fewer,
    with_noise,
)
from labelkin.structure import catalogue

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
TABLE_OPTIONS = ("label", "image", "features", "encoding", "categories", *IMAGE_OPTIONS)
PARTIAL = ("use", "drop", "none")
TEXT_OPTIONS = ("text", "label", "encoder", "encoding")


class Reader(NamedTuple):
    """A function that reads a path, and the options that it takes."""

    read: Callable[..., RawDataset]
    options: tuple[str, ...] = ()
    tree: str | None = None  # name of a tree that the package contains


FOLDERS: tuple[tuple[Callable[[Path], bool], Reader], ...] = (
    (has_idx_files, Reader(read_idx_folder)),
    (is_food101, Reader(read_food101, IMAGE_OPTIONS)),
    (is_awa2, Reader(read_awa2, IMAGE_OPTIONS)),
)


def reader_at(path: Path, *, texts: bool = False) -> Reader:
    """Return the reader for a file, by its suffix, or for a folder, by its content.

    `texts` selects the reader of texts for tables.
    """
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"there is no file or folder {str(path)!r}.{near(path.name, siblings)}")
    if cifar_at(path) is not None:
        return Reader(read_cifar, tree=cifar_at(path))
    if path.is_dir():
        return _for_folder(path, texts)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return Reader(read_npz)
    if suffix == ".npy":
        return Reader(read_npy, ("labels",))
    if suffix in TABLES:
        return _for_tables({"train": path}, texts)
    raise InputError(
        f"{path}: expected a folder of images, or a file that ends in {listed(['.npz', '.npy', *TABLES])}."
    )


def _for_folder(path: Path, texts: bool) -> Reader:
    for holds, reader in FOLDERS:
        if holds(path):
            return reader
    tables = part_tables(path)
    if "train" in tables:
        return _for_tables(tables, texts)
    return Reader(read_image_folder, IMAGE_OPTIONS)


def _for_tables(tables: dict[str, Path], texts: bool) -> Reader:
    read = read_text_tables if texts else read_tables
    return Reader(lambda _, **options: read(tables, **options), TEXT_OPTIONS if texts else TABLE_OPTIONS)


def part_tables(folder: Path) -> dict[str, Path]:
    """Return the tables in a folder that are named after splits, such as train.csv and test.csv."""
    files = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in TABLES and p.stem.lower() in SPLIT_NAMES]
    return {SPLIT_NAMES[file.stem.lower()]: file for file in files}


def load(
    name: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    seed: int = 0,
    test_fraction: float | None = None,
    validation_fraction: float | None = None,
    classes: Sequence[str] | None = None,
    subset: float | None = None,
    label_noise: float = 0.0,
    label: str | Sequence[str] | None = None,
    image: str | None = None,
    features: Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    image_size: int | None = None,
    on_error: OnError | None = None,
    stream: bool | None = None,
    text: str | None = None,
    encoder: str | None = None,
    remove: Sequence[str] | None = None,
    calibration: float = 0.0,
    folds: int | None = None,
    fold: int | None = None,
    partial: str | None = None,
    encoding: str | None = None,
    coarse_labels: float = 0.0,
) -> Dataset:
    """Load a dataset by name or path.

    Without a test split, the validation split is the test set. Without either, a random `test_fraction` of every class becomes
    the test set.

    Args:
        name: A name in `DATASETS`, or a path: a folder of images, an array file or a table. Write `./digits` for a path that
            looks like a name.
        data_dir: Folder with published datasets; searched before the one in the environment variable LABELKIN_DATA and the
            cache.
        download: Whether to download a published dataset that is not found.
        seed: Seed of the splits, of `subset`, of `coarse_labels` and of `label_noise`.
        test_fraction: Fraction of every class for a test split, if the dataset has none (default 0.2).
        validation_fraction: Fraction of every class of the training split for a validation split (default: no validation
            split).
        classes: Keep only these classes, in this order.
        subset: Keep only this fraction of every class's training samples.
        label_noise: Exchange this fraction of the training labels between classes that are paired at random (paper 004).
        label: Column of the labels, for tables; or several, coarse to fine, which define the taxonomy. Where the finest ones
            are empty, the label is an inner node of the taxonomy.
        image: Column of the image paths, for tables.
        features: Columns of numbers or categories, for tables. Each category becomes a column of 0 and 1, and missing numbers
            are replaced by the mean of the training samples.
        labels: File of the labels, for a `.npy` file of inputs.
        image_size: Height and width that images are converted to (default: the size that all images share, else 64).
        on_error: "stop" (default) raises `UnreadableImage` for an image that cannot be read; "skip" warns and leaves it out.
        stream: Whether to read images when their batch is needed instead of now (default: if they would take more than
            1 GiB).
        text: Column of the texts, for tables of texts.
        encoder: Encoder of texts: `hashed-tfidf` (default), `hashed-code` (default of `stdlib`), `hashed-characters`, `minilm`,
            `hf:NAME`, `st:NAME` or the folder of a model. It is fitted to the training split only. A table with `text` or
            `encoder` is read as texts.
        remove: Parts to remove from the posts of 20-newsgroups: "headers", "footers", "quotes" (default: all three) or
            "none".
        calibration: Share of the training samples, 0 to 0.5, to hold out for calibrating the trained model. It is drawn after
            `subset` and `coarse_labels` and before `label_noise`. Nothing is held out if there is a validation split, or if it
            would be fewer than 50 samples.
        folds: Number of folds for cross-validation, if the dataset has no test split.
        fold: The fold that is the test split, from 0 to `folds` - 1.
        partial: What to do with training samples whose label is an inner node. "use" (default) and "drop" keep them as
            `Dataset.partial`; an objective that learns only from classes then refuses them ("use") or leaves them out
            ("drop"). "none" leaves them out for every objective.
        encoding: Encoding of a .csv or .tsv file. By default it is detected, with a warning unless it is UTF-8 or UTF-16; a
            table of texts must be UTF-8 unless its encoding is given.
        coarse_labels: Replace this fraction of every class's training labels by the node above the class in the data's own
            tree, to measure the benefit of partial labels; see `partial`. Classes directly below the root keep theirs.

    Returns:
        The dataset.

    Example:
        >>> from labelkin.data import load
        >>> load("digits", validation_fraction=0.1)
        Dataset(digits: 10 classes, 1,294 train, 144 val, 359 test, 1x8x8)
    """
    check_count("seed", seed, least=0)
    for argument, share in (("test_fraction", test_fraction), ("validation_fraction", validation_fraction)):
        if share is not None:
            check_number(argument, share)
            if not 0 < share < 1:
                raise InputError(f"{argument}: expected a number in (0, 1), got {share!r}.")
    if subset is not None:
        check_number("subset", subset, low=0, high=1, open_low=True)
    check_number("label_noise", label_noise, low=0, high=1)
    check_number("coarse_labels", coarse_labels, low=0, high=1)
    check_number("calibration", calibration, low=0, high=0.5)
    if on_error is not None:
        check_choice("on_error", on_error, ("stop", "skip"))
    if image_size is not None:
        check_count("image_size", image_size)
    given: dict[str, Any] = {"label": label, "image": image, "features": features, "labels": labels}
    given |= {"image_size": image_size, "on_error": on_error, "stream": stream}
    given |= {"text": text, "encoder": encoder, "remove": remove, "encoding": encoding}
    options = {key: value for key, value in given.items() if value is not None}
    title, found = read_set(name, data_dir=data_dir, download=download, options=options)
    if partial is not None:
        check_choice("partial", partial, PARTIAL)
    if classes is not None:
        found = restricted(found, classes)
    found = divided(
        title,
        found,
        seed=seed,
        test_fraction=test_fraction,
        validation_fraction=validation_fraction,
        folds=folds,
        fold=fold,
    )
    found = with_fewer(found, subset, seed=seed) if subset is not None else found
    found = with_coarse_labels(title, found, coarse_labels, seed=seed) if coarse_labels else found
    if partial == "none":
        found = found._replace(partial=None, partial_names=())
    found = with_calibration(found, calibration, seed=seed) if calibration else found
    found = with_noise(found, label_noise, seed=seed) if label_noise else found
    if isinstance(found.train, TextSplit):
        usual = DATASETS[name].encoder if isinstance(name, str) and name in DATASETS else None
        found = encoded(title, found, encoder or usual)
    else:
        found = without_missing(title, in_memory(found, stream=stream))
    assert found.test is not None
    return Dataset(
        name=title,
        classes=found.classes,
        train=found.train,
        test=found.test,
        val=found.val,
        taxonomy=found.taxonomy,
        coarse_classes=found.coarse_classes,
        calibration=found.calibration,
        partial=found.partial,
        partial_names=found.partial_names,
    )


def read_set(
    name: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None,
    download: bool,
    options: dict[str, Any],
) -> tuple[str, RawDataset]:
    """Read the files of a dataset. Returns its name and its content."""
    reading = {key: value for key, value in options.items() if key not in ("stream", "encoder")}
    source = DATASETS.get(name) if isinstance(name, str) else None
    if source is not None:
        _check_options(str(name), options, source.options)
        found = source.read(find_or_download(str(name), source.place, data_dir=data_dir, download=download), **reading)
        return str(name), _with_tree(found, source.tree)
    path = Path(name).expanduser()
    if isinstance(name, str) and not path.exists() and _looks_like_a_name(name):
        raise InputError(
            f"there is no dataset or path {name!r}; known datasets: {', '.join(DATASETS)}.{near(name, DATASETS)}"
        )
    reader = reader_at(path, texts="text" in options or "encoder" in options)
    _check_options(str(name), options, reader.options)
    return path.resolve().name, _with_tree(reader.read(path, **reading), reader.tree)


def reads_image_files(name: str | os.PathLike[str], options: Mapping[str, Any]) -> bool:
    """Return whether `load` reads the dataset from image files, so that `image_size` applies; False if there is no such path.

    Args:
        name: A name or path, as for `load`.
        options: Keyword arguments of `load`.
    """
    source = DATASETS.get(name) if isinstance(name, str) else None
    if source is not None:
        return "image_size" in source.options
    path = Path(name).expanduser()
    if not path.exists() or "text" in options or "encoder" in options:
        return False
    table = part_tables(path).get("train") if path.is_dir() else path if path.suffix.lower() in TABLES else None
    if "image_size" not in reader_at(path).options:
        return False
    if table is None:
        return True
    roles = column_roles(table, options.get("label"), options.get("image"), options.get("features"))
    return roles.image is not None


def _with_tree(found: RawDataset, tree: str | None) -> RawDataset:
    """Add the tree that the package contains for a published dataset."""
    return found if tree is None else found._replace(taxonomy=catalogue.taxonomy(tree).reorder(found.classes))


def _looks_like_a_name(name: str) -> bool:
    return not (set(name) & {"/", os.sep, "~"} or name.startswith(".") or Path(name).suffix)


def _check_options(name: str, options: dict[str, Any], known: Sequence[str]) -> None:
    unknown = [key for key in options if key not in known]
    if unknown:
        takes = f"it takes {listed(known)}" if known else "it takes no such options"
        raise InputError(f"{unknown[0]}: does not apply to {name}; {takes}.")
