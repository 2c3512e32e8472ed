"""Option groups as dataclasses, and parsers of option values."""

import csv
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import typer

from labelkin._checks import InputError


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Expand each dataclass parameter of a command into one option per field."""
    own = signature(command).parameters
    groups: dict[str, Any] = {name: p.annotation for name, p in own.items() if is_dataclass(p.annotation)}
    plain = [p for name, p in own.items() if name not in groups]
    spread = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for group in groups.values()
        for field in fields(group)
    ]

    @wraps(command)
    def call(**given: Any) -> None:
        built = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**given, **built)

    call.__signature__ = Signature([*plain, *spread])  # type: ignore[attr-defined]
    return call


def first_option_besides(context: typer.Context, allowed: Collection[str]) -> str | None:
    """Return the first option on the command line that is not in `allowed`, as the user types it, or None."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in allowed and source is not None and source.name == "COMMANDLINE":
            return parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.opts[0].upper()
    return None


WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}


def words(text: str | None) -> list[str] | None:
    """Split `"a,b"` into its parts; quotes keep a part with a comma together, as in `'"owl, barn",b'`."""
    if text is None:
        return None
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return [part.strip() for part in parts if part.strip()]


def column_names(text: str | None) -> str | list[str] | None:
    """Return the column that `"a"` names, or those of `"a,b"`."""
    names = words(text)
    return names if names is not None and len(names) > 1 else text


def whole_numbers(argument: str, text: str) -> list[int]:
    """Parse `"0,1,2"` as whole numbers."""
    parts = words(text) or []
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise InputError(f"{argument}: expected whole numbers separated by commas, got {text!r}.") from None


def assignments(texts: Sequence[str], *, option: str = "--set") -> dict[str, dict[str, Any]]:
    """Parse `["label-embedding.tau=3"]` as `{"label-embedding": {"tau": 3}}`."""
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, written = text.partition("=")
        objective, dot, option_name = name.strip().rpartition(".")
        if not (equals and dot and objective and option_name):
            raise InputError(f"{option}: expected OBJECTIVE.OPTION=VALUE, such as label-embedding.tau=3, got {text!r}.")
        if option_name in options.setdefault(objective, {}):
            raise InputError(f"{option}: {objective}.{option_name} is given twice; remove one.")
        options[objective][option_name] = value(written.strip())
    return options


def grids(texts: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """Parse `["label-embedding.tau=1,2"]` as `{"label-embedding": {"tau": [1, 2]}}`."""
    return {
        objective: {name: [value(part) for part in words(str(written)) or []] for name, written in options.items()}
        for objective, options in assignments(texts, option="--grid").items()
    }


def seconds(argument: str, text: str | None) -> float | None:
    """Convert `"90s"`, `"10m"` or `"2h"` to seconds."""
    if text is None:
        return None
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        total = float(number) * UNITS[unit]
    except ValueError:
        total = -1.0
    if not 0 < total < float("inf"):
        raise InputError(f"--{argument}: expected a time such as 90s, 10m or 2h, got {text!r}.")
    return total


UNITS = {"s": 1, "m": 60, "h": 3600}


def pairs(argument: str, texts: Sequence[str]) -> dict[str, str]:
    """Parse `["crane=crane.n.04"]` as `{"crane": "crane.n.04"}`."""
    for text in texts:
        if "=" not in text:
            raise InputError(f"{argument}: expected NAME=VALUE, got {text!r}.")
    return dict(text.split("=", 1) for text in texts)


def value(text: str) -> Any:
    """Parse a whole number, a number, true, false or none; return other text unchanged."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
