"""Comparison plans: objectives, grids and seeds on one data set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from typing import Any, Self

from labelkin._checks import InputError, brief, check_choice, check_count, check_names, listed, near
from labelkin.data import PARTIAL
from labelkin.objectives import OBJECTIVES
from labelkin.runs import (
    RunSpec,
    accepted_options,
    check_relation_name,
    current_options,
    folder_name,
    label_for,
    run_id,
)
from labelkin.training import Settings

PROTOCOLS = ("clean", "as-published")
REFERENCE = "one-hot"
CROSSED = ("data", "backbone", "taxonomy", "seeds")  # a plan has a run for each combination of their values
UNFAIR = {"report": "auto or last", "evaluation": "eval"}  # the values that the clean protocol allows


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One row of a comparison: an objective with its options.

    Args:
        label: The name of the row.
        objective: A name in `labelkin.OBJECTIVES`.
        options: Keyword arguments of the objective.
        grid: Options with several values; the best values on validation data are chosen.
        training: Training settings of only this objective, for the protocol "as-published".
        partial: What this objective does with samples whose class is not known, as for `labelkin.data.load`: "use", "drop" or
            "none". None takes what `data_options` says.

    Example:
        >>> from labelkin.comparison import Arm
        >>> Arm(label="smooth", objective="label-smoothing", grid={"smoothing": [0.1, 0.2]}).points()
        [{'smoothing': 0.1}, {'smoothing': 0.2}]
    """

    label: str
    objective: str
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    partial: str | None = None

    def __post_init__(self) -> None:
        if self.partial is not None:
            check_choice(f"{self.label}: partial", self.partial, PARTIAL)
        for name in ("options", "grid"):
            object.__setattr__(self, name, current_options(self.objective, getattr(self, name)))

    def points(self) -> list[dict[str, Any]]:
        """Return the options of each point of the grid; without a grid, a list with the options."""
        names = list(self.grid)
        return [{**self.options, **dict(zip(names, values, strict=True))} for values in product(*self.grid.values())]


@dataclass(frozen=True)
class Planned:
    """A run of a plan.

    Args:
        label: The row of the comparison that it belongs to.
        spec: The configuration of the run.
        chosen: The names of the options that come from a grid.
        part: The name of its plan, if several plans are executed together.

    Example:
        >>> from labelkin.comparison import Plan
        >>> run = Plan.from_dict({"data": "digits", "objectives": ["one-hot"], "seeds": [3]}).runs()[0]
        >>> run.title
        'one-hot seed 3'
    """

    label: str
    spec: RunSpec
    chosen: tuple[str, ...] = ()
    part: str = ""

    @cached_property
    def id(self) -> str:
        """The id of the run. It is computed once, because hashing reads the data."""
        return run_id(self.spec)

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return folder_name(self.spec, self.id)

    @property
    def title(self) -> str:
        """The label with the values from a grid, the seed and the fold, such as `"label-embedding tau=3 seed 0"`."""
        fold = self.spec.data_options.get("fold")
        part = f"{self.part}: " if self.part else ""
        return f"{part}{self.point} seed {self.spec.settings.seed}{'' if fold is None else f' fold {fold}'}"

    @property
    def point(self) -> str:
        """The label with the values from a grid, such as `"label-embedding tau=3"`."""
        names = accepted_options(self.spec.objective, dict.fromkeys(self.chosen))
        return label_for(self.label, {name: self.spec.options[name] for name in names})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A comparison plan: every combination of data, backbones, taxonomies, objectives and seeds.

    The protocol "clean", the default, trains all objectives with the same settings, evaluates in eval mode, and reports the
    best epoch on validation data or the last epoch. "as-published" also allows the practices of some papers: training settings
    per objective, evaluation in training mode, and reporting the best epoch on the test set.

    Args:
        data: Names or paths for `labelkin.data.load`.
        backbone: Names for `labelkin.models.build`. None chooses one by the shape of the data.
        taxonomy: Names of shipped trees, files, or "wordnet". None uses the tree of the data, or builds one from them.
        data_options: Keyword arguments of `labelkin.data.load`.
        arms: The objectives with their options.
        seeds: One run per seed.
        folds: The number of folds for cross-validation of data without a test split: one run per seed and fold. None tests on
            one split.
        training: Fields of `labelkin.training.Settings`.
        protocol: "clean" or "as-published".
        reference: The label that the others are compared with.

    Example:
        >>> from labelkin.comparison import Plan
        >>> plan = Plan.from_dict({"data": "digits", "objectives": ["one-hot", "label-smoothing"], "seeds": [0, 1]})
        >>> [run.title for run in plan.runs()]
        ['one-hot seed 0', 'label-smoothing seed 0', 'one-hot seed 1', 'label-smoothing seed 1']
    """

    data: tuple[str, ...] = ("digits",)
    backbone: tuple[str | None, ...] = (None,)
    taxonomy: tuple[str | None, ...] = (None,)
    data_options: Mapping[str, Any] = field(default_factory=dict)
    arms: tuple[Arm, ...] = ()
    seeds: tuple[int, ...] = (0,)
    folds: int | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    protocol: str = "clean"
    reference: str | None = REFERENCE

    def __post_init__(self) -> None:
        check_choice("protocol", self.protocol, PROTOCOLS)
        check_names("objectives", [arm.label for arm in self.arms])
        for name in CROSSED:
            if not getattr(self, name):
                raise InputError(
                    f"{name}: expected at least one value, got an empty list; write one, or several to compare."
                )
        for seed in self.seeds:
            check_count("seed", seed, least=0)
        if self.folds is not None:
            check_count("folds", self.folds, least=2)
        if given := {"folds", "fold"} & set(self.data_options):
            raise InputError(
                f"data_options: a plan trains all folds; leave {listed(sorted(given))} out, and set `folds: K`."
            )
        for name in CROSSED:
            _check_once(name, getattr(self, name))
        for name, allowed in UNFAIR.items() if self.protocol == "clean" else ():
            if self.training.get(name, "auto") not in ("auto", *allowed.split(" or ")):
                raise InputError(
                    f"{name}: the clean protocol takes {allowed}, got {self.training[name]!r}; set `protocol: as-published`."
                )
        for arm in self.arms:
            self._check(arm)

    def _check(self, arm: Arm) -> None:
        if arm.training and self.protocol == "clean":
            raise InputError(
                f"{arm.label}: the clean protocol trains all objectives with the same settings; move `training` to the "
                "plan, or set `protocol: as-published`."
            )
        if "seed" in {**self.training, **arm.training}:
            raise InputError("training: a plan takes its seeds from `seeds`; leave `seed` out.")
        if arm.grid and not self.data_options.get("validation_fraction"):
            raise InputError(
                f"{arm.label}: {listed(list(arm.grid))} is chosen on a validation split, but there is none; set one, such as "
                "`data_options: {validation_fraction: 0.1}`."
            )
        for name, values in arm.grid.items():
            if not values:
                raise InputError(f"{arm.label}: the grid of {name!r} has no values.")
            _check_once(f"{arm.label}, the grid of {name!r}", values)
        for options in arm.points():
            check_relation_name(options)

    def runs(self) -> list[Planned]:
        """Return all runs, seed by seed, so that all objectives have early results."""
        settings = Settings.of(**self.training)
        return [
            Planned(
                arm.label,
                RunSpec(
                    data=data,
                    objective=arm.objective,
                    backbone=backbone,
                    taxonomy=taxonomy,
                    data_options={
                        **self.data_options,
                        **({} if arm.partial is None else {"partial": arm.partial}),
                        **fold,
                    },
                    options=options,
                    settings=replace(
                        Settings.of(**{**self.training, **arm.training}) if arm.training else settings, seed=seed
                    ),
                ),
                tuple(arm.grid),
            )
            for data, backbone, taxonomy, seed, fold, arm in product(
                self.data, self.backbone, self.taxonomy, self.seeds, self._folds(), self.arms
            )
            for options in arm.points()
        ]

    def _folds(self) -> list[dict[str, int]]:
        """Return the data options of each fold; without folds, a list with none."""
        return [{}] if self.folds is None else [{"folds": self.folds, "fold": fold} for fold in range(self.folds)]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build a plan from the values of a file. The error for an unknown key suggests similar ones."""
        known = [*(f.name for f in fields(cls) if f.name != "arms"), "objectives"]
        for name in values:
            if name not in known:
                if name in {f.name for f in fields(Settings)} - {"seed"}:
                    raise InputError(f"a plan has no key {name!r}; write it below `training:`.")
                raise InputError(
                    f"a plan has no key {name!r}; it takes {listed(known, limit=99)}.{near(str(name), known)}"
                )
        given = {name: value for name, value in values.items() if value is not None and name != "objectives"}
        if "seeds" in given and not isinstance(given["seeds"], (list, tuple)):
            raise InputError(
                f"seeds: expected a list such as [0, 1, 2], got {given['seeds']!r}; for one seed, write a list of one."
            )
        for name in CROSSED:
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
    """Refuse duplicates. 1 and 1.0 are the same: such a run would count twice."""
    if any(value in values[:place] for place, value in enumerate(values)):
        raise InputError(f"{what}: expected no duplicates, got {', '.join(map(str, values))}.")


def _arms(given: Any) -> list[Arm]:
    """Read objectives: None for all, a list of names, or names with options."""
    if given is None or given == "all":
        given = list(OBJECTIVES)
    if isinstance(given, str):
        given = [given]
    if isinstance(given, list):
        for entry in given:
            if isinstance(entry, Mapping):
                raise InputError(
                    f"objectives: expected names in a list, got {brief(entry)}; write objectives with options as keys: "
                    "`objectives: {one-hot: , label-embedding: {tau: 3}}`."
                )
        check_names("objectives", given)
        given = dict.fromkeys(given)
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"objectives: expected names, or names with options, got {given!r}.")
    return [_arm(str(label), options) for label, options in given.items()]


def _arm(label: str, given: Any) -> Arm:
    if not isinstance(given, (Mapping, type(None))):
        raise InputError(f"objectives: expected options of {label!r} as keys and values, got {given!r}.")
    options = dict(given or {})
    for name in options:
        if not isinstance(name, str):
            raise InputError(f"{label}: expected names of options, got {name!r}.")
    objective, training = options.pop("objective", label), options.pop("training", {})
    if not isinstance(objective, str) or not isinstance(training, Mapping):
        wrong, expected = (objective, "one name") if not isinstance(objective, str) else (training, "keys and values")
        which = "objective" if wrong is objective else "training"
        raise InputError(f"{label}: expected {expected} as `{which}`, got {wrong!r}.")
    partial = options.pop("partial", None)
    grid = {
        name: value["grid"] for name, value in options.items() if isinstance(value, Mapping) and set(value) == {"grid"}
    }
    for name, values in grid.items():
        if not isinstance(values, list):
            raise InputError(f"{label}: expected a list of values for the grid of {name!r}, got {values!r}.")
    fixed = {name: value for name, value in options.items() if name not in grid}
    return Arm(label=label, objective=objective, options=fixed, grid=grid, training=training, partial=partial)
