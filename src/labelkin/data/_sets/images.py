"""Digits, the MNIST family, FOOD101 and AwA2."""

import gzip
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, listed
from labelkin._extras import require
from labelkin.data._dataset import ArraySplit, FileSplit, RawDataset, positions
from labelkin.data._readers.folders import listing
from labelkin.data._readers.images import OnError, choose_form
from labelkin.data._splits import stratified

DIGITS = tuple("0123456789")
SHADE = 15  # 0..16 becomes 0..240: every value stays exact, and the pictures look right
TEST_FRACTION, SPLIT_SEED = 0.2, 0  # one test set for everybody: the set itself comes without one


def read_digits() -> RawDataset:
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
    """The four files of one folder; without `classes` the labels' numbers are their names."""
    splits = [_split(folder, part) for part in ("train", "t10k")]
    if classes is None:
        classes = [str(k) for k in range(int(splits[0].targets.max()) + 1)]
    return RawDataset(tuple(classes), train=splits[0], test=splits[1])


def has_idx_files(folder: Path) -> bool:
    return all(_find(folder, name) is not None for name in FILES)


def read_idx(path: Path, *, dims: int) -> Tensor:
    """An array of `dims` dimensions of unsigned bytes, its header checked against the file's length."""
    content = path.read_bytes()
    if content[:2] == GZIP_MAGIC:
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{path}: the gzip archive is damaged ({error}); fetch the file again.") from error
    magic, header = content[:4], 4 + 4 * dims
    if magic != bytes([0, 0, UNSIGNED_BYTES, dims]) or len(content) < header:
        raise InputError(
            f"{path}: not an idx file of {dims} dimensions, expected it to begin 0000080{dims}, got {magic.hex() or 'nothing'}."
        )
    shape = [int(n) for n in np.frombuffer(content, dtype=">u4", count=dims, offset=4)]
    if len(content) - header != prod(shape):
        raise InputError(
            f"{path}: its header promises {prod(shape):,} bytes, the file has {len(content) - header:,}; fetch it again."
        )
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy())


def _split(folder: Path, part: str) -> ArraySplit:
    images_path, labels_path = (_required(folder, name) for name in FILES if name.startswith(part))
    images, labels = read_idx(images_path, dims=3), read_idx(labels_path, dims=1)
    if len(images) != len(labels):
        raise InputError(f"{folder}: {len(images):,} {part} images and {len(labels):,} labels; each image needs one.")
    if not len(images):
        raise InputError(f"{folder}: the {part} files hold no image.")
    return ArraySplit(images[:, None], labels.long())


def _required(folder: Path, name: str) -> Path:
    path = _find(folder, name)
    if path is None:
        raise InputError(f"{folder}: {name} (or {name}.gz) is missing.")
    return path


def _find(folder: Path, name: str) -> Path | None:
    """The file under its usual spellings: plain or gzipped, `-idx3` or `.idx3`."""
    dotted = name.replace("-idx", ".idx")
    candidates = [folder / spelling for spelling in (name, f"{name}.gz", dotted, f"{dotted}.gz")]
    return next((path for path in candidates if path.is_file()), None)


def is_food101(folder: Path) -> bool:
    return (folder / "images").is_dir() and (folder / "meta" / "train.txt").is_file()


def read_food101(folder: Path, *, image_size: int | None = None, on_error: OnError = "stop") -> RawDataset:
    """`images/apple_pie/1005649.jpg`, split as `meta/train.txt` and `meta/test.txt` have it."""
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
    return (folder / "JPEGImages").is_dir() and (folder / "classes.txt").is_file()


def read_awa2(folder: Path, *, image_size: int | None = None, on_error: OnError = "stop") -> RawDataset:
    """`JPEGImages/grizzly+bear/grizzly+bear_10001.jpg`, classes in the order of `classes.txt`, a plus read as a space.

    The set's own split sets whole classes apart (for zero-shot learning), which is of no use here: all of it is one.
    """
    names = [line.split()[-1] for line in _lines(folder / "classes.txt")]
    folders = [folder / "JPEGImages" / name for name in names]
    files = [listing(path).images if path.is_dir() else () for path in folders]
    empty = [name for name, found in zip(names, files, strict=True) if not found]
    if empty:
        raise InputError(f"{folder}: classes.txt names {listed(empty)}, of which JPEGImages holds no image.")
    paths = tuple(path for found in files for path in found)
    targets = torch.repeat_interleave(torch.tensor([len(found) for found in files]))
    form = choose_form(paths, image_size=image_size)
    split = FileSplit(paths=paths, targets=targets, form=form, on_error=on_error)
    return RawDataset(tuple(name.replace("+", " ") for name in names), split)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InputError(f"{path}: missing; unpack the archive again.")
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
