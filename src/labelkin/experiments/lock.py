"""One process at a time trains a run. The lock is the kernel's, so a process that dies gives it up."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labelkin._checks import InputError

NAME = "lock"


class RunInUse(InputError):
    """Another process trains this run."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run of a folder, which is made where it is missing; raise `RunInUse` where another process does."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    held = FileLock(folder / NAME)
    try:
        held.acquire(timeout=0)
    except Timeout:
        raise RunInUse(f"{folder}: another process trains this run; wait for it, or choose another folder.") from None
    try:
        yield
    finally:
        held.release()


def is_locked(folder: Path) -> bool:
    """Whether a process trains the run of a folder right now."""
    if not os.path.exists(folder / NAME):
        return False
    try:
        with locked(folder):
            return False
    except RunInUse:
        return True
