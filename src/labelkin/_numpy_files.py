"""Read .npy and .npz files that anyone may have written: nothing is unpickled, and a damaged file is an `InputError`."""

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from labelkin._checks import InputError

Array = npt.NDArray[Any]
MOST_TIMES = 1_000  # how many times larger than the file its arrays may be, unless they are small
SMALL = 1 << 28  # bytes
LENGTHS_AT = 26  # of a local header of a zip file: the lengths of the name and of the extra field, which end the header
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


class StoredArray:
    """A table of numbers (n, K) that stays in its .npz file and is read in blocks of rows.

    Attributes:
        shape: The shape.
        dtype: The type of the numbers.
    """

    def __init__(self, file: Path, entry: zipfile.ZipInfo, start: int, shape: tuple[int, int], dtype: np.dtype[Any]):
        self.shape, self.dtype = shape, dtype
        self._file, self._entry, self._start = file, entry, start
        self._is_checked = False  # whether the checksum was compared

    def blocks(self, rows: int) -> Iterator[Array]:
        """Yield so many rows at a time, from the first to the last."""
        width = self.shape[1] * self.dtype.itemsize
        with _readable(self._file), self._opened() as stream:
            for start in range(0, self.shape[0], rows):
                count = min(rows, self.shape[0] - start)
                content = stream.read(count * width)
                if len(content) != count * width:
                    raise EOFError("it ends too early")
                yield np.frombuffer(content, self.dtype).reshape(count, self.shape[1])
            if not self._is_checked:
                stream.read(1)  # at the end, the checksum is compared
                self._is_checked = True

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """Open the file at the first number; once the checksum was right, numbers that are not packed are read directly."""
        if self._is_checked and self._entry.compress_type == zipfile.ZIP_STORED:
            with self._file.open("rb") as direct:
                direct.seek(self._entry.header_offset + LENGTHS_AT)
                names = sum(struct.unpack("<HH", direct.read(4)))
                direct.seek(names + self._start, os.SEEK_CUR)
                yield direct
        else:
            with zipfile.ZipFile(self._file) as archive, archive.open(self._entry) as packed:
                packed.read(self._start)
                yield packed


def load_numpy(path: str | os.PathLike[str], remedy: str | None = None) -> Array | dict[str, Array]:
    """Load the array of a .npy file, or the arrays of a .npz file by name.

    Args:
        path: The file.
        remedy: What the message says to do if the file is damaged. None says to save it again.

    Returns:
        One array, or several by name.
    """
    with _opened(path, remedy) as loaded:
        return loaded if isinstance(loaded, np.ndarray) else dict(loaded)


def open_numpy(path: str | os.PathLike[str], *, most: int) -> Array | dict[str, Array | StoredArray]:
    """Load a file as `load_numpy`, but leave tables of numbers that take more than `most` bytes in a .npz file there.

    Args:
        path: The file.
        most: The size, in bytes, from which a table stays in the file.

    Returns:
        One array, or several by name.
    """
    with _opened(path) as loaded:
        if isinstance(loaded, np.ndarray):
            return loaded
        return {name: _stored(Path(path), loaded, name, most) or loaded[name] for name in loaded.files}


def _stored(file: Path, loaded: np.lib.npyio.NpzFile, name: str, most: int) -> StoredArray | None:
    """Return a table that may stay in the file; None for arrays that are small, or no table of numbers by rows."""
    assert loaded.zip is not None
    entries = {entry.filename: entry for entry in loaded.zip.infolist()}
    entry = entries.get(f"{name}.npy", entries.get(name))
    if entry is None or entry.file_size <= most:
        return None
    with loaded.zip.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            return None
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
        start = stream.tell()
    if len(shape) != 2 or by_columns or dtype.kind not in "iuf":
        return None
    if start + shape[0] * shape[1] * dtype.itemsize != entry.file_size:
        return None  # numpy says what is wrong
    return StoredArray(file, entry, start, (shape[0], shape[1]), dtype)


@contextmanager
def _opened(path: str | os.PathLike[str], remedy: str | None = None) -> Iterator[Array | np.lib.npyio.NpzFile]:
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file.")
    with _readable(file, remedy), file.open("rb") as stream:  # numpy leaves a damaged archive open
        _check_sizes(file)
        loaded: Array | np.lib.npyio.NpzFile = np.load(stream, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            yield loaded
        else:
            with loaded:
                yield loaded


@contextmanager
def _readable(file: Path, remedy: str | None = None) -> Iterator[None]:
    """Turn whatever a damaged file raises into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except DAMAGED as error:
        if "pickle" in str(error):
            remedy = remedy or "save it with numpy.savez, with labels as text or whole numbers"
            raise InputError(f"{file}: contains Python objects or is not a numpy file; {remedy}.") from error
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{file}: not a readable numpy file ({reason}); {remedy or 'save it again'}.") from error


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
