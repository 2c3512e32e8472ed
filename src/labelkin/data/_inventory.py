"""List the datasets and corpora known by name, and download those that are missing."""

import os
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError, near
from labelkin.data._locate import Place, find_files, find_or_download
from labelkin.data._sets.sources import CORPORA, DATASETS, INSIDE


class Known(NamedTuple):
    """A dataset or corpus known by name."""

    title: str
    place: Place


KNOWN = {name: Known(source.title, source.place) for name, source in DATASETS.items()} | {
    name: Known(*known) for name, known in CORPORA.items()
}


class Entry(NamedTuple):
    """A dataset known by name, and where it was found."""

    name: str
    title: str
    at_hand: bool
    path: Path | None  # None if it was not found or is part of a Python package
    put: str  # the files that have to be placed in a data folder


def inventory(*, data_dir: str | os.PathLike[str] | None = None) -> list[Entry]:
    """Return one entry per dataset and corpus known by name."""
    entries = []
    for name, (title, place) in KNOWN.items():
        path = find_files(place, data_dir=data_dir)
        entries.append(Entry(name, title, path is not None, None if place is INSIDE else path, place.put))
    return entries


def fetch_by_name(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the path of a dataset, and download it if it is missing; None for a dataset that needs no files."""
    if name not in KNOWN:
        raise InputError(f"there is no dataset {name!r}; known datasets: {', '.join(KNOWN)}.{near(name, KNOWN)}")
    place = KNOWN[name].place
    return None if place is INSIDE else find_or_download(name, place, data_dir=data_dir)
