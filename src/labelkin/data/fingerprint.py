"""What a set is known by, so that data that changed are not taken for what they were."""

import os
from collections.abc import Iterator
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NamedTuple

from labelkin.data.cifar import cifar_at
from labelkin.data.corpora.files import at_hand
from labelkin.data.corpora.loading import MULTI30K
from labelkin.data.images import SUFFIXES
from labelkin.data.paths import FOLDERS, part_tables
from labelkin.data.sources import DATASETS


class Scan(NamedTuple):
    digest: str
    folders: dict[str, int]  # all that were looked into, with their modification times


_scans: dict[Path, Scan] = {}


def fingerprint(data: str) -> str:
    """The name of a published set as it is; a file, or each of two files of sentences, by its content; a folder by what is
    in it: tables and sentences by content, images and all else by path and size.

    Reading 100,000 images would take minutes, so one that is replaced by another of the same name and size is not seen.
    Hidden files count for nothing, nor do files beside images that are none.
    """
    first, _, second = data.partition(":")
    path = Path(data).expanduser()
    if data in DATASETS or first == MULTI30K:
        return data
    if path.is_file():
        return digest(path)
    if path.is_dir():
        return f"folder:{_folder_digest(path.resolve())}"
    return _corpus(Path(first).expanduser(), second) or data


def digest(path: Path) -> str:
    """Of a file's content, read again only where its time or size has changed."""
    stat = path.stat()
    return _digest(path.resolve(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _digest(path: Path, modified: int, size: int) -> str:
    with path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


def _corpus(first: Path, second: str) -> str | None:
    """Two files, or the files of two languages in a folder; None where neither is there."""
    if second and first.is_dir():
        languages = tuple(f".{language}" for language in second.split("-"))
        files = sorted(f for f in first.iterdir() if f.is_file() and f.name.removesuffix(".gz").endswith(languages))
        return f"folder:{_hashed(f'{file.name} {digest(file)}' for file in files)}:{second}"
    both = [at_hand(first), at_hand(Path(second).expanduser())] if second else [None]
    return None if None in both else ":".join(digest(file) for file in both if file is not None)


def _folder_digest(folder: Path) -> str:
    if _is_published(folder):
        return scanned(folder, every=True)
    tables = part_tables(folder).values()
    return _hashed([scanned(folder), *(f"{table.name} {digest(table)}" for table in tables)])


def scanned(folder: Path, *, every: bool = False) -> str:
    """The paths and sizes of the images below a folder, or of `every` file, as a hash.

    It is looked through once, and again where a folder in it has changed; a file that grew in its place is seen by the
    next process.
    """
    known = _scans.get(folder)
    if known is None or any(_modified(below) != time for below, time in known.folders.items()):
        times: dict[str, int] = {}
        known = _scans[folder] = Scan(_hashed(_sizes(str(folder), every, times)), times)
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


def _hashed(lines: Iterator[str] | list[str]) -> str:
    found = sha256()
    for line in lines:
        found.update(f"{line}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()
