"""Lock a run, so that one process at a time trains it. The operating system releases the lock of a process that dies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labelkin._checks import InputError

NAME = "lock"


class RunInUse(InputError):
    """Another process is training this run."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the run of a folder and create the folder if it is missing. Raises `RunInUse` if another process holds it."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    held = FileLock(folder / NAME)
    try:
        held.acquire(timeout=0)
    except Timeout:
        raise RunInUse(
            f"{folder}: another process is training this run; wait for it, or choose another folder."
        ) from None
    try:
        yield
    finally:
        held.release()


def is_locked(folder: Path) -> bool:
    """Whether a process is training the run of a folder."""
    if not os.path.exists(folder / NAME):
        return False
    try:
        with locked(folder):
            return False
    except RunInUse:
        return True
