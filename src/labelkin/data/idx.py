"""The idx files of MNIST, Fashion-MNIST and their kin, plain or gzipped."""

import gzip
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.data.dataset import ArraySplit
from labelkin.data.read import Read

UNSIGNED_BYTES = 0x08
GZIP_MAGIC = b"\x1f\x8b"
FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
FILES = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


def read_idx_folder(folder: Path, *, classes: Sequence[str] | None = None) -> Read:
    """The four files of one folder; without `classes` the labels' numbers are their names."""
    splits = [_split(folder, part) for part in ("train", "t10k")]
    if classes is None:
        classes = [str(k) for k in range(int(splits[0].targets.max()) + 1)]
    return Read(tuple(classes), train=splits[0], test=splits[1])


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
