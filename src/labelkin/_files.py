"""Files are written whole or not at all: beside the target first, then renamed over it."""

import csv
import errno
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    target = Path(path)
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def write_text(path: str | os.PathLike[str], content: str) -> None:
    write_bytes(path, content.encode("utf-8"))


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table with a header, its columns in the order in which the rows first name them; nothing without rows."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=columns, lineterminator="\n")
    if columns:
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue()


def is_full(error: OSError) -> bool:
    """Whether the disk, or the user's share of it, has no room left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
