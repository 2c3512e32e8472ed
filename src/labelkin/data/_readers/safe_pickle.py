"""Pickles from strangers: plain values and numpy arrays come out, nothing is ever called.

A pickle is a program that names functions and calls them. Here every name is refused but the few that numpy's arrays
are written with, and those stand for inert records of this file: numpy's own constructors do not run either.
"""

import io
import pickle
from typing import Any

import numpy as np

from labelkin._checks import InputError

PLAIN_KINDS = frozenset("biufcSU")  # numbers, truth values, bytes and text; never objects


def load(content: bytes, *, source: str) -> Any:
    """Plain values (text of Python 2 as bytes) and numpy arrays; `source` is what an error calls the file."""
    try:
        return _finished(_Unpickler(io.BytesIO(content), encoding="bytes").load(), {})
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except Exception as error:  # a broken pickle can fail in any opcode
        reason = " ".join(str(error).split())
        raise InputError(f"{source}: not a readable pickle ({reason}); fetch the file again.") from error


class _Record:
    """What the pickle said about an object, kept and not acted on."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def finished(self) -> Any:
        raise InputError("holds a piece of an array where a value was expected.")


class _Class(_Record):
    """numpy.ndarray, as an argument of the next."""


class _Array(_Record):
    """numpy's `_reconstruct(...)` with its state `(version, shape, dtype, is_fortran, bytes)`."""

    def finished(self) -> Any:
        _, shape, dtype, is_fortran, raw = self.state
        return _from_bytes(raw, dtype, shape, "F" if is_fortran else "C")


class _Buffer(_Record):
    """numpy's `_frombuffer(bytes, dtype, shape, order)`, as protocol 5 writes arrays."""

    def finished(self) -> Any:
        raw, dtype, shape, order = self.arguments
        return _from_bytes(raw, dtype, shape, _text(order))


class _Dtype(_Record):
    """numpy's `dtype(code, ...)` with its state `(version, byte order, ...)`."""

    def plain(self) -> np.dtype[Any]:
        code = _text(self.arguments[0])
        dtype = np.dtype(code) if code[:1] in PLAIN_KINDS and code[1:].isdigit() else None
        if dtype is None:
            raise InputError(f"holds an array of {code!r}, expected numbers or text.")
        order = "|" if self.state is None else _text(self.state[1])
        return dtype if order == "|" else dtype.newbyteorder("<" if order == "<" else ">")


class _Bytes(_Record):
    """`_codecs.encode(text, "latin1")` or `bytes()`, as Python 3 writes bytes in protocol 2."""

    def finished(self) -> bytes:
        text, encoding = self.arguments or ("", "latin1")
        if _text(encoding) != "latin1" or not isinstance(text, str):
            raise InputError(f"encodes by {encoding!r}, expected 'latin1'.")
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
    def find_class(self, module: str, name: str) -> Any:
        try:
            return ADMITTED[module, name]
        except KeyError:
            raise InputError(
                f"asks for {module}.{name}, expected numpy arrays and plain values alone; nothing of it was run: "
                "do not trust this file."
            ) from None


def _finished(value: Any, done: dict[int, Any]) -> Any:
    """The value with every record in it turned into what it stands for; what occurs twice is turned once."""
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, type):
        raise InputError("holds a class where a value was expected.")
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
    content = raw.finished() if isinstance(raw, _Bytes) else raw
    if not isinstance(dtype, _Dtype) or not isinstance(content, (bytes, bytearray)):
        raise InputError("holds an array of objects, expected numbers or text.")
    return np.frombuffer(content, dtype=dtype.plain()).reshape(shape, order="F" if order == "F" else "C").copy()


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)
