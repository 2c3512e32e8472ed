"""The objectives in words: what each is, what it needs and what may be set."""

from inspect import Parameter, cleandoc, signature
from typing import Any, NamedTuple

from labelkin.experiments.spec import option_names
from labelkin.objectives import OBJECTIVES

# What `build` takes from data and taxonomy where it is not given.
GIVEN_BY_CONTEXT = ("taxonomy", "relation", "vectors", "embedding", "samples")


class ObjectiveSummary(NamedTuple):
    name: str
    summary: str
    needs: list[str]  # of the classes; follows from data and taxonomy where it is not given
    options: dict[str, Any]  # with their defaults


def describe_objectives() -> list[ObjectiveSummary]:
    return [_described(name) for name in OBJECTIVES]


def _described(name: str) -> ObjectiveSummary:
    known = signature(OBJECTIVES[name]).parameters
    options = [option for option in option_names(name) if option not in GIVEN_BY_CONTEXT]
    defaults = {o: None if known[o].default is Parameter.empty else known[o].default for o in options}
    needs = [need for need in GIVEN_BY_CONTEXT if need in known]
    return ObjectiveSummary(name, cleandoc(OBJECTIVES[name].__doc__ or "").partition("\n")[0], needs, defaults)
