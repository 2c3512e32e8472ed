"""Shared options as dataclasses, and parsing of option values."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import typer

from labelkin._checks import InputError


def gathered(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are dataclasses become an option for each of their fields."""
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
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**given, **made)

    call.__signature__ = Signature([*plain, *spread])  # type: ignore[attr-defined]
    return call


def typed_besides(context: typer.Context, allowed: Collection[str]) -> str | None:
    """The first option that was given and is not among the parameters allowed, as it is typed; None without one."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in allowed and source is not None and source.name == "COMMANDLINE":
            return parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.opts[0].upper()
    return None


WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}


def words(text: str | None) -> list[str] | None:
    """`"a,b"` to its parts."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def whole_numbers(argument: str, text: str) -> list[int]:
    """`"0,1,2"` to whole numbers."""
    parts = words(text) or []
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise InputError(f"{argument}: expected whole numbers with commas between them, got {text!r}.") from None


def assignments(texts: Sequence[str], *, option: str = "--set") -> dict[str, dict[str, Any]]:
    """`["label-embedding.tau=3"]` to `{"label-embedding": {"tau": 3}}`."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, written = text.partition("=")
        objective, dot, set_to = name.strip().rpartition(".")
        if not (equals and dot and objective and set_to):
            raise InputError(f"{option}: expected OBJECTIVE.OPTION=VALUE, as label-embedding.tau=3, got {text!r}.")
        if set_to in found.setdefault(objective, {}):
            raise InputError(f"{option}: {objective}.{set_to} is given twice; leave one out.")
        found[objective][set_to] = value(written.strip())
    return found


def grids(texts: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """`["label-embedding.tau=1,2"]` to `{"label-embedding": {"tau": [1, 2]}}`."""
    return {
        objective: {name: [value(part) for part in words(str(written)) or []] for name, written in options.items()}
        for objective, options in assignments(texts, option="--grid").items()
    }


def seconds(argument: str, text: str | None) -> float | None:
    """`"90s"`, `"10m"`, `"2h"` to seconds."""
    if text is None:
        return None
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        found = float(number) * UNITS[unit]
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise InputError(f"--{argument}: expected a time such as 90s, 10m or 2h, got {text!r}.")
    return found


UNITS = {"s": 1, "m": 60, "h": 3600}


def pairs(argument: str, texts: Sequence[str]) -> dict[str, str]:
    """`["crane=crane.n.04"]` to `{"crane": "crane.n.04"}`."""
    for text in texts:
        if "=" not in text:
            raise InputError(f"{argument}: expected NAME=VALUE, got {text!r}.")
    return dict(text.split("=", 1) for text in texts)


def value(text: str) -> Any:
    """A whole number, a number, true, false, none, or the text itself."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
