"""Relations between classes by name, for configurations stored as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from labelkin import relations
from labelkin._checks import InputError, near

if TYPE_CHECKING:
    from labelkin.objectives.context import Context

# Each entry computes a relation from the context with the defaults of its function.
RELATIONS: dict[str, Callable[[Context], Any]] = {
    "tree": lambda context: context.kin(),
    "groups": lambda context: relations.groups(context.tree().parents[context.tree().leaves].tolist(), structured=True),
    "ordinal": lambda context: relations.ordinal(context.classes),
    "lda": lambda context: context.similarity(),
}


def resolved(options: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the options with the name of a relation replaced by the relation itself.

    Args:
        options: Constructor arguments of an objective. `relation` may be "tree" (similarity in the taxonomy), "groups"
            (siblings in the taxonomy), "ordinal" (neighbors in class order) or "lda" (discriminant analysis of the data).
        context: The classes, taxonomy and data that the relation is computed from.

    >>> from labelkin import Context
    >>> resolved({"relation": "ordinal"}, Context(classes=("a", "b", "c")))["relation"].shape
    torch.Size([3, 3])
    """
    name = options.get("relation")
    if not isinstance(name, str):
        return dict(options)
    if name not in RELATIONS:
        raise InputError(
            f"relation: expected one of {', '.join(RELATIONS)}, or a .npy or .csv file of K x K numbers, got {name!r}."
            f"{near(name, RELATIONS)}"
        )
    return {**options, "relation": RELATIONS[name](context)}
