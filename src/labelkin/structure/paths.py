"""One path a class, `animal/pet/cat`, to a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from labelkin._checks import InputError
from labelkin.structure.build import Parts, breadth_first, free_name


def from_paths(paths: Iterable[str | Sequence[str]], *, sep: str) -> Parts:
    if not isinstance(sep, str) or not sep:
        raise InputError(f"sep: expected the string that separates the segments, got {sep!r}.")
    split = [] if isinstance(paths, str) else [_segments(path, sep) for path in paths]
    if not split:
        raise InputError(f"paths: expected a list with the path of each class, got {paths!r}.")
    nodes: dict[tuple[str, ...], None] = {}
    inner: set[tuple[str, ...]] = set()
    for path in split:
        if path in nodes and path not in inner:
            raise InputError(f"paths: duplicate path {sep.join(path)!r}; give the path of each class once.")
        above = [path[:length] for length in range(1, len(path))]
        inner.update(above)
        nodes.update(dict.fromkeys([*above, path]))
    for path in split:
        if path in inner:
            raise InputError(
                f"paths: {sep.join(path)!r} is a class, but other paths go on below it; a class is a leaf."
            )
    uses = Counter(node[-1] for node in nodes)
    names = [node[-1] if uses[node[-1]] == 1 else sep.join(node) for node in nodes]
    places = {node: place for place, node in enumerate(nodes)}
    parents = [-1, *(places[node[:-1]] + 1 if len(node) > 1 else 0 for node in nodes)]
    return breadth_first([free_name("root", names), *names], parents)


def _segments(path: str | Sequence[str], sep: str) -> tuple[str, ...]:
    segments = tuple(path.split(sep)) if isinstance(path, str) else tuple(path)
    for segment in segments:
        if not isinstance(segment, str) or not segment:
            raise InputError(
                f"paths: {path!r} holds the segment {segment!r}; every segment must be a non-empty string."
            )
    if not segments:
        raise InputError("paths: an empty path; every path needs at least the name of its class.")
    return segments
