"""The constructor arguments that all objectives share, their checks, and their display in signatures and `repr`."""

import inspect
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypedDict

from labelkin._checks import InputError, check_choice
from labelkin.structure import Taxonomy

if TYPE_CHECKING:
    from labelkin.objectives._base import Objective

REDUCTIONS = ("mean", "sum", "none")
DIVISORS = ("weights", "samples")


class CommonShared(TypedDict, total=False):
    """Keyword arguments of every objective, without `ancestors`, which some objectives have as their own."""

    features: int | None
    expected_cost: float
    costs: Any
    class_weight: Any
    class_weight_divisor: str
    reduction: str
    ignore_index: int


class Shared(CommonShared, total=False):
    """Keyword arguments of every objective; a subclass passes them on as `**shared`. See `Objective`."""

    ancestors: float


class FlatShared(Shared, total=False):
    """Keyword arguments of every objective that has no taxonomy argument itself."""

    taxonomy: Taxonomy | None


ANNOTATIONS = {**CommonShared.__annotations__, **Shared.__annotations__, **FlatShared.__annotations__}
DEFAULTS: dict[str, Any] = {
    "features": None,
    "taxonomy": None,
    "ancestors": 0.0,
    "expected_cost": 0.0,
    "costs": None,
    "class_weight": None,
    "class_weight_divisor": "weights",
    "reduction": "mean",
    "ignore_index": -100,
}


def check_shared(name: str, reduction: str, whole_batch: str | None, divisor: str, ignore_index: Any) -> None:
    """Check the shared arguments of the objective `name`.

    `whole_batch` is the reason why its loss is not a mean over samples, or None if it is one.
    """
    check_choice("reduction", reduction, REDUCTIONS)
    check_choice("class_weight_divisor", divisor, DIVISORS)
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, Integral):
        raise InputError(f"ignore_index: expected a whole number, got {ignore_index!r}.")
    if reduction == "none" and whole_batch is not None:
        raise InputError(
            f"reduction: {name} has no loss for a single sample, because {whole_batch}; use 'mean' or 'sum' instead of 'none'."
        )


def full_signature(init: Callable[..., None]) -> inspect.Signature:
    """Return the signature of a constructor with the shared arguments in place of `**shared`."""
    _, *found = inspect.signature(init).parameters.values()
    own = [p for p in found if p.kind is not p.VAR_KEYWORD and not p.name.startswith("_")]
    given = {p.name for p in own}
    missing = (
        {} if len(own) == len(found) else {name: default for name, default in DEFAULTS.items() if name not in given}
    )
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=ANNOTATIONS[name])
        for name, default in missing.items()
    ]
    first = [p for p in own if p.kind is not p.KEYWORD_ONLY or p.name == "classes"]
    features = [p for p in (*own, *shared) if p.name == "features"]
    placed = {p.name for p in (*first, *features)}
    rest = [p for p in (*own, *shared) if p.name not in placed]
    return inspect.Signature([*first, *features, *rest])


def shown_options(objective: "Objective") -> str:
    """Return the constructor arguments of an objective for its `repr`, without shared arguments at their defaults."""
    shown = [f"classes={objective.num_classes}", f"features={objective.features}"]
    for name, parameter in inspect.signature(type(objective)).parameters.items():
        value = getattr(objective, name, None)
        if name in ("classes", "features") or not isinstance(value, int | float | str):
            continue
        if name not in DEFAULTS or not value == DEFAULTS[name] == parameter.default:
            shown.append(f"{name}={value!r}")
    if objective.class_weight is not None:
        shown.append(f"class_weight=({objective.num_classes},)")
    return ", ".join(shown)
