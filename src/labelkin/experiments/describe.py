"""Describe the objectives: a summary, what each needs, and its options."""

from inspect import Parameter, cleandoc, signature
from typing import Any, NamedTuple

from labelkin.experiments.spec import option_names
from labelkin.objectives import OBJECTIVES

# Arguments that `build` derives from data and taxonomy if they are not given.
GIVEN_BY_CONTEXT = ("taxonomy", "relation", "vectors", "embedding", "samples")


class ObjectiveSummary(NamedTuple):
    """What `labelkin objectives` prints about an objective."""

    name: str
    summary: str
    needs: list[str]  # derived from data and taxonomy if not given
    options: dict[str, Any]  # with their defaults


def describe_objectives() -> list[ObjectiveSummary]:
    """Describe all objectives."""
    return [_described(name) for name in OBJECTIVES]


def _described(name: str) -> ObjectiveSummary:
    known = signature(OBJECTIVES[name]).parameters
    options = [option for option in option_names(name) if option not in GIVEN_BY_CONTEXT]
    defaults = {o: None if known[o].default is Parameter.empty else known[o].default for o in options}
    needs = [need for need in GIVEN_BY_CONTEXT if need in known]
    return ObjectiveSummary(name, cleandoc(OBJECTIVES[name].__doc__ or "").partition("\n")[0], needs, defaults)
