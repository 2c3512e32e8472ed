"""Kin by group: all classes of a group are equally close, the others not at all."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from torch import Tensor

from labelkin._checks import InputError, listed, near
from labelkin.relations._matrices import count_classes
from labelkin.relations._structured import GroupRows

Groups = Mapping[Any, Sequence[str] | Sequence[int]] | Sequence[Hashable]


@overload
def groups(
    groups: Groups, *, classes: int | Sequence[str] | None = None, structured: Literal[False] = False
) -> Tensor: ...
@overload
def groups(groups: Groups, *, classes: int | Sequence[str] | None = None, structured: Literal[True]) -> GroupRows: ...
def groups(
    groups: Groups, *, classes: int | Sequence[str] | None = None, structured: bool = False
) -> Tensor | GroupRows:
    """`1/(n-1)` for each of the other `n-1` classes of the same group, 0 elsewhere (000 Eq. 4).

    `groups` is `{group: [class, ...]}` with the classes by name or by position, or a list with the group of each class.
    Every class is in exactly one group. `classes` (their number, or their names in order) says which classes there are;
    without it they are those listed: positions from 0 on, or names in the order of the listing.

    Returns (K, K) float64, entries in [0, 1], zero diagonal, symmetric; with `structured=True` the same as `GroupRows`,
    which holds one number a class. A class alone in its group is isolated: its row is zero.

    Example:
        >>> from labelkin import relations
        >>> relations.groups({"animal": ["cat", "dog"], "machine": ["car"]})
        tensor([[0., 1., 0.],
                [1., 0., 0.],
                [0., 0., 0.]], dtype=torch.float64)
    """
    membership = _by_group(groups, classes) if isinstance(groups, Mapping) else _by_class(groups, classes)
    rows = GroupRows(membership)
    return rows if structured else rows.dense()


def _by_class(groups: Any, classes: int | Sequence[str] | None) -> list[int]:
    ids = groups.tolist() if isinstance(groups, (Tensor, np.ndarray)) else list(groups)
    if any(not isinstance(i, Hashable) for i in ids):
        raise InputError(
            "groups: expected {group: [class, ...]} or a list with the group of each class, got a list of lists; "
            "give each group a name."
        )
    count = count_classes(len(ids) if classes is None else classes)
    if len(ids) != count:
        raise InputError(f"groups: expected the group of each of {count} classes, got {len(ids)}.")
    first_seen: dict[Hashable, int] = {}
    return [first_seen.setdefault(i, len(first_seen)) for i in ids]


def _by_group(groups: Mapping[Any, Any], classes: int | Sequence[str] | None) -> list[int]:
    groups = {
        name: members.tolist() if isinstance(members, (Tensor, np.ndarray)) else members
        for name, members in groups.items()
    }
    for name, members in groups.items():
        if isinstance(members, str):
            raise InputError(f"groups: expected a list of classes for group {name!r}, got the text {members!r}.")
        if not len(members):
            raise InputError(f"groups: group {name!r} is empty; give it a class or leave it out.")
    names = _class_names([member for members in groups.values() for member in members], classes)
    place = {name: i for i, name in enumerate(names)}
    found: dict[int, Any] = {}  # class -> its group
    for name, members in groups.items():
        for member in members:
            own = _position(member, place)
            if own in found:
                raise InputError(
                    f"groups: class {member!r} is in {found[own]!r} and again in {name!r}; "
                    "every class is in exactly one group."
                )
            found[own] = name
    missing = [names[i] for i in range(len(names)) if i not in found]
    if missing:
        raise InputError(f"groups: class {listed(missing)} is in no group; a class without kin is a group of its own.")
    ids = {name: i for i, name in enumerate(groups)}
    return [ids[found[i]] for i in range(len(names))]


def _class_names(members: list[Any], classes: int | Sequence[str] | None) -> list[Any]:
    """The classes in order, as the groups may call them: names, or else positions."""
    for member in members:
        if isinstance(member, bool) or not isinstance(member, (str, int, np.integer)):
            raise InputError(f"groups: expected class names or whole numbers, got {member!r}.")
    if classes is None and members and all(isinstance(m, str) for m in members):
        classes = list(dict.fromkeys(members))
    if classes is None:
        classes = max((int(m) for m in members if not isinstance(m, str)), default=-1) + 1
    count = count_classes(classes)
    return list(range(count)) if isinstance(classes, int) else list(classes)


def _position(member: Any, place: dict[Any, int]) -> int:
    if member in place:
        return place[member]
    if isinstance(member, str):
        hint = near(member, [name for name in place if isinstance(name, str)])
        raise InputError(f"groups: {member!r} is not among the {len(place)} classes.{hint}")
    if not 0 <= member < len(place):
        raise InputError(f"groups: expected class positions from 0 to {len(place) - 1}, got {member!r}.")
    return int(member)
