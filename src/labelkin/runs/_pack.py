"""Pack the results of finished runs into one file, and unpack it into a store. Needs no torch.

The file is a zip archive with a folder for each run: its configuration, metrics, history, timing and decisions, without weights
and outputs. `labelkin runs list`, `compare` and `export` work on the unpacked store.
"""

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from labelkin._checks import InputError, listed
from labelkin._files import check_replaceable, is_run_config, write_bytes
from labelkin._numpy_files import DAMAGED
from labelkin.runs._decisions import DECISIONS
from labelkin.runs._run_files import MEASURES, is_finished_run, read_json
from labelkin.runs._store import readable_or_noted

# In the order in which they are written: final.json marks a run as finished.
PACKED = ("config.json", "metrics.csv", "timing.json", MEASURES, DECISIONS, "final.json")
REQUIRED = ("config.json", "final.json")
LARGEST = 1 << 28  # bytes of one unpacked file, against archives that expand without end


class Unpacked(NamedTuple):
    """The names of the run folders that `unpack_runs` wrote, and of those that the store already had."""

    written: list[str]
    known: list[str]


def pack_runs(store: str | os.PathLike[str], output: str | os.PathLike[str]) -> int:
    """Write the results of the finished runs of a store to one file.

    The same runs give the same file, byte by byte.

    Args:
        store: The folder of the runs.
        output: The file; its name ends in `.zip`.

    Returns:
        The number of runs.
    """
    target = Path(output)
    if target.suffix.lower() != ".zip":
        raise InputError(f"{target}: expected a name that ends in .zip.")
    check_replaceable(target, by="labelkin runs pack", is_ours=_is_ours)
    folders = [record.path for record in readable_or_noted(store) if record.finished]
    if not folders:
        raise InputError(f"{store}: there are no finished runs to pack.")
    content = io.BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for folder in folders:
            for name in PACKED:
                if (folder / name).exists():
                    entry = ZipInfo(f"{folder.name}/{name}")  # without the time, so that equal runs give equal files
                    entry.compress_type, entry.external_attr = ZIP_DEFLATED, 0o644 << 16
                    archive.writestr(entry, (folder / name).read_bytes())
    write_bytes(target, content.getvalue())
    return len(folders)


def _is_ours(start: bytes) -> bool:
    """Return whether a file begins as an archive of runs does: with the configuration of one."""
    size = int.from_bytes(start[26:28], "little")
    return start.startswith(b"PK\x03\x04") and start[30 : 30 + size].endswith(b"/config.json")


def unpack_runs(file: str | os.PathLike[str], store: str | os.PathLike[str]) -> Unpacked:
    """Write the runs in a file that `pack_runs` wrote to a store.

    Nothing is written if the file is damaged, has an entry that does not belong to a run folder, or has a run whose folder in
    the store contains something else. A finished run that the store already has is not changed.

    Args:
        file: The file.
        store: The folder of the runs; created if it does not exist.

    Returns:
        The folders that were written, and those of runs that the store had.
    """
    runs, target = _read(Path(file)), Path(store)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target}: expected a folder, but this is a file; choose another name.")
    known = [name for name, files in runs.items() if _is_known(target / name, files)]
    for name, files in runs.items():
        if name not in known:
            (target / name).mkdir(parents=True, exist_ok=True)
            for part in PACKED:
                if part in files:
                    write_bytes(target / name / part, files[part])
    return Unpacked([name for name in runs if name not in known], known)


def _is_known(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Return whether a folder has this run, finished. Refuses a folder with anything else."""
    if not folder.exists() and not folder.is_symlink():
        return False
    found = read_json(folder / "config.json") if folder.is_dir() else None
    ours = json.loads(files["config.json"])["id"]
    same = is_run_config(found) and found.get("id") == ours
    if same and is_finished_run(folder):
        return True
    what = "this run, unfinished" if same else "something other than this run"
    raise InputError(f"{folder}: contains {what}; unpack into another folder, or remove this one.")


def _read(path: Path) -> dict[str, dict[str, bytes]]:
    """Return the files of each run in an archive, after checking all of them."""
    try:
        with ZipFile(path) as archive:
            runs: dict[str, dict[str, bytes]] = {}
            for entry in archive.infolist():
                folder, name = _place(path, entry)
                if name in runs.setdefault(folder, {}):
                    raise InputError(
                        f"{path}: {entry.filename!r} occurs twice; expected a file written by `labelkin runs pack`."
                    )
                runs[folder][name] = archive.read(entry)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except InputError:
        raise
    except DAMAGED as error:
        raise InputError(f"{path}: not written by `labelkin runs pack`, or damaged ({error}).") from error
    if not runs:
        raise InputError(f"{path}: contains no runs.")
    for folder, files in runs.items():
        _check_run(path, folder, files)
    return runs


def _place(path: Path, entry: ZipInfo) -> tuple[str, str]:
    """Return the run folder and the file of an entry. Refuses a place outside a run folder, and other files."""
    parts = PurePosixPath(entry.filename).parts
    plain = (
        len(parts) == 2 and "/".join(parts) == entry.filename and not set(parts[0]) & set("\\:\0") and parts[0] != ".."
    )
    if not plain or parts[1] not in PACKED:
        raise InputError(
            f"{path}: {entry.filename!r} is not a file of a run; expected a file written by `labelkin runs pack`."
        )
    if entry.file_size > LARGEST:
        raise InputError(f"{path}: {entry.filename!r} has {entry.file_size:,} bytes; expected at most {LARGEST:,}.")
    return parts[0], parts[1]


def _check_run(path: Path, folder: str, files: Mapping[str, bytes]) -> None:
    missing = [name for name in REQUIRED if name not in files]
    if missing:
        raise InputError(f"{path}: the run {folder!r} lacks {listed(missing)}; pack it again.")
    try:
        config, final = (json.loads(files[name]) for name in REQUIRED)
    except ValueError as error:
        raise InputError(f"{path}: the run {folder!r} is damaged ({error}); pack it again.") from error
    if not is_run_config(config) or not isinstance(config.get("id"), str) or not isinstance(final, dict):
        raise InputError(f"{path}: the configuration of {folder!r} is not that of a run; pack it again.")
