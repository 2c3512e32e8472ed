"""Files are written whole or not at all: beside the target first, then renamed over it."""

import os
import tempfile
from pathlib import Path


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
