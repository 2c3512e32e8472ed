"""Atomic file writes, and the names of the files in a run folder."""

import csv
import errno
import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, TypeGuard

from labelkin._checks import InputError

SMALL, MOST_TIMES = 1 << 20, 200  # bytes that a .gz file may always unpack to, and how many times its size
TEMPORARY = re.compile(
    r"\.labelkin-[0-9a-f]{16}\.tmp"
)  # a file that is being written, or was when its process was killed
STATE = re.compile(r"state-\d{5,}-\d{7,}\.safetensors")  # a training state
RUN_FILES = frozenset(
    {
        "config.json",
        "setup.safetensors",
        "state.json",
        "metrics.csv",
        "timing.json",
        "model.safetensors",
        "final.json",
        "outputs.safetensors",
        "decisions.npz",
        "measures.json",
        "error.txt",
        "lock",
    }
)
EVENTS = "tensorboard"  # the subfolder of a run with TensorBoard's event files
SEPARATORS = ",;\t|"  # of the columns of .csv files


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all.

    See `open_whole`.
    """
    with open_whole(path) as file:
        file.write(content)


@contextmanager
def open_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under its name at the end of the `with`, or not at all after an error.

    The content goes to a temporary file in the same folder, which is then renamed to `path`. A process that is killed
    may leave a temporary file behind; its name matches `TEMPORARY`. A new file has the permissions that the process's
    umask gives; the umask itself is not changed, because all threads share it.
    """
    target = Path(path)
    beside = target.parent / f".labelkin-{token_hex(8)}.tmp"
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def gunzip(content: bytes, source: object) -> bytes:
    """Decompress the content of a .gz file; refuse one that unpacks to far more than texts and images do.

    Raises `OSError`, `EOFError` or `zlib.error` if it is damaged.
    """
    limit = max(SMALL, MOST_TIMES * len(content))
    with gzip.open(io.BytesIO(content)) as file:
        unpacked = file.read(limit + 1)
    if len(unpacked) > limit:
        raise InputError(
            f"{source}: it unpacks to more than {limit:,} bytes, {MOST_TIMES} times its size; unpack it if you trust it."
        )
    return unpacked


def check_replaceable(path: str | os.PathLike[str], *, by: str, is_ours: Callable[[bytes], bool]) -> None:
    """Refuse to write over a file that labelkin did not write; an empty one holds nothing to lose.

    Args:
        path: The file that will be written.
        by: The command that writes it, for the message.
        is_ours: Whether a file that begins with these bytes was written by that command.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target}: this is a folder; expected the name of a file.")
    if not target.exists():
        return
    with target.open("rb") as file:
        start = file.read(1 << 13)
    if start and not is_ours(start):
        raise InputError(f"{target}: this exists and was not written by {by}; choose another name, or remove it.")


def write_text(path: str | os.PathLike[str], content: str) -> None:
    """Write a UTF-8 text file completely or not at all; see `write_bytes`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text(f"{folder}/note.txt", "hello")
    ...     print(Path(folder, "note.txt").read_text())
    hello
    """
    write_bytes(path, content.encode("utf-8"))


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header; columns are in order of their first appearance.

    >>> csv_text([{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25}])
    'epoch,loss\\n1,0.5\\n2,0.25\\n'
    >>> csv_text([])
    ''
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=columns, lineterminator="\n")
    if columns:
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue()


def is_run_config(config: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether the content of a config.json was written by labelkin for a run."""
    return isinstance(config, dict) and isinstance(config.get("version"), int) and "data" in config


def contains_run(folder: Path) -> bool:
    """Return whether a folder has a config.json that labelkin wrote, of this or another version."""
    try:
        return is_run_config(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def is_events_folder(path: Path) -> bool:
    """Return whether `path` is a folder that contains TensorBoard's event files and nothing else."""
    if not path.is_dir() or path.is_symlink():
        return False
    return all(file.name.startswith("events.out.tfevents.") and file.is_file() for file in path.iterdir())


def remove_run(path: str | os.PathLike[str]) -> list[str]:
    """Delete the files that labelkin wrote into a run folder, and the folder if nothing else is in it.

    config.json is deleted first, so an interrupted removal leaves no folder that looks like a complete run.

    Returns:
        The files that were kept because labelkin did not write them, relative to the folder, sorted.
    """
    folder = Path(path)
    (folder / "config.json").unlink(missing_ok=True)
    for entry in folder.iterdir():
        name = entry.name
        if name == EVENTS and is_events_folder(entry):
            for events in entry.iterdir():
                events.unlink(missing_ok=True)
            entry.rmdir()
        elif (name in RUN_FILES or STATE.fullmatch(name) or TEMPORARY.fullmatch(name)) and not entry.is_dir():
            entry.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
        return []
    kept = (file.relative_to(folder) for file in folder.rglob("*") if not file.is_dir())
    return sorted(file.as_posix() for file in kept)


def is_full(error: OSError) -> bool:
    """Return whether the error means that the disk is full or the user's quota is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def separator_of(header: str) -> str:
    """Return the character that separates the columns in the first line of a table: the most frequent one outside quotes.

    One before a blank counts less: it may be part of a name, as a table with semicolons does not quote "owl, barn". If two are
    as frequent, it is the comma.

    >>> separator_of('a;b;"c,d"'), separator_of("a,b;c"), separator_of("owl, barn;owl, snowy")
    (';', ',', ';')
    """
    bare = re.sub(r'"[^"]*"', "", header)
    return max(SEPARATORS, key=lambda mark: (len(re.findall(rf"{re.escape(mark)}(?! )", bare)), bare.count(mark)))
