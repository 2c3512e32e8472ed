"""Fingerprints of data, which change when the content changes."""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NamedTuple

from labelkin.data._content import file_digests
from labelkin.data._loading import FOLDERS, part_tables
from labelkin.data._readers.images import SUFFIXES
from labelkin.data._sets.cifar import cifar_at
from labelkin.data._sets.sources import DATASETS, MULTI30K


class Scan(NamedTuple):
    """Digest of the file listing of a folder, and the modification times of the folders it was computed from."""

    digest: str
    folders: dict[str, int]  # every folder that was read -> modification time


_scans: dict[Path, Scan] = {}


def fingerprint(data: str) -> str:
    """Return a string that changes when the content of the data changes.

    - A published dataset is represented by its name, and missing data by the name or path that was given.
    - `stdlib`, `languages` and `wordnet`, which differ between versions of Python, Babel and WordNet, are represented by their
      name and a hash of their content.
    - A file is represented by a hash of its content.
    - A folder is represented by a hash of the content of its tables and of the path and size of its images and other files,
      because hashing 100,000 images takes minutes the first time. It stays the same if an image is replaced by another one of
      the same name and size; runs record `folder_content` as well, which does not. Hidden files, and files that are not images
      in a folder of images, are ignored.

    `labelkin.translate._corpus_files.corpus_fingerprint` does the same for a parallel corpus.

    Args:
        data: A name or path, as for `load`.

    Returns:
        The fingerprint.

    Example:
        >>> from labelkin.data import fingerprint
        >>> fingerprint("cifar100")
        'cifar100'
    """
    path = Path(data).expanduser()
    source = DATASETS.get(data)
    if source is not None and source.digest is not None and (content := source.digest()) is not None:
        return f"{data}:{content}"
    if source is not None or data.partition(":")[0] == MULTI30K:
        return data
    if path.is_file():
        return digest(path)
    return f"folder:{_folder_digest(path.resolve())}" if path.is_dir() else data


def folder_content(data: str) -> str | None:
    """Return a hash of the content of all images below a folder, or None if the data are not a folder of files.

    The hash of each file is cached until its size or modification time changes.

    Args:
        data: A name or path, as for `load`.
    """
    path = Path(data).expanduser()
    if data in DATASETS or not path.is_dir() or _is_published(path.resolve()):
        return None
    root = path.resolve()
    files = [Path(f"{root}{line.rpartition(' ')[0]}") for line in _sizes(str(root), False, {})]
    named = zip(files, file_digests(files), strict=True)
    return hash_lines(f"{file.relative_to(root)} {content}" for file, content in named)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file's content; cached until its modification time or size changes."""
    stat = path.stat()
    return _digest(path.resolve(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _digest(path: Path, modified: int, size: int) -> str:
    with path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


def _folder_digest(folder: Path) -> str:
    """Return the digest of a folder: its listing, and the content of its tables."""
    if _is_published(folder):
        return listing_digest(folder, every=True)
    tables = part_tables(folder).values()
    return hash_lines([listing_digest(folder), *(f"{table.name} {digest(table)}" for table in tables)])


def listing_digest(folder: Path, *, every: bool = False) -> str:
    """Return a hash of the paths and sizes of the files below a folder.

    The result is cached until a folder below changes. A file that grows in place is only noticed by the next process.

    Args:
        folder: The folder.
        every: Include all files instead of images only.
    """
    known = _scans.get(folder)
    if known is None or any(_modified(below) != time for below, time in known.folders.items()):
        times: dict[str, int] = {}
        known = _scans[folder] = Scan(hash_lines(_sizes(str(folder), every, times)), times)
    return known.digest


def _sizes(root: str, every: bool, times: dict[str, int]) -> Iterator[str]:
    """Yield one line per file, and store the modification times of the folders in `times`."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        times[folder] = _modified(folder)
        with os.scandir(folder) as found:
            entries = sorted((e for e in found if not e.name.startswith(".")), key=lambda entry: entry.name)
        if every and folder != root and any(entry.name == "config.json" for entry in entries):
            continue  # a run folder inside the data folder
        waiting += [entry.path for entry in entries if entry.is_dir()]
        for entry in entries:
            if (every or os.path.splitext(entry.name)[1].lower() in SUFFIXES) and entry.is_file():
                yield f"{entry.path[len(root) :]} {entry.stat().st_size}"


def _is_published(folder: Path) -> bool:
    """Return whether a folder contains a published dataset, which is recognized by its file names."""
    return cifar_at(folder) is not None or any(holds(folder) for holds, _ in FOLDERS)


def _modified(folder: str) -> int:
    """Return the modification time of a folder, or -1 if it does not exist."""
    try:
        return os.stat(folder).st_mtime_ns
    except FileNotFoundError:
        return -1


def hash_lines(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines of text."""
    found = sha256()
    for line in lines:
        found.update(f"{line}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()
