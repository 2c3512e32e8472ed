"""What is to be compared with what: a plan and the runs that it stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any, NamedTuple, Self

from labelkin._checks import InputError, check_choice, check_count, check_names, listed, near
from labelkin.experiments.identity import run_id, run_name
from labelkin.experiments.renames import current_options
from labelkin.experiments.spec import RunSpec, check_words
from labelkin.experiments.store import described
from labelkin.objectives import OBJECTIVES
from labelkin.training import Settings

PROTOCOLS = ("clean", "as-published")
REFERENCE = "one-hot"
UNFAIR = {"report": "auto or last", "evaluation": "eval"}  # what the clean protocol holds these settings to


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One row of the comparison: an objective with its options; those in `grid` have values to choose among."""

    label: str
    objective: str
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("options", "grid"):
            object.__setattr__(self, name, current_options(self.objective, getattr(self, name)))

    def points(self) -> list[dict[str, Any]]:
        """The options of each point of the grid; without one, the options alone."""
        names = list(self.grid)
        return [{**self.options, **dict(zip(names, values, strict=True))} for values in product(*self.grid.values())]


class Planned(NamedTuple):
    """A run of a plan."""

    label: str
    spec: RunSpec
    chosen: tuple[str, ...] = ()  # the options that a grid gave it

    @property
    def id(self) -> str:
        return run_id(self.spec)

    @property
    def name(self) -> str:
        return run_name(self.spec)

    @property
    def title(self) -> str:
        return f"{self.point} seed {self.spec.settings.seed}"

    @property
    def point(self) -> str:
        """The label with its values of a grid: `"label-embedding tau=3"`."""
        return described(self.label, {name: self.spec.options[name] for name in self.chosen})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Data x backbone x taxonomy x objectives x seeds under one protocol.

    `clean`, the default, gives every objective the same training, measures in eval mode, and reports the epoch chosen on
    validation data or the last. `as-published` also allows what papers did: training of an objective's own, evaluation in
    training mode, the best epoch on the test set.
    """

    data: tuple[str, ...] = ("digits",)
    backbone: tuple[str | None, ...] = (None,)
    taxonomy: tuple[str | None, ...] = (None,)
    data_options: Mapping[str, Any] = field(default_factory=dict)
    arms: tuple[Arm, ...] = ()
    seeds: tuple[int, ...] = (0,)
    training: Mapping[str, Any] = field(default_factory=dict)
    protocol: str = "clean"
    reference: str | None = REFERENCE

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_names("objectives", [arm.label for arm in self.arms])
        if not self.seeds:
            raise InputError("seeds: expected at least one.")
        for seed in self.seeds:
            check_count("seed", seed, least=0)
        for name in ("data", "backbone", "taxonomy", "seeds"):
            _check_once(name, getattr(self, name))
        for name, allowed in UNFAIR.items() if self.protocol == "clean" else ():
            if self.training.get(name, "auto") not in ("auto", *allowed.split(" or ")):
                raise InputError(
                    f"{name}: the clean protocol takes {allowed}, got {self.training[name]!r}; say `protocol: as-published`."
                )
        for arm in self.arms:
            self._check(arm)

    def _check(self, arm: Arm) -> None:
        if arm.training and self.protocol == "clean":
            raise InputError(
                f"{arm.label}: under the clean protocol all objectives are trained alike; move `training` to the plan, or say "
                "`protocol: as-published`."
            )
        if "seed" in {**self.training, **arm.training}:
            raise InputError("training: the seeds of a plan are listed under `seeds`; leave `seed` out.")
        if arm.grid and not self.data_options.get("validation_fraction"):
            raise InputError(
                f"{arm.label}: {listed(list(arm.grid))} is chosen on a validation split; give one, as "
                "`data_options: {validation_fraction: 0.1}`."
            )
        for name, values in arm.grid.items():
            if not values:
                raise InputError(f"{arm.label}: the grid of {name!r} has no values.")
            _check_once(f"{arm.label}, the grid of {name!r}", values)
        for options in arm.points():
            check_words(options)

    def runs(self) -> list[Planned]:
        """Every run, seed by seed, so that all objectives are known early."""
        settings = Settings.of(**self.training)
        return [
            Planned(
                arm.label,
                RunSpec(
                    data=data,
                    objective=arm.objective,
                    backbone=backbone,
                    taxonomy=taxonomy,
                    data_options=dict(self.data_options),
                    options=options,
                    settings=replace(
                        Settings.of(**{**self.training, **arm.training}) if arm.training else settings, seed=seed
                    ),
                ),
                tuple(arm.grid),
            )
            for data, backbone, taxonomy, seed, arm in product(
                self.data, self.backbone, self.taxonomy, self.seeds, self.arms
            )
            for options in arm.points()
        ]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """A plan from plain values, as a file has them; an unknown key is refused with its near matches."""
        known = [*(f.name for f in fields(cls) if f.name != "arms"), "objectives"]
        for name in values:
            if name not in known:
                raise InputError(
                    f"a plan has no key {name!r}; it takes {listed(known, limit=99)}.{near(str(name), known)}"
                )
        given = {name: value for name, value in values.items() if value is not None and name != "objectives"}
        for name in ("data", "backbone", "taxonomy", "seeds"):
            if name in given:
                given[name] = tuple(given[name]) if isinstance(given[name], (list, tuple)) else (given[name],)
        for name in ("data_options", "training"):
            if not isinstance(given.get(name, {}), Mapping):
                raise InputError(f"{name}: expected keys and values, got {given[name]!r}.")
        arms = tuple(_arms(values.get("objectives")))
        named = [arm.label for arm in arms]
        if (reference := given.get("reference")) is not None and reference not in named:
            raise InputError(
                f"reference: {reference!r} is not among the objectives {listed(named)}.{near(str(reference), named)}"
            )
        return cls(**given, arms=arms)


def _check_once(what: str, values: Sequence[Any]) -> None:
    """1 and 1.0 are the same: a run that is there twice would count as two."""
    if any(value in values[:place] for place, value in enumerate(values)):
        raise InputError(f"{what}: expected each once, got {', '.join(map(str, values))}.")


def _arms(given: Any) -> list[Arm]:
    """All objectives, a list of names, or names with options."""
    if given is None or given == "all":
        given = list(OBJECTIVES)
    if isinstance(given, str):
        given = [given]
    if isinstance(given, list):
        check_names("objectives", given)
        given = dict.fromkeys(given)
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"objectives: expected names, or names with options, got {given!r}.")
    return [_arm(str(label), options) for label, options in given.items()]


def _arm(label: str, given: Any) -> Arm:
    if not isinstance(given, (Mapping, type(None))):
        raise InputError(f"objectives: expected options of {label!r} as keys and values, got {given!r}.")
    options = dict(given or {})
    objective, training = options.pop("objective", label), options.pop("training", {})
    grid = {
        name: value["grid"] for name, value in options.items() if isinstance(value, Mapping) and set(value) == {"grid"}
    }
    for name, values in grid.items():
        if not isinstance(values, list):
            raise InputError(f"{label}: expected a list of values for the grid of {name!r}, got {values!r}.")
    fixed = {name: value for name, value in options.items() if name not in grid}
    return Arm(label=label, objective=objective, options=fixed, grid=grid, training=training)
