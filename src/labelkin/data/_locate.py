"""Find the files of published datasets, and download them."""

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
DERIVED = "LABELKIN_CACHE"


class Download(NamedTuple):
    """One file of a dataset: its URL and MD5, the subfolder it is stored in, and the folder it unpacks to, if any."""

    url: str
    md5: str
    into: str = ""
    unpacks_to: str | None = None


class Place(NamedTuple):
    """Where the files of a dataset are.

    Attributes:
        below: Possible locations below a data folder.
        holds: Returns whether a path contains the dataset.
        put: A description of the files that a user has to provide, for error messages.
        downloads: Files that can be downloaded.
        fixed: Possible locations outside of data folders.
    """

    below: tuple[str, ...]
    holds: Callable[[Path], bool]
    put: str
    downloads: tuple[Download, ...] = ()
    fixed: tuple[str, ...] = ()


def cache_folder() -> Path:
    """Return the cache folder for datasets.

    Downloads are stored there if neither `data_dir` nor LABELKIN_DATA is given.

    Returns:
        The path; the folder may not exist yet.

    Example:
        >>> from labelkin.data import cache_folder
        >>> cache_folder().parts[-2:]
        ('labelkin', 'data')
    """
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "labelkin" / "data"


def derived_folder(kind: str) -> Path:
    """Return the folder for cached results that labelkin computes from data, such as the features of frozen networks.

    It is in the folder that the environment variable LABELKIN_CACHE names, else beside the cache of datasets.

    Args:
        kind: "features" or "hashes".
    """
    given = os.environ.get(DERIVED)
    return (Path(given).expanduser() if given else cache_folder().parent) / kind


def data_folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders that are searched for datasets.

    Args:
        data_dir: A folder that is searched first.

    Returns:
        `data_dir` and the folder in the environment variable LABELKIN_DATA, if given, and the cache.

    Example:
        >>> from labelkin.data import cache_folder, data_folders
        >>> folders = data_folders("datasets")
        >>> str(folders[0]), folders[-1] == cache_folder()
        ('datasets', True)
    """
    given = [Path(data_dir).expanduser()] if data_dir is not None else []
    variable = os.environ.get(VARIABLE)
    return [*given, *([Path(variable).expanduser()] if variable else []), cache_folder()]


def find_files(place: Place, *, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Find the files of a dataset.

    Args:
        place: Where to look, such as `DATASETS["mnist"].place`.
        data_dir: A folder that is searched first.

    Returns:
        The folder or archive of the dataset, or None if it was not found.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from labelkin.data import DATASETS, find_files
        >>> with TemporaryDirectory() as folder:
        ...     (Path(folder) / "awa2" / "JPEGImages").mkdir(parents=True)
        ...     (Path(folder) / "awa2" / "classes.txt").touch()
        ...     print(find_files(DATASETS["awa2"].place, data_dir=folder).name)
        awa2
    """
    return next((path for path in _candidates(place, data_dir) if place.holds(path)), None)


def find_or_download(
    name: str, place: Place, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True
) -> Path:
    """Find the files of a dataset, and download them if they are missing.

    If that fails, the error lists the files to provide and the folders to place them in.
    """
    if data_dir is not None and not Path(data_dir).expanduser().is_dir():
        raise InputError(f"data_dir: there is no folder {str(data_dir)!r}.")
    reason = None
    if find_files(place, data_dir=data_dir) is None:
        reason = _fetched(place, data_folders(data_dir)[0]) if download else "downloads are turned off"
    found = find_files(place, data_dir=data_dir)
    if found is not None:
        return found
    looked = ", ".join(str(folder) for folder in data_folders(data_dir))
    raise InputError(
        f"{name}: not found in {looked}, and {reason}; place {place.put} below one of these folders, or give another one "
        f"with data_dir or {VARIABLE}."
    )


def download_files(place: Place, folder: Path) -> None:
    """Download the files of a dataset.

    Every file is checked against its MD5. A file is either complete or absent; an existing file is never overwritten.

    Args:
        place: The files to download, such as `DATASETS["mnist"].place`.
        folder: The data folder to store them in.

    Example:
        >>> from pathlib import Path
        >>> from labelkin.data import DATASETS, download_files
        >>> download_files(DATASETS["mnist"].place, Path("datasets"))  # doctest: +SKIP
    """
    pooch = require("pooch", extra="data", use="the download")
    for item in place.downloads:
        into = folder / item.into
        into.mkdir(parents=True, exist_ok=True)
        file = item.url.rpartition("/")[2]
        given = (into / file).exists()
        if given and pooch.file_hash(str(into / file), alg="md5") != item.md5:
            raise ValueError(
                f"{into / file}: the file does not match the published checksum; remove it to download it again."
            )
        path = Path(pooch.retrieve(item.url, known_hash=f"md5:{item.md5}", fname=file, path=into))
        if item.unpacks_to is not None:
            _unpack(path, into / item.unpacks_to)
            if not given:
                path.unlink()  # an archive that already existed is kept


def _fetched(place: Place, folder: Path) -> str | None:
    """Download the files. Returns None, or the reason why it failed."""
    if not place.downloads:
        return "it has to be downloaded manually"
    try:
        download_files(place, folder)
    except MissingExtra as error:
        return str(error)
    except OSError as error:  # no network, no permission to write, or a full disk
        return f"the download failed ({error.strerror or type(error).__name__})"
    except ValueError:
        return "the download failed (the file does not match the published checksum)"
    return None


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive next to `folder`, then rename it, so that an existing folder is always complete."""
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=f".{folder.name}.") as beside:
        with tarfile.open(archive) as tar:
            tar.extractall(beside, filter="data")
        os.replace(Path(beside) / folder.name, folder)


def _candidates(place: Place, data_dir: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield the paths that may contain the dataset."""
    if data_dir is not None:
        yield Path(data_dir).expanduser()  # data_dir may be the folder of the dataset itself
    for root in data_folders(data_dir):
        yield from (root / below for below in place.below)
    yield from (Path(path) for path in place.fixed)
