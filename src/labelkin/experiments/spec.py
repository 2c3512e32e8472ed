"""What a run is asked to be, as plain values: what its folder keeps and what it is rebuilt from."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from json import dumps
from pathlib import Path
from typing import Any, Self

from labelkin._checks import InputError, listed, near, plain
from labelkin.experiments.renames import current_options
from labelkin.objectives import OBJECTIVES
from labelkin.objectives.named import RELATIONS
from labelkin.training import Settings

LARGEST_SEED = 2**63 - 1
# Options that are arrays, and the words and files that stand for them.
WORDS = {
    "relation": f"{', '.join(RELATIONS)}, embedding:ENCODER, or a .npy or .csv file of K x K numbers",
    "vectors": "an encoder (minilm, hf:NAME, st:NAME, a model's folder), or a .npy, .csv, .jsonl or .parquet file",
}


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Data, backbone, objective and training of one run.

    `taxonomy` is the name of a shipped tree, a file, "wordnet", or None for the data's own; where there is none at all a
    tree is built from the data. `data_options` are those of `labelkin.data.load`, `options` those of the objective.
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
        object.__setattr__(self, "options", current_options(self.objective, self.options))
        _check_plain("taxonomy", self.taxonomy)
        if self.settings.seed > LARGEST_SEED:
            raise InputError(f"seed: expected a whole number from 0 to {LARGEST_SEED}, got {self.settings.seed}.")
        for group in (self.data_options, self.options):
            for name, value in group.items():
                _check_plain(name, value)
        if self.objective not in OBJECTIVES:
            known = ", ".join(OBJECTIVES)
            raise InputError(
                f"there is no objective {self.objective!r}.{near(self.objective, OBJECTIVES)} Known: {known}."
            )
        known_options = option_names(self.objective)
        for name in self.options:
            if name not in known_options:
                takes = f"it takes {listed(known_options, limit=99)}" if known_options else "it takes none"
                hint = near(name, known_options)
                raise InputError(f"the objective {self.objective!r} has no option {name!r}; {takes}.{hint}")

    def differs_in(self, other: Self) -> list[str]:
        """What another spec has otherwise, in words: `"epochs 20, not 10"`."""
        ours, theirs = _flat(self.as_dict()), _flat(other.as_dict())
        names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        return [f"{name} {theirs.get(name)!r}, not {ours.get(name)!r}" for name in names]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        return cls(**{**known, "settings": Settings.of(**values["settings"])})


def option_names(objective: str) -> list[str]:
    """The options of an objective that a run may set."""
    return OBJECTIVES[objective].free_options()


def check_words(options: Mapping[str, Any]) -> None:
    """Refuse a relation by a name that there is not, which needs no data to be seen."""
    relation = options.get("relation")
    if not isinstance(relation, str) or relation in RELATIONS or Path(relation).is_file():
        return
    if not (relation.startswith("embedding:") and relation != "embedding:"):
        raise InputError(f"relation: expected {WORDS['relation']}, got {relation!r}.{near(relation, RELATIONS)}")


def check_chosen(options: Mapping[str, Mapping[str, Any]], objectives: Sequence[str]) -> None:
    """Refuse options for an objective that is not among those trained."""
    for name in options:
        if name not in objectives:
            raise InputError(
                f"options are given for {name!r}, which is not among the objectives trained: "
                f"{listed(objectives, limit=99)}.{near(name, objectives)}"
            )


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings and options beside the rest, under their own names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat.update(value if isinstance(value, Mapping) else {name: value})
    return flat


def _as_text(value: Any) -> Any:
    """Paths and numpy's numbers as what a file holds of them."""
    if isinstance(value, Mapping):
        return {name: _as_text(own) for name, own in value.items()}
    return os.fspath(value) if isinstance(value, os.PathLike) else plain(value)


def _check_plain(name: str, value: Any) -> None:
    """A run is kept as text and compared with others, so what it is made of must be text too."""
    try:
        dumps(value)
    except TypeError:
        raise InputError(
            f"{name}: a recorded run takes numbers, words and lists of them, got {type(value).__name__}; name a file that "
            "holds it, or build the objective yourself and train it with labelkin.training.Trainer."
        ) from None
