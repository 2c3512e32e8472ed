"""Former names of objectives' options, which plans and recorded runs may still use. Ids are computed on these names."""

from collections.abc import Mapping
from typing import Any

from labelkin._checks import InputError

# By objective: each former name with the name today.
RENAMED: dict[str, dict[str, str]] = {
    "label-embedding": {"weights": "preset"},
    "compressed-label-embedding": {"weights": "preset"},
}


def current_options(objective: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options under the names of today."""
    names = RENAMED.get(objective, {})
    for former, name in names.items():
        if former in options and name in options:
            raise InputError(
                f"{former}: this is the former name of {name!r}, and {objective!r} got both; give {name!r} alone."
            )
    return {names.get(name, name): value for name, value in options.items()}


def former_options(objective: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options under the names that ids are computed on, so that a rename changes no id."""
    former = {name: old for old, name in RENAMED.get(objective, {}).items()}
    return {former.get(name, name): value for name, value in options.items()}
