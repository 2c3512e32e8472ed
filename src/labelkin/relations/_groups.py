"""Class similarity from groups: all classes of a group are equally related, and others are not related."""

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
    """Compute the relation in which a class is related to the other classes of its group (000 Eq. 4).

    In a group of `n` classes, each of the other `n - 1` classes gets `1 / (n - 1)`.

    Args:
        groups: `{group: [class, ...]}` with classes by name or by position, or a list with the group of each class. Each
            class is in exactly one group.
        classes: The number of classes, or their names in order. None means the classes in `groups`: positions from 0, or
            names in the order of their appearance.
        structured: Return `GroupRows`, which stores one number per class, instead of the matrix.

    Returns:
        (K, K) float64 relation, symmetric; a class that is alone in its group is isolated. Or the same as `GroupRows`.

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
            raise InputError(f"groups: expected a list of classes for group {name!r}, got the string {members!r}.")
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
        raise InputError(
            f"groups: class {listed(missing)} is in no group; put a class without related classes in a separate group."
        )
    ids = {name: i for i, name in enumerate(groups)}
    return [ids[found[i]] for i in range(len(names))]


def _class_names(members: list[Any], classes: int | Sequence[str] | None) -> list[Any]:
    """Return the classes in order, by name if the groups use names, and otherwise by position."""
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
