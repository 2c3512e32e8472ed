"""Read pickles from untrusted sources: plain values and numpy arrays, without calling anything.

A pickle is a program that names functions and calls them. Here every name is refused except the few that numpy uses for
arrays, and these are replaced by inert records from this file, so numpy's own constructors are not called either.
"""

import io
import pickle
import struct
from typing import Any

import numpy as np

from labelkin._checks import LIBRARY_ERRORS, InputError

BROKEN: tuple[type[Exception], ...] = (*LIBRARY_ERRORS, pickle.UnpicklingError, struct.error)
PLAIN_KINDS = frozenset("biufcSU")  # numbers, booleans, bytes and text; never objects


def load(content: bytes, *, source: str) -> Any:
    """Return plain values (Python 2 text as bytes) and numpy arrays; `source` names the file in error messages."""
    try:
        return _finished(_Unpickler(io.BytesIO(content), encoding="bytes").load(), {})
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except BROKEN as error:  # a broken pickle can fail in any opcode
        reason = " ".join(str(error).split())
        raise InputError(f"{source}: not a readable pickle ({reason}); download the file again.") from error


class _Record:
    """The arguments and state of an object in the pickle, which are stored but never called."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def finished(self) -> Any:
        """Return the value that the record represents."""
        raise InputError("expected a value, got part of an array.")


class _Class(_Record):
    """`numpy.ndarray`, as an argument of `_reconstruct`."""


class _Array(_Record):
    """numpy's `_reconstruct(...)` with its state `(version, shape, dtype, is_fortran, bytes)`."""

    def finished(self) -> Any:
        _, shape, dtype, is_fortran, raw = self.state
        return _from_bytes(raw, dtype, shape, "F" if is_fortran else "C")


class _Buffer(_Record):
    """numpy's `_frombuffer(bytes, dtype, shape, order)`, as protocol 5 writes arrays."""

    def finished(self) -> Any:
        raw, dtype, shape, order = self.arguments
        return _from_bytes(raw, dtype, shape, as_text(order))


class _Dtype(_Record):
    """numpy's `dtype(code, ...)` with its state `(version, byte order, ...)`."""

    def plain(self) -> np.dtype[Any]:
        """Return the dtype; only numbers and text are allowed."""
        code = as_text(self.arguments[0])
        dtype = np.dtype(code) if code[:1] in PLAIN_KINDS and code[1:].isdigit() else None
        if dtype is None:
            raise InputError(f"expected an array of numbers or text, got {code!r}.")
        order = "|" if self.state is None else as_text(self.state[1])
        return dtype if order == "|" else dtype.newbyteorder("<" if order == "<" else ">")


class _Bytes(_Record):
    """`_codecs.encode(text, "latin1")` or `bytes()`, as Python 3 writes bytes in protocol 2."""

    def finished(self) -> bytes:
        text, encoding = self.arguments or ("", "latin1")
        if as_text(encoding) != "latin1" or not isinstance(text, str):
            raise InputError(f"expected the encoding 'latin1', got {encoding!r}.")
        return text.encode("latin1")


ADMITTED: dict[tuple[str, str], type[_Record]] = {
    ("numpy", "ndarray"): _Class,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Bytes,
    ("__builtin__", "bytes"): _Bytes,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _Buffer for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    """An unpickler that refuses every name that is not in `ADMITTED`."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ADMITTED[module, name]
        except KeyError:
            raise InputError(
                f"expected only numpy arrays and plain values, got {module}.{name}, which was not run; "
                "do not trust this file."
            ) from None


def _finished(value: Any, done: dict[int, Any]) -> Any:
    """Replace every record in a value by the value it represents; shared objects are replaced once."""
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, type):
        raise InputError("expected a value, got a class.")
    if isinstance(value, _Record):
        result = value.finished()
    elif isinstance(value, dict):
        result = {_finished(key, done): _finished(item, done) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        result = type(value)([_finished(item, done) for item in value])
    else:
        return value
    done[id(value)] = result
    return result


def _from_bytes(raw: Any, dtype: Any, shape: Any, order: str) -> Any:
    """Build an array from its bytes."""
    content = raw.finished() if isinstance(raw, _Bytes) else raw
    if not isinstance(dtype, _Dtype) or not isinstance(content, (bytes, bytearray)):
        raise InputError("expected an array of numbers or text, got an array of objects.")
    return np.frombuffer(content, dtype=dtype.plain()).reshape(shape, order="F" if order == "F" else "C").copy()


def as_text(value: Any) -> str:
    """Return a text of either Python: bytes of Python 2 are read as Latin-1."""
    return value.decode("latin1") if isinstance(value, bytes) else str(value)
