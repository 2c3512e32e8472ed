"""CIFAR-10 and CIFAR-100: Python pickles or the binary version, in a folder or in the original tar.gz."""

import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from labelkin._checks import InputError, listed
from labelkin.data._dataset import ArraySplit, RawDataset
from labelkin.data._readers import safe_pickle

PIXELS = 3 * 32 * 32
LARGEST_FILE = 1 << 29  # the largest file of CIFAR has 155 MB; larger ones are not CIFAR's
Bytes = npt.NDArray[np.uint8]


class Version(NamedTuple):
    """One published form of a dataset and its files."""

    name: str
    folder: str
    archive: str
    train: tuple[str, ...]
    test: str
    meta: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """All files; those with the class names come last."""
        return (*self.train, self.test, *self.meta)

    @property
    def binary(self) -> bool:
        """Whether this is the binary version."""
        return self.test.endswith(".bin")


class Records(NamedTuple):
    """The samples of one file."""

    pixels: Bytes  # (n, 3072)
    labels: npt.NDArray[np.int64]
    coarse: npt.NDArray[np.int64] | None


BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
VERSIONS = (
    Version("cifar10", "cifar-10-batches-py", "cifar-10-python.tar.gz", BATCHES, "test_batch", ("batches.meta",)),
    Version(
        "cifar10",
        "cifar-10-batches-bin",
        "cifar-10-binary.tar.gz",
        tuple(f"{name}.bin" for name in BATCHES),
        "test_batch.bin",
        ("batches.meta.txt",),
    ),
    Version("cifar100", "cifar-100-python", "cifar-100-python.tar.gz", ("train",), "test", ("meta",)),
    Version(
        "cifar100",
        "cifar-100-binary",
        "cifar-100-binary.tar.gz",
        ("train.bin",),
        "test.bin",
        ("fine_label_names.txt", "coarse_label_names.txt"),
    ),
)


def cifar_at(path: Path) -> str | None:
    """Return "cifar10" or "cifar100" if `path` is a folder or an archive of it, else None."""
    for version in VERSIONS:
        if (path / version.train[0]).is_file() or (path.is_file() and path.name == version.archive):
            return version.name
    return None


def read_cifar(path: Path, *, coarse: bool = False) -> RawDataset:
    """Read CIFAR at `path`; with `coarse`, the 20 superclasses of CIFAR-100 are the classes."""
    contents = _unpacked(path) if path.is_file() else _in_folder(path)
    version = next((v for v in VERSIONS if v.train[0] in contents), None)
    if version is None:
        raise InputError(f"{path}: expected a CIFAR file such as {listed([v.train[0] for v in VERSIONS])}, got none.")
    missing = [name for name in version.files if name not in contents]
    if missing:
        raise InputError(
            f"{path}: {listed(missing)} {'is' if len(missing) == 1 else 'are'} missing; unpack {version.archive} again."
        )
    names = _class_names(version, contents, path)
    train = [_records(version, contents.pop(name), path / name) for name in version.train]
    test = _records(version, contents.pop(version.test), path / version.test)
    splits = [_split(parts, names, path) for parts in (train, [test])]
    if coarse:
        return _coarse(splits, names, path)
    return RawDataset(names[0], train=splits[0], test=splits[1], coarse_classes=names[1] if len(names) > 1 else None)


def _in_folder(folder: Path) -> dict[str, bytes]:
    """Return the content of CIFAR's files in a folder."""
    known = {name for version in VERSIONS for name in version.files}
    return {name: (folder / name).read_bytes() for name in sorted(known) if (folder / name).is_file()}


def _unpacked(archive: Path) -> dict[str, bytes]:
    """Return the content of CIFAR's files in an archive, without unpacking it to disk."""
    known = {name for version in VERSIONS for name in version.files}
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                if member.isfile() and name in known and member.size <= LARGEST_FILE:
                    file = tar.extractfile(member)
                    contents[name] = b"" if file is None else file.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise InputError(f"{archive}: the archive is damaged ({error}); download it again.") from error
    return contents


def _class_names(version: Version, contents: dict[str, bytes], path: Path) -> list[tuple[str, ...]]:
    """Return the names of the classes, and of the superclasses if there are any."""
    if version.binary:
        lines = [contents.pop(name).decode("latin1").split("\n") for name in version.meta]
        return [tuple(line.strip() for line in found if line.strip()) for found in lines]
    meta = _record(contents.pop(version.meta[0]), path / version.meta[0])
    keys = ("label_names",) if version.name == "cifar10" else ("fine_label_names", "coarse_label_names")
    found = [meta.get(key) for key in keys]
    if not all(isinstance(names, list) and names for names in found):
        raise InputError(f"{path / version.meta[0]}: expected the lists {listed(keys)}, got {listed(sorted(meta))}.")
    return [tuple(safe_pickle.as_text(name) for name in names or []) for names in found]


def _records(version: Version, content: bytes, path: Path) -> Records:
    return _from_binary(version, content, path) if version.binary else _from_pickle(version, content, path)


def _from_binary(version: Version, content: bytes, path: Path) -> Records:
    labels = 1 if version.name == "cifar10" else 2
    if not content or len(content) % (labels + PIXELS):
        raise InputError(f"{path}: expected records of {labels + PIXELS:,} bytes, got {len(content):,} bytes in all.")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, labels + PIXELS)
    coarse = rows[:, 0].astype(np.int64) if labels == 2 else None
    return Records(rows[:, labels:], rows[:, labels - 1].astype(np.int64), coarse)


def _from_pickle(version: Version, content: bytes, path: Path) -> Records:
    record = _record(content, path)
    keys = ("labels",) if version.name == "cifar10" else ("fine_labels", "coarse_labels")
    pixels = record.get("data")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != PIXELS:
        raise InputError(f"{path}: expected 'data' of shape (n, {PIXELS}) and unsigned bytes; the file is not CIFAR's.")
    labels = [np.asarray(record.get(key)) for key in keys]
    if any(found.shape != (len(pixels),) or found.dtype.kind not in "iu" for found in labels):
        raise InputError(f"{path}: expected {len(pixels):,} whole numbers in each of {listed(keys)}.")
    return Records(pixels, labels[0].astype(np.int64), labels[1].astype(np.int64) if len(labels) > 1 else None)


def _record(content: bytes, path: Path) -> dict[str, Any]:
    """Return a pickled dictionary with text keys, from Python 2 or 3."""
    record = safe_pickle.load(content, source=str(path))
    if not isinstance(record, dict):
        raise InputError(f"{path}: expected a dictionary, got {type(record).__name__}.")
    return {safe_pickle.as_text(key): value for key, value in record.items()}


def _split(parts: list[Records], names: list[tuple[str, ...]], path: Path) -> ArraySplit:
    columns = [np.concatenate([part.labels for part in parts])]
    columns += [np.concatenate([part.coarse for part in parts if part.coarse is not None])] if len(names) > 1 else []
    for labels, own in zip(columns, names, strict=True):
        if len(labels) and not 0 <= labels.min() <= labels.max() < len(own):
            raise InputError(f"{path}: expected labels from 0 to {len(own) - 1}, got {labels.min()} to {labels.max()}.")
    pixels = torch.from_numpy(np.concatenate([part.pixels for part in parts]).reshape(-1, 3, 32, 32))
    targets = [torch.from_numpy(labels) for labels in columns]
    return ArraySplit(pixels, targets[0], targets[1] if len(targets) > 1 else None)


def _coarse(splits: list[ArraySplit], names: list[tuple[str, ...]], path: Path) -> RawDataset:
    if len(names) < 2:
        raise InputError(f"{path}: CIFAR-10 has no superclasses; use CIFAR-100 for coarse labels.")
    train, test = (ArraySplit(split.inputs, split.coarse) for split in splits if split.coarse is not None)
    return RawDataset(names[1], train=train, test=test)
