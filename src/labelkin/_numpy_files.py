"""Read .npy and .npz files that anyone may have written: nothing is unpickled, and a damaged file is an `InputError`."""

import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError

Array = npt.NDArray[Any]
MOST_TIMES = 1_000  # how many times larger than the file its arrays may be, unless they are small
SMALL = 1 << 28  # bytes
# Everything that numpy and zipfile raise for damaged files. A flipped byte in a header reaches numpy's parser of Python
# literals, which raises SyntaxError, TokenError or RecursionError.
DAMAGED = (
    ValueError,
    TypeError,
    KeyError,
    OSError,
    EOFError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    RecursionError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_numpy(path: str | os.PathLike[str]) -> Array | dict[str, Array]:
    """Load the array of a .npy file, or the arrays of a .npz file by name.

    Args:
        path: The file.

    Returns:
        One array, or several by name.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file.")
    try:
        _check_sizes(file)
        loaded: Array | np.lib.npyio.NpzFile = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return dict(loaded)
    except InputError:
        raise
    except DAMAGED as error:
        if "pickle" in str(error):
            raise InputError(
                f"{file}: contains Python objects or is not a numpy file; save labels as text or whole numbers."
            ) from error
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{file}: not a readable numpy file ({reason}); save it again.") from error


def _check_sizes(file: Path) -> None:
    """Refuse an archive that unpacks to much more than its own size, which no real data do."""
    if not zipfile.is_zipfile(file):
        return
    limit = max(SMALL, MOST_TIMES * file.stat().st_size)
    with zipfile.ZipFile(file) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > limit:
        raise InputError(
            f"{file}: its arrays would take {size:,} bytes, more than {MOST_TIMES:,} times the size of the file; "
            "save it without compression if this is right."
        )
