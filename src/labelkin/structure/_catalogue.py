"""The trees and orders that ship with the package, and trees by name or file.

Classes are in the label order of their data set. `source` returns the origin of a structure, and whether it is ours.
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
    """Return the names of all trees and orders.

    Returns:
        The names, sorted.

    Example:
        >>> from labelkin.structure import catalogue
        >>> "cifar100" in catalogue.names()
        True
    """
    return tuple(sorted(_files()))


def taxonomy(name: str) -> Taxonomy:
    """Return a tree by name.

    Args:
        name: One of `names()`. A grouping is a tree with one level of groups.

    Returns:
        The tree, with its classes in label order.

    Example:
        >>> from labelkin.structure import catalogue
        >>> catalogue.taxonomy("cifar100")
        Taxonomy(100 classes, 121 nodes, depth 2)
    """
    entry = _entry(name, "tree", "an order of classes; call catalogue.order instead")
    return Taxonomy.from_nested(entry["tree"]).reorder(entry["classes"])


def groups(name: str) -> dict[str, tuple[str, ...]]:
    """Return the classes below each child of the root.

    Args:
        name: The name of a tree.

    Returns:
        The classes of each group, in class order.

    Example:
        >>> from labelkin.structure import catalogue
        >>> len(catalogue.groups("cifar100"))
        20
    """
    tree = taxonomy(name)
    tops = tree.level(1)
    return {
        tree.names[top]: tuple(label for label, above in zip(tree.classes, tops.tolist(), strict=True) if above == top)
        for top in tree.children[0].tolist()
    }


def order(name: str) -> tuple[str, ...]:
    """Return the classes of an order, from one end to the other.

    Args:
        name: The name of an order.

    Returns:
        The names of the classes.

    Example:
        >>> from labelkin.structure import catalogue
        >>> catalogue.order("digits")[:3]
        ('0', '1', '2')
    """
    return tuple(_entry(name, "order", "a tree; call catalogue.taxonomy instead")["order"])


def source(name: str) -> str:
    """Return where a structure comes from.

    Args:
        name: One of `names()`.

    Returns:
        A short text.

    Example:
        >>> from labelkin.structure import catalogue
        >>> bool(catalogue.source("digits"))
        True
    """
    return str(_entry(name, "source", "")["source"])


def _entry(name: str, part: str, otherwise: str) -> dict[str, Any]:
    if name not in _files():
        raise InputError(
            f"there is no built-in tree or order {name!r}, only {listed(names(), limit=99)}.{near(name, names())}"
        )
    entry: dict[str, Any] = json.loads(_files()[name].read_text(encoding="utf-8"))
    if part not in entry:
        raise InputError(f"{name!r} is {otherwise}.")
    return entry


@cache
def _files() -> dict[str, Traversable]:
    folder = files("labelkin.structure") / "catalogue"
    return {file.name.removesuffix(".json"): file for file in folder.iterdir() if file.name.endswith(".json")}


def load_tree(source: str | os.PathLike[str], *, others: tuple[str, ...] = ()) -> Taxonomy:
    """Return the tree of that name, or read it from a file; `others` are further names that an error message lists."""
    if source in names():
        return taxonomy(str(source))
    if not Path(source).exists():
        known = [*names(), *others]
        raise InputError(
            f"taxonomy: {os.fspath(source)!r} is neither a file nor one of {', '.join(known)}.{near(str(source), known)}"
        )
    return Taxonomy.load(source)


def read_paths(file: str | os.PathLike[str]) -> Taxonomy:
    """Read a tree from a text file with one path per class, such as `animal/pet/cat`."""
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'}).") from error
    try:
        return Taxonomy.from_paths([line.strip() for line in lines if line.strip()])
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
