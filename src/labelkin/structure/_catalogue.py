"""The class structures that ship with the package, and trees by name or file.

Classes come in their data set's own label order. `source` says where a structure is from, and which are ours.
"""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from labelkin._checks import InputError, listed, near
from labelkin.structure._taxonomy import Taxonomy


def names() -> tuple[str, ...]:
    """Everything there is, trees and orders alike."""
    return tuple(sorted(_files()))


def taxonomy(name: str) -> Taxonomy:
    """The tree of that name; a grouping is a tree of one level of groups."""
    entry = _entry(name, "tree", "an order of classes; call catalogue.order instead")
    return Taxonomy.from_nested(entry["tree"]).reorder(entry["classes"])


def groups(name: str) -> dict[str, tuple[str, ...]]:
    """The classes under each child of the root, in class order."""
    tree = taxonomy(name)
    tops = tree.level(1)
    return {
        tree.names[top]: tuple(label for label, above in zip(tree.classes, tops.tolist(), strict=True) if above == top)
        for top in tree.children[0].tolist()
    }


def order(name: str) -> tuple[str, ...]:
    """Classes that lie on a line, from one end to the other."""
    return tuple(_entry(name, "order", "a tree; call catalogue.taxonomy instead")["order"])


def source(name: str) -> str:
    """Where the structure is from."""
    return str(_entry(name, "source", "")["source"])


def _entry(name: str, part: str, otherwise: str) -> dict[str, Any]:
    if name not in _files():
        raise InputError(f"the catalogue has no {name!r}, only {listed(names(), limit=99)}.{near(name, names())}")
    entry: dict[str, Any] = json.loads(_files()[name].read_text(encoding="utf-8"))
    if part not in entry:
        raise InputError(f"{name!r} is {otherwise}.")
    return entry


@cache
def _files() -> dict[str, Traversable]:
    folder = files("labelkin.structure") / "catalogue"
    return {file.name.removesuffix(".json"): file for file in folder.iterdir() if file.name.endswith(".json")}


def load_tree(source: str | os.PathLike[str], *, others: tuple[str, ...] = ()) -> Taxonomy:
    """A tree of `names()`, or of a file; `others` are names that the caller would have known."""
    if source in names():
        return taxonomy(str(source))
    if not Path(source).exists():
        known = [*names(), *others]
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
