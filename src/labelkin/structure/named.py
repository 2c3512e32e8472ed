"""Trees by what a person types: the name of a shipped one, or a file."""

from __future__ import annotations

import os
from pathlib import Path

from labelkin._checks import InputError, near
from labelkin.structure import catalogue
from labelkin.structure.taxonomy import Taxonomy


def load_tree(source: str | os.PathLike[str], *, others: tuple[str, ...] = ()) -> Taxonomy:
    """A tree of `catalogue.names()`, or of a file; `others` are names that the caller would have known."""
    if source in catalogue.names():
        return catalogue.taxonomy(str(source))
    if not Path(source).exists():
        known = [*catalogue.names(), *others]
        raise InputError(
            f"taxonomy: {os.fspath(source)!r} is neither a file nor one of {', '.join(known)}.{near(str(source), known)}"
        )
    return Taxonomy.load(source)


def read_paths(file: str | os.PathLike[str]) -> Taxonomy:
    """A tree from a text file with a line for each class: `animal/pet/cat`."""
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'}).") from error
    try:
        return Taxonomy.from_paths([line.strip() for line in lines if line.strip()])
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
