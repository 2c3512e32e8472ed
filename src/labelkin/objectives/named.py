"""Relations by name, so that a run that is kept as text can ask for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from labelkin import relations
from labelkin._checks import InputError, near

if TYPE_CHECKING:
    from labelkin.objectives.context import Context

# What the data or the tree say; each with the working defaults of its function.
RELATIONS: dict[str, Callable[[Context], Any]] = {
    "tree": lambda context: context.kin(),
    "groups": lambda context: relations.groups(context.tree().parents[context.tree().leaves].tolist(), structured=True),
    "ordinal": lambda context: relations.ordinal(context.classes),
    "lda": lambda context: context.similarity(),
}


def resolved(options: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The options with a relation in place of its name: "tree"; "groups" of siblings; "ordinal", by class order; "lda"."""
    name = options.get("relation")
    if not isinstance(name, str):
        return dict(options)
    if name not in RELATIONS:
        raise InputError(
            f"relation: expected one of {', '.join(RELATIONS)}, or a .npy or .csv file of K x K numbers, got {name!r}."
            f"{near(name, RELATIONS)}"
        )
    return {**options, "relation": RELATIONS[name](context)}
