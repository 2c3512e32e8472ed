"""Run specifications: the configuration of a run as plain values, which its folder stores."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from inspect import Parameter, cleandoc, signature
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple, Self

from labelkin._checks import InputError, listed, near, plain
from labelkin.data import is_corpus
from labelkin.models import is_pretrained
from labelkin.objectives import OBJECTIVES, RELATIONS
from labelkin.runs._compatibility import FORMER_DEFAULTS, complete_settings, current_options, original_options
from labelkin.structure import Taxonomy
from labelkin.training import Settings

LARGEST_SEED = 2**63 - 1
# Options whose values are arrays, and the names and files that can be given instead.
ARRAY_OPTIONS = {
    "relation": f"{', '.join(RELATIONS)}, embedding:ENCODER, or a .npy or .csv file of K x K numbers",
    "costs": "a .csv or .npz file of costs by class name, or a .npy or .csv file of K x K numbers",
    "class_weight": "balanced, effective, or a .csv or .json file of weights by class name",
    "vectors": "an encoder (minilm, hf:NAME, st:NAME, a model's folder), or a .npy, .csv, .jsonl or .parquet file",
}


# What to do with values that a run cannot record.
IN_MEMORY = " For samples in memory, use labelkin.KinClassifier, or an objective in your own loop."
SAVED = " Save it (taxonomy.save('tree.json')) and give the file, so that the run records its tree."


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Data, backbone, objective and training settings of one run.

    Args:
        data: A name or path for `labelkin.data.load`, or a parallel corpus.
        objective: A name in `labelkin.OBJECTIVES`.
        backbone: A name for `labelkin.models.build`. None chooses one by the shape of the data.
        taxonomy: The name of a shipped tree, a file, or "wordnet". None uses the tree that the data come with; if they have
            none, a tree is built from the training data.
        settings: Training settings.
        data_options: Keyword arguments of `labelkin.data.load`.
        options: Keyword arguments of the objective.

    Example:
        >>> from labelkin.runs import RunSpec
        >>> RunSpec(data="digits", objective="label-smoothing", options={"smoothing": 0.2}).objective
        'label-smoothing'
    """

    data: str = "digits"
    objective: str = "one-hot"
    backbone: str | None = None
    taxonomy: str | None = None
    settings: Settings = field(default_factory=Settings)
    data_options: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("data", "taxonomy", "data_options", "options"):
            object.__setattr__(self, name, _as_text(getattr(self, name)))
        for name in ("data", "objective"):
            _check_name(name, getattr(self, name))
        for name in ("backbone", "taxonomy"):
            if getattr(self, name) is not None:
                _check_name(name, getattr(self, name), " or nothing for the default,")
        if self.settings.calibration and is_corpus(self.data):  # sentences are searched for, not decided
            object.__setattr__(self, "settings", replace(self.settings, calibration=0.0))
        for name in ("freeze", "dropout") if is_corpus(self.data) else ():
            if given := getattr(self.settings, name):
                raise InputError(f"{name}: applies to classifiers, not to translation, got {given}; leave it out.")
        if self.settings.preprocessing is None:
            chosen = "weights" if is_pretrained(self.backbone) else "data"
            object.__setattr__(self, "settings", replace(self.settings, preprocessing=chosen))
        if self.settings.seed > LARGEST_SEED:
            raise InputError(f"seed: expected a whole number from 0 to {LARGEST_SEED}, got {self.settings.seed}.")
        object.__setattr__(self, "options", current_options(self.objective, self.options))
        for group in (self.data_options, self.options):
            for name, value in group.items():
                _check_plain(name, value)
        if self.objective not in OBJECTIVES:
            known = ", ".join(OBJECTIVES)
            raise InputError(
                f"there is no objective {self.objective!r}.{near(self.objective, OBJECTIVES)} Known: {known}."
            )
        known_options = option_names(self.objective)
        object.__setattr__(self, "options", accepted_options(self.objective, self.options))
        for name in self.options:
            if name not in known_options:
                takes = f"it takes {listed(known_options, limit=99)}" if known_options else "it takes none"
                hint = near(name, known_options)
                raise InputError(f"the objective {self.objective!r} has no option {name!r}; {takes}.{hint}")

    def differs_in(self, other: Self) -> list[str]:
        """Describe the differences from another spec, such as `"epochs 20, not 10"`."""
        ours, theirs = _flat(self.as_dict()), _flat(other.as_dict())
        names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        return [f"{name} {theirs.get(name)!r}, not {ours.get(name)!r}" for name in names]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as config.json stores them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build a spec from the values of a config.json, also of an earlier version."""
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        if "options" in known and "objective" in known:
            known["options"] = options_then(known["objective"], known["options"], values.get("revision"))
        return cls(**{**known, "settings": Settings.of(**complete_settings(values["settings"]))})


def option_names(objective: str) -> list[str]:
    """List the options of an objective that a run may set."""
    return OBJECTIVES[objective].free_options()


def options_then(objective: str, options: Mapping[str, Any], revision: int | None) -> dict[str, Any]:
    """Return the options of a run of some revision, with its defaults where they differ from the current ones."""
    former = FORMER_DEFAULTS.get((objective, revision or 0), {})
    if not former or OBJECTIVES[objective].revision_of(options) == revision:
        return dict(options)
    return {**former, **options}


def accepted_options(objective: str, options: Mapping[str, Any], revision: int | None = None) -> dict[str, Any]:
    """Return options under the names that the objective accepts; earlier and later names are translated.

    Options of a run of an earlier `revision` have the defaults of that revision.
    """
    known = option_names(objective)
    accepted: dict[str, Any] = {}
    for name, value in options_then(objective, options, revision).items():
        spellings = (name, *current_options(objective, {name: value}), *original_options(objective, {name: value}))
        accepted[next((spelling for spelling in spellings if spelling in known), name)] = value
    return accepted


def check_relation_name(options: Mapping[str, Any]) -> None:
    """Refuse an unknown name of a relation, before any data are read."""
    relation = options.get("relation")
    if not isinstance(relation, str) or relation in RELATIONS or Path(relation).is_file():
        return
    if not (relation.startswith("embedding:") and relation != "embedding:"):
        raise InputError(
            f"relation: expected {ARRAY_OPTIONS['relation']}, got {relation!r}.{near(relation, RELATIONS)}"
        )


def check_options_are_used(options: Mapping[str, Mapping[str, Any]], objectives: Sequence[str]) -> None:
    """Refuse options for an objective that is not trained."""
    for name in options:
        if name not in objectives:
            raise InputError(
                f"options: {name!r} has options but is not trained; the objectives are "
                f"{listed(objectives, limit=99)}.{near(name, objectives)}"
            )


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lift settings and options to the top level."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat.update(value if isinstance(value, Mapping) else {name: value})
    return flat


def _check_name(argument: str, value: Any, other: str = "") -> None:
    """Refuse a value that is not a string; `other` names what else is possible."""
    if isinstance(value, str):
        return
    text = repr(value)
    told = text if len(text) <= 80 and "\n" not in text else f"a value of type {type(value).__name__}"
    hint = SAVED if isinstance(value, Taxonomy) else IN_MEMORY if hasattr(value, "shape") else ""
    raise InputError(f"{argument}: expected a name,{other} got {told}.{hint}")


def _as_text(value: Any) -> Any:
    """Convert paths and numpy numbers to values that JSON can store."""
    if isinstance(value, Mapping):
        return {name: _as_text(own) for name, own in value.items()}
    return os.fspath(value) if isinstance(value, os.PathLike) else plain(value)


def _check_plain(name: str, value: Any) -> None:
    """Refuse a value that JSON cannot store."""
    try:
        dumps(value)
    except TypeError:
        raise InputError(
            f"{name}: expected a number, a string or a list of them, because the run is stored; got {type(value).__name__}. "
            "Give the name of a file instead, or build the objective and train it with labelkin.training.Trainer."
        ) from None


# Arguments that `build` derives from data and taxonomy if they are not given.
GIVEN_BY_CONTEXT = ("taxonomy", "relation", "vectors", "embedding", "samples")


class ObjectiveSummary(NamedTuple):
    """The description of an objective that `labelkin objectives` prints."""

    name: str
    summary: str
    needs: list[str]  # derived from data and taxonomy if not given
    options: dict[str, Any]  # with their defaults


def describe_objectives() -> list[ObjectiveSummary]:
    """Describe all objectives."""
    return [_describe(name) for name in OBJECTIVES]


def _describe(name: str) -> ObjectiveSummary:
    known = signature(OBJECTIVES[name]).parameters
    options = [option for option in option_names(name) if option not in (*GIVEN_BY_CONTEXT, *ARRAY_OPTIONS)]
    defaults = {o: None if known[o].default is Parameter.empty else known[o].default for o in options}
    needs = [need for need in GIVEN_BY_CONTEXT if need in known]
    if "taxonomy" in needs and not OBJECTIVES[name].takes_nodes and known["taxonomy"].default is None:
        needs.remove("taxonomy")  # all objectives take one, for terms that are off by default
    return ObjectiveSummary(name, cleandoc(OBJECTIVES[name].__doc__ or "").partition("\n")[0], needs, defaults)
