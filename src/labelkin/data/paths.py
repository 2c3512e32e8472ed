"""What lies at a path, and the reader for it."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError, listed, near
from labelkin.data.arrays import read_npy, read_npz
from labelkin.data.cifar import cifar_at, read_cifar
from labelkin.data.folders import PARTS, read_image_folder
from labelkin.data.idx import has_idx_files, read_idx_folder
from labelkin.data.photo_sets import is_awa2, is_food101, read_awa2, read_food101
from labelkin.data.read import Read
from labelkin.data.sources import IMAGE_OPTIONS
from labelkin.data.tables import read_tables
from labelkin.data.text_tables import read_text_tables

TABLES = (".csv", ".jsonl", ".parquet")
TABLE_OPTIONS = ("label", "image", "features", *IMAGE_OPTIONS)
TEXT_OPTIONS = ("text", "label", "encoder")


class Reader(NamedTuple):
    read: Callable[..., Read]
    options: tuple[str, ...] = ()
    tree: str | None = None  # its name among the trees that come with the package


FOLDERS: tuple[tuple[Callable[[Path], bool], Reader], ...] = (
    (has_idx_files, Reader(read_idx_folder)),
    (is_food101, Reader(read_food101, IMAGE_OPTIONS)),
    (is_awa2, Reader(read_awa2, IMAGE_OPTIONS)),
)


def reader_at(path: Path, *, texts: bool = False) -> Reader:
    """The reader for a file, by its suffix, or for a folder, by what is in it; `texts` reads tables as such."""
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
    raise InputError(f"{path}: expected a folder of images, or a file {listed(['.npz', '.npy', *TABLES])}.")


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
    """Tables named after the parts of a split, as train.csv and test.csv."""
    files = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in TABLES and p.stem.lower() in PARTS]
    return {PARTS[file.stem.lower()]: file for file in files}
