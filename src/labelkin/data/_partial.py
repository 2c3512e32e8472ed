"""Samples whose class is not known, only a node above it: labels as paths from coarse to fine."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from labelkin._checks import InputError, counted
from labelkin.data._dataset import FileSplit, RawDataset, Split
from labelkin.structure import Taxonomy

BELOW = " > "  # between the names of a path
Path = tuple[str, ...]


def label_path(cells: Sequence[Any], columns: Sequence[str], where: str) -> str:
    """Return the label of a row with several label columns, coarse to fine; the finest ones may be empty.

    >>> label_path(["cat", "lion", None], ["family", "species", "breed"], "line 2")
    'cat > lion'
    """
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    depth = next((i for i, name in enumerate(names) if not name), len(names))
    if not depth:
        raise InputError(
            f"{where}: expected a label in column {columns[0]!r}, the coarsest of --label, got an empty cell; fill it, or name "
            "the columns from coarse to fine."
        )
    if any(names[depth:]):
        found = next(i for i in range(depth, len(names)) if names[i])
        raise InputError(
            f"{where}: expected a label in column {columns[depth]!r}, because the finer column {columns[found]!r} has one, got "
            "an empty cell."
        )
    if any(BELOW in name for name in names):
        raise InputError(f"{where}: expected labels without {BELOW!r}, which separates the levels, got {names}.")
    return BELOW.join(names[:depth])


def with_paths(found: RawDataset, paths: Sequence[Path]) -> RawDataset:
    """Build the taxonomy from the paths of the labels, and separate the samples whose label has others below it.

    Those of the training split become `partial`. Those of other splits are left out, because their class is not known.

    Args:
        found: A dataset with one class per path.
        paths: The path of each class; it may end at an inner node.

    Returns:
        The dataset, whose classes are the paths without others below them.
    """
    above = {path[:depth] for path in paths for depth in range(1, len(path))}
    classes = [k for k, path in enumerate(paths) if path not in above]
    inner = [k for k, path in enumerate(paths) if path in above]
    ends = [paths[k] for k in classes]
    taxonomy = Taxonomy.from_paths(ends) if len(ends) > 1 and max(map(len, ends)) > 1 else None
    names = tuple(path[-1] for path in ends) if taxonomy is None else taxonomy.classes
    if taxonomy is None or not inner:
        return found._replace(classes=names, taxonomy=taxonomy)
    place, node_place = (torch.full((len(paths),), -1) for _ in range(2))
    place[classes], node_place[inner] = torch.arange(len(classes)), torch.arange(len(inner))

    def kept(split: Split, where: torch.Tensor) -> Split:
        rows = split.take(torch.nonzero(where[split.targets] >= 0).flatten())
        return rows.with_targets(where[rows.targets])

    others: dict[str, Any] = {}
    for part in ("test", "val"):
        split: Split | None = getattr(found, part)
        others[part] = None if split is None else kept(split, place)
        left_out = 0 if split is None else int((place[split.targets] < 0).sum())
        if left_out:
            warnings.warn(
                f"{counted(left_out, f'{part} sample')} left out, because only a node above the class is known.",
                stacklevel=2,
            )
    partial = kept(found.train, node_place)
    return found._replace(
        classes=names,
        taxonomy=taxonomy,
        train=kept(found.train, place),
        partial=partial if len(partial) else None,
        partial_names=tuple(_name(taxonomy, paths[k]) for k in inner) if len(partial) else (),
        **others,
    )


def _name(taxonomy: Taxonomy, path: Path) -> str:
    """Return the name of an inner node, which is its whole path if others have the same last name."""
    whole = "/".join(path)
    return whole if whole in taxonomy.names else path[-1]


def restrict_partial(found: RawDataset, taxonomy: Taxonomy | None) -> RawDataset:
    """Keep only those samples of `partial` whose node is in a smaller taxonomy."""
    if found.partial is None:
        return found
    known = torch.tensor([taxonomy is not None and name in taxonomy.names for name in found.partial_names])
    rows = torch.nonzero(known[found.partial.targets]).flatten()
    if not len(rows):
        return found._replace(partial=None, partial_names=())
    return found._replace(partial=found.partial.take(rows))


def joined(first: Split, second: Split) -> Split:
    """Return the samples of two splits of the same kind, those of the second after those of the first."""
    targets = torch.cat([first.targets, second.targets])
    if isinstance(first, FileSplit) and isinstance(second, FileSplit):
        return FileSplit(paths=(*first.paths, *second.paths), targets=targets, form=first.form, on_error=first.on_error)
    assert not isinstance(first, FileSplit)
    assert not isinstance(second, FileSplit)
    return type(first)(torch.cat([first.inputs, second.inputs]), targets)
