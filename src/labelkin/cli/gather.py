"""Options that several commands share are the fields of a dataclass: said once, and handed over together."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any


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
