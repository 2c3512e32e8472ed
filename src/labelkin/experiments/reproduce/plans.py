"""A part of a recipe as a plan: epochs scaled, rows, seeds and protocol chosen."""

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from labelkin.experiments.plan import Plan
from labelkin.experiments.reproduce.recipe import Part, Recipe, merged


class Wanted(NamedTuple):
    """How a recipe is to be run."""

    seeds: int | None = None  # how many; None: at most three of the recipe's
    scale: float = 1.0
    subset: float | None = None
    protocol: str = "clean"
    columns: Sequence[str] | None = None  # those whose names hold one of these
    rows: Sequence[str] | None = None
    precision: str = "32-true"
    backbone: str | None = None  # in place of the paper's


def plan_for(recipe: Recipe, part: Part, wanted: Wanted, *, backbone: str) -> Plan | None:
    """None where none of the part's rows is wanted."""
    added = recipe.as_published if wanted.protocol == "as-published" else {}
    values = merged(part.plan, {"training": {**added.get("training", {}), "precision": wanted.precision}})
    values["training"] = scaled(values["training"], wanted.scale)
    known = values["objectives"]
    rows = {label: given for label, given in known.items() if asked_for(label, wanted.rows, known)}
    if not rows:
        return None
    values["objectives"] = {label: {**given, **added.get(given["objective"], {})} for label, given in rows.items()}
    if values["reference"] not in rows:
        del values["reference"]
    if wanted.subset is not None:
        values["data_options"] = {**values.get("data_options", {}), "subset": wanted.subset}
    chosen = {"backbone": backbone, "seeds": list(seeds_of(recipe, wanted.seeds)), "protocol": wanted.protocol}
    return Plan.from_dict({**values, **chosen})


def asked_for(name: str, words: Sequence[str] | None, names: Collection[str]) -> bool:
    """Whether a word is the name or, where it is none of the names, a part of it: "CIFAR-10" does not mean CIFAR-100."""
    return words is None or any(word == name or (word in name and word not in names) for word in words)


def seeds_of(recipe: Recipe, count: int | None) -> tuple[int, ...]:
    """The first of the paper's seeds, and further ones from 0 on where more are asked for."""
    if count is None:
        return recipe.seeds[:3]
    further = [seed for seed in range(count + len(recipe.seeds)) if seed not in recipe.seeds]
    return (*recipe.seeds, *further)[:count]


def scaled(training: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """Epochs and milestones times `scale`, at least one epoch; a milestone that falls on the end is dropped."""
    if scale == 1.0:
        return dict(training)
    epochs = max(1, round(scale * training["epochs"]))
    changed = {**training, "epochs": epochs}
    if "milestones" in training:
        places = {max(1, round(scale * epoch)) for epoch in training["milestones"]}
        changed["milestones"] = sorted(place for place in places if place < epochs)
    return changed


def backbone_for(part: Part, wanted: Wanted) -> tuple[str | None, str | None]:
    """The backbone to train and, where it is not the paper's, what was put in its place; no backbone, and why."""
    name = str(part.plan["backbone"])
    if wanted.backbone not in (None, name):
        return wanted.backbone, f"{wanted.backbone} in place of {name}"
    if not name.startswith("timm:") or find_spec("timm") is not None:
        return name, part.unlike
    if part.substitute is None:
        return None, f"{name} needs timm, which is not installed"
    return part.substitute, f"{part.substitute} from scratch in place of {name} with ImageNet weights"
