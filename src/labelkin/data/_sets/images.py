"""Readers of digits, the MNIST family, Food-101 and AwA2."""

import gzip
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, counted, listed
from labelkin._extras import require
from labelkin._files import gunzip
from labelkin.data._dataset import ArraySplit, FileSplit, RawDataset, positions
from labelkin.data._readers.folders import listing
from labelkin.data._readers.images import OnError, choose_form
from labelkin.data._splits import stratified

DIGITS = tuple("0123456789")
SHADE = 15  # maps 0..16 to 0..240: exact, and a natural brightness
TEST_FRACTION, SPLIT_SEED = 0.2, 0  # a fixed test split, because the dataset has none


def read_digits() -> RawDataset:
    """Read scikit-learn's digits."""
    found = require("sklearn.datasets", extra="sklearn", use="the digits data set").load_digits()
    inputs = (torch.from_numpy(found.images)[:, None] * SHADE).to(torch.uint8)
    split = ArraySplit(inputs, torch.from_numpy(found.target).long())
    rest, part = stratified(split.targets, TEST_FRACTION, seed=SPLIT_SEED, classes=DIGITS)
    return RawDataset(DIGITS, train=split.take(rest), test=split.take(part))


UNSIGNED_BYTES = 0x08
GZIP_MAGIC = b"\x1f\x8b"
FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
FILES = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


def read_idx_folder(folder: Path, *, classes: Sequence[str] | None = None) -> RawDataset:
    """Read the four files of MNIST's format in a folder; without `classes`, the names are the labels' numbers."""
    splits = [_split(folder, part) for part in ("train", "t10k")]
    if classes is None:
        classes = [str(k) for k in range(int(splits[0].targets.max()) + 1)]
    return RawDataset(tuple(classes), train=splits[0], test=splits[1])


def has_idx_files(folder: Path) -> bool:
    """Return whether a folder contains the four files of MNIST's format."""
    return all(_find(folder, name) is not None for name in FILES)


def read_idx(path: Path, *, dims: int) -> Tensor:
    """Read an array of unsigned bytes with `dims` dimensions; its header must match the length of the file."""
    content = path.read_bytes()
    if content[:2] == GZIP_MAGIC:
        try:
            content = gunzip(content, path)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{path}: the gzip archive is damaged ({error}); download the file again.") from error
    magic, header = content[:4], 4 + 4 * dims
    if magic != bytes([0, 0, UNSIGNED_BYTES, dims]) or len(content) < header:
        raise InputError(
            f"{path}: expected an idx file of {counted(dims, 'dimension')} that starts with 0000080{dims}, "
            f"got {magic.hex() or 'an empty file'}."
        )
    shape = [int(n) for n in np.frombuffer(content, dtype=">u4", count=dims, offset=4)]
    if len(content) - header != prod(shape):
        raise InputError(
            f"{path}: expected {prod(shape):,} bytes according to its header, got {len(content) - header:,}; download it again."
        )
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy())


def _split(folder: Path, part: str) -> ArraySplit:
    images_path, labels_path = (_required(folder, name) for name in FILES if name.startswith(part))
    images, labels = read_idx(images_path, dims=3), read_idx(labels_path, dims=1)
    if len(images) != len(labels):
        raise InputError(
            f"{folder}: expected one label per image, got {len(images):,} {part} images and {counted(len(labels), 'label')}."
        )
    if not len(images):
        raise InputError(f"{folder}: the {part} files contain no images.")
    return ArraySplit(images[:, None], labels.long())


def _required(folder: Path, name: str) -> Path:
    path = _find(folder, name)
    if path is None:
        raise InputError(f"{folder}: {name} (or {name}.gz) is missing.")
    return path


def _find(folder: Path, name: str) -> Path | None:
    """Find a file under its usual spellings: plain or gzipped, `-idx3` or `.idx3`."""
    dotted = name.replace("-idx", ".idx")
    candidates = [folder / spelling for spelling in (name, f"{name}.gz", dotted, f"{dotted}.gz")]
    return next((path for path in candidates if path.is_file()), None)


def is_food101(folder: Path) -> bool:
    """Return whether a folder contains Food-101."""
    return (folder / "images").is_dir() and (folder / "meta" / "train.txt").is_file()


def read_food101(folder: Path, *, image_size: int | None = None, on_error: OnError = "stop") -> RawDataset:
    """Read `images/apple_pie/1005649.jpg`, with the splits in `meta/train.txt` and `meta/test.txt`."""
    entries = {part: _lines(folder / "meta" / f"{part}.txt") for part in ("train", "test")}
    classes = tuple(sorted({entry.rpartition("/")[0] for entry in entries["train"]}))
    paths = {part: tuple(folder / "images" / f"{entry}.jpg" for entry in found) for part, found in entries.items()}
    form = choose_form(paths["train"], image_size=image_size)

    def split(part: str) -> FileSplit:
        labels = [entry.rpartition("/")[0] for entry in entries[part]]
        targets = positions(labels, classes, source=str(folder))
        return FileSplit(paths=paths[part], targets=targets, form=form, on_error=on_error)

    return RawDataset(classes, train=split("train"), test=split("test"))


def is_awa2(folder: Path) -> bool:
    """Return whether a folder contains AwA2."""
    return (folder / "JPEGImages").is_dir() and (folder / "classes.txt").is_file()


def read_awa2(folder: Path, *, image_size: int | None = None, on_error: OnError = "stop") -> RawDataset:
    """Read `JPEGImages/grizzly+bear/grizzly+bear_10001.jpg`, with the classes in the order of `classes.txt`.

    Plus signs in names become spaces. AwA2's own split is for zero-shot learning: its parts have different classes. It is not
    used, so all samples are in one split.
    """
    names = [line.split()[-1] for line in _lines(folder / "classes.txt")]
    folders = [folder / "JPEGImages" / name for name in names]
    files = [listing(path).images if path.is_dir() else () for path in folders]
    empty = [name for name, found in zip(names, files, strict=True) if not found]
    if empty:
        raise InputError(f"{folder}: classes.txt lists {listed(empty)}, but JPEGImages contains no images of it.")
    paths = tuple(path for found in files for path in found)
    targets = torch.repeat_interleave(torch.tensor([len(found) for found in files]))
    form = choose_form(paths, image_size=image_size)
    split = FileSplit(paths=paths, targets=targets, form=form, on_error=on_error)
    return RawDataset(tuple(name.replace("+", " ") for name in names), split)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InputError(f"the file {path} is missing; unpack the archive again.")
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
