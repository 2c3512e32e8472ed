"""Explain the options of an objective from its docstring."""

import re
from inspect import cleandoc, getmro
from typing import Any, NamedTuple

from labelkin._checks import InputError, near
from labelkin.objectives import OBJECTIVES, Objective
from labelkin.runs._spec import ARRAY_OPTIONS, GIVEN_BY_CONTEXT, describe_objectives, option_names

ENTRY = re.compile(r"^    (\*{0,2}\w[\w, *]*): (.*)$")
REFERENCE = re.compile(r"^[Aa]s for `(\w+)`")


class OptionHelp(NamedTuple):
    """An option of an objective: its name, a description of its default, and what it does."""

    name: str
    default: str
    meaning: str


class ObjectiveHelp(NamedTuple):
    """What an objective does, and its options for --set."""

    name: str
    text: str
    options: list[OptionHelp]


def explain_objective(name: str) -> ObjectiveHelp:
    """Explain an objective and the options that a run may set."""
    if name not in OBJECTIVES:
        raise InputError(f"there is no objective {name!r}.{near(name, OBJECTIVES)} Known: {', '.join(OBJECTIVES)}.")
    own = OBJECTIVES[name]
    defaults = next(entry.options for entry in describe_objectives() if entry.name == name)
    text = cleandoc(own.__doc__ or "").partition("\nArgs:\n")[0].strip()
    options = [OptionHelp(o, _default(o, defaults), _meaning(o, own)) for o in option_names(name)]
    return ObjectiveHelp(name, text, options)


def _default(option: str, defaults: dict[str, Any]) -> str:
    if option in GIVEN_BY_CONTEXT:
        return "from the data and the taxonomy"
    value = defaults.get(option)
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _meaning(option: str, kind: type[Objective]) -> str:
    """Return the text of an option in the docstring of a class, of the class that it refers to, or of a base class."""
    known = {base.__name__: _arguments(base) for objective in OBJECTIVES.values() for base in getmro(objective)}
    found = next((known[base.__name__][option] for base in getmro(kind) if option in known[base.__name__]), "")
    seen: set[str] = set()
    while (match := REFERENCE.match(found)) and match[1] not in seen:
        seen.add(match[1])
        found = known.get(match[1], {}).get(option) or known["Objective"].get(option, found)
    if option in ARRAY_OPTIONS:
        found = f"{found.removesuffix('.')}. Here: {ARRAY_OPTIONS[option]}."
    return found


def _arguments(kind: type) -> dict[str, str]:
    """Return the entries below `Args:` in the docstring of a class."""
    _, _, below = cleandoc(kind.__doc__ or "").partition("Args:\n")
    entries: dict[str, str] = {}
    names: list[str] = []
    for line in below.splitlines():
        if not line.strip() or not line.startswith("    "):
            break
        if match := ENTRY.match(line):
            names = [name.strip() for name in match[1].split(",")]
            entries.update(dict.fromkeys(names, match[2]))
        else:
            entries.update({name: f"{entries[name]} {line.strip()}" for name in names})
    return entries
