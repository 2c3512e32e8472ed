"""Sentences from files: UTF-8, a sentence a line, plain or .gz."""

import gzip
import zlib
from pathlib import Path

from labelkin._checks import InputError, near


def read_sentences(path: Path) -> list[str]:
    """The lines of a file without their ends; one that is empty, or not UTF-8, is named."""
    try:
        text = _bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}: expected UTF-8, got byte 0x{error.object[error.start]:02x} at byte offset {error.start} (line {place}); "
            "convert the file first."
        ) from None
    lines = [
        line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")
    ]  # no other character ends a line
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError(f"{path}: the file is empty; expected a sentence a line.")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise InputError(
                f"{path}, line {number}: expected a sentence, got an empty line; remove it (and its partner)."
            )
    return lines


def read_pairs(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """Two files whose lines belong together."""
    first, second = read_sentences(source), read_sentences(target)
    if len(first) != len(second):
        longer, shorter = (source, target) if len(first) > len(second) else (target, source)
        common = min(len(first), len(second))
        raise InputError(
            f"{longer}, line {common + 1}: has no partner, since {shorter} ends after {common} lines; "
            f"expected as many lines in both, got {len(first)} and {len(second)}."
        )
    return first, second


def at_hand(path: Path) -> Path | None:
    """The file itself, or packed beside its name."""
    packed = path.with_name(f"{path.name}.gz")
    return next((file for file in (path, packed) if file.is_file()), None)


def file_at(path: Path) -> Path:
    found = at_hand(path)
    if found is None:
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"there is no file {str(path)!r}, nor {path.name}.gz beside it.{near(path.name, siblings)}")
    return found


def _bytes(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a whole .gz file ({error}).") from error
