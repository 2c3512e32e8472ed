"""The sets known by name: which are at hand, and getting those that are not."""

import os
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError, near
from labelkin.data.locate import find, obtain
from labelkin.data.sources import DATASETS, INSIDE


class Entry(NamedTuple):
    name: str
    title: str
    at_hand: bool
    path: Path | None  # None where it is absent, or inside a package
    put: str  # what to put below a data folder where it is absent


def inventory(*, data_dir: str | os.PathLike[str] | None = None) -> list[Entry]:
    entries = []
    for name, source in DATASETS.items():
        path = find(source.place, data_dir=data_dir)
        shown = None if source.place is INSIDE else path
        entries.append(Entry(name, source.title, path is not None, shown, source.place.put))
    return entries


def fetch_by_name(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Where the set lies, downloaded if need be; None for one that needs no files."""
    if name not in DATASETS:
        raise InputError(f"there is no data set {name!r}; known sets: {', '.join(DATASETS)}.{near(name, DATASETS)}")
    place = DATASETS[name].place
    return None if place is INSIDE else obtain(name, place, data_dir=data_dir)
