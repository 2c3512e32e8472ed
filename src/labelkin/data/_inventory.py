"""The sets known by name: which are at hand, and getting those that are not."""

import os
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError, near
from labelkin.data._locate import Place, find_files, find_or_download
from labelkin.data._sets.sources import CORPORA, DATASETS, INSIDE


class Known(NamedTuple):
    title: str
    place: Place


KNOWN = {name: Known(source.title, source.place) for name, source in DATASETS.items()} | {
    name: Known(*known) for name, known in CORPORA.items()
}


class Entry(NamedTuple):
    name: str
    title: str
    at_hand: bool
    path: Path | None  # None where it is absent, or inside a package
    put: str  # what to put below a data folder where it is absent


def inventory(*, data_dir: str | os.PathLike[str] | None = None) -> list[Entry]:
    entries = []
    for name, (title, place) in KNOWN.items():
        path = find_files(place, data_dir=data_dir)
        entries.append(Entry(name, title, path is not None, None if place is INSIDE else path, place.put))
    return entries


def fetch_by_name(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Where the set lies, downloaded if need be; None for one that needs no files."""
    if name not in KNOWN:
        raise InputError(f"there is no data set {name!r}; known sets: {', '.join(KNOWN)}.{near(name, KNOWN)}")
    place = KNOWN[name].place
    return None if place is INSIDE else find_or_download(name, place, data_dir=data_dir)
