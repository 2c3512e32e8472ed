"""Where the published sets lie, and how they are fetched when they are nowhere."""

import os
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError
from labelkin._extras import MissingExtra, require

VARIABLE = "LABELKIN_DATA"


class Download(NamedTuple):
    """A file of a set: its address and MD5, the folder it goes into, and the folder that it unpacks to, if it is to."""

    url: str
    md5: str
    into: str = ""
    unpacks_to: str | None = None


class Place(NamedTuple):
    """Where a set may lie below a data folder, how it is known to be there, and how it gets there.

    `put` says in words what a person is to put where; `fixed` are places outside all data folders.
    """

    below: tuple[str, ...]
    holds: Callable[[Path], bool]
    put: str
    downloads: tuple[Download, ...] = ()
    fixed: tuple[str, ...] = ()


def cache_folder() -> Path:
    """The user's cache: where downloads go when neither `data_dir` nor LABELKIN_DATA is given."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "labelkin" / "data"


def data_folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    """The folders that are looked through, in order: `data_dir`, LABELKIN_DATA, the cache."""
    given = [Path(data_dir).expanduser()] if data_dir is not None else []
    variable = os.environ.get(VARIABLE)
    return [*given, *([Path(variable).expanduser()] if variable else []), cache_folder()]


def find_files(place: Place, *, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """The set's folder or archive where it is, else nothing."""
    return next((path for path in _candidates(place, data_dir) if place.holds(path)), None)


def find_or_download(
    name: str, place: Place, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True
) -> Path:
    """The set's folder or archive, fetched if need be; where that fails, the error says what to put where."""
    if data_dir is not None and not Path(data_dir).expanduser().is_dir():
        raise InputError(f"data_dir: there is no folder {str(data_dir)!r}.")
    reason = None
    if find_files(place, data_dir=data_dir) is None:
        reason = _fetched(place, data_folders(data_dir)[0]) if download else "downloading is switched off"
    found = find_files(place, data_dir=data_dir)
    if found is not None:
        return found
    looked = ", ".join(str(folder) for folder in data_folders(data_dir))
    raise InputError(
        f"{name}: not found in {looked}, and {reason}; put {place.put} below one of these folders, or name another with "
        f"data_dir or {VARIABLE}."
    )


def download_files(place: Place, folder: Path) -> None:
    """Download the set's files below `folder`, each checked by its MD5 and there whole or not at all."""
    pooch = require("pooch", extra="data", use="the download")
    for item in place.downloads:
        into = folder / item.into
        into.mkdir(parents=True, exist_ok=True)
        file = item.url.rpartition("/")[2]
        given = (into / file).exists()
        if given and pooch.file_hash(str(into / file), alg="md5") != item.md5:
            raise ValueError(f"{into / file}: the file does not have its published checksum; it is not overwritten.")
        path = Path(pooch.retrieve(item.url, known_hash=f"md5:{item.md5}", fname=file, path=into))
        if item.unpacks_to is not None:
            _unpack(path, into / item.unpacks_to)
            if not given:
                path.unlink()  # an archive that the user put here stays


def _fetched(place: Place, folder: Path) -> str | None:
    """Fetch it, or say in words why not."""
    if not place.downloads:
        return "it has to be fetched by hand"
    try:
        download_files(place, folder)
    except MissingExtra as error:
        return str(error)
    except OSError as error:  # no network, no right to write, no space left
        return f"the download failed ({error.strerror or type(error).__name__})"
    except ValueError:
        return "the download failed (the file does not have its published checksum)"
    return None


def _unpack(archive: Path, folder: Path) -> None:
    """Beside the goal first, then renamed, so that a folder that is there is whole."""
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=f".{folder.name}.") as beside:
        with tarfile.open(archive) as tar:
            tar.extractall(beside, filter="data")
        os.replace(Path(beside) / folder.name, folder)


def _candidates(place: Place, data_dir: str | os.PathLike[str] | None) -> Iterator[Path]:
    if data_dir is not None:
        yield Path(data_dir).expanduser()  # the set's own folder may be named directly
    for root in data_folders(data_dir):
        yield from (root / below for below in place.below)
    yield from (Path(path) for path in place.fixed)
