"""What a set is known by, so that data that changed are not taken for what they were."""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NamedTuple

from labelkin.data._loading import FOLDERS, part_tables
from labelkin.data._readers.images import SUFFIXES
from labelkin.data._sets.cifar import cifar_at
from labelkin.data._sets.sources import DATASETS, MULTI30K


class Scan(NamedTuple):
    digest: str
    folders: dict[str, int]  # all that were looked into, with their modification times


_scans: dict[Path, Scan] = {}


def fingerprint(data: str) -> str:
    """Return a string that changes when the content of the data changes.

    The name of a published set stands for itself. A file counts by its content. A folder counts by what it contains: tables by
    content, images and other files by path and size, because reading 100,000 images would take minutes. An image that is
    replaced by another one of the same name and size is therefore not noticed. Hidden files, and other files in a folder of
    images, do not count. Missing data are returned as they were named. `labelkin.data.corpora.corpus_fingerprint` does the
    same for a parallel corpus.
    """
    path = Path(data).expanduser()
    if data in DATASETS or data.partition(":")[0] == MULTI30K:
        return data
    if path.is_file():
        return digest(path)
    return f"folder:{_folder_digest(path.resolve())}" if path.is_dir() else data


def digest(path: Path) -> str:
    """Of a file's content, read again only where its time or size has changed."""
    stat = path.stat()
    return _digest(path.resolve(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _digest(path: Path, modified: int, size: int) -> str:
    with path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


def _folder_digest(folder: Path) -> str:
    if _is_published(folder):
        return listing_digest(folder, every=True)
    tables = part_tables(folder).values()
    return hash_lines([listing_digest(folder), *(f"{table.name} {digest(table)}" for table in tables)])


def listing_digest(folder: Path, *, every: bool = False) -> str:
    """The paths and sizes of the images below a folder, or of `every` file, as a hash.

    It is looked through once, and again where a folder in it has changed; a file that grew in its place is seen by the
    next process.
    """
    known = _scans.get(folder)
    if known is None or any(_modified(below) != time for below, time in known.folders.items()):
        times: dict[str, int] = {}
        known = _scans[folder] = Scan(hash_lines(_sizes(str(folder), every, times)), times)
    return known.digest


def _sizes(root: str, every: bool, times: dict[str, int]) -> Iterator[str]:
    """A line for each file that counts; `times` gets the folders."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        times[folder] = _modified(folder)
        with os.scandir(folder) as found:
            entries = sorted((e for e in found if not e.name.startswith(".")), key=lambda entry: entry.name)
        if every and folder != root and any(entry.name == "config.json" for entry in entries):
            continue  # a run that is kept among the data
        waiting += [entry.path for entry in entries if entry.is_dir()]
        for entry in entries:
            if (every or os.path.splitext(entry.name)[1].lower() in SUFFIXES) and entry.is_file():
                yield f"{entry.path[len(root) :]} {entry.stat().st_size}"


def _is_published(folder: Path) -> bool:
    """Whether a published set lies there, whose files have names of their own."""
    return cifar_at(folder) is not None or any(holds(folder) for holds, _ in FOLDERS)


def _modified(folder: str) -> int:
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
