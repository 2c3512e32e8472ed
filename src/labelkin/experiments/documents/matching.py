"""Which cells of a published table recorded runs stand for: told by what was trained, not by what it was called."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from labelkin.experiments.compatibility import current_options
from labelkin.experiments.describe import describe_objectives
from labelkin.experiments.reproduce.recipe import Part, Recipe
from labelkin.experiments.reproduce.runs import Run
from labelkin.experiments.store import Record

SCALED = ("epochs", "milestones")  # may be a share of the paper's
DATA = {"label_noise": 0.0, "classes": None, "encoder": None}  # options that make other data


class Matched(NamedTuple):
    runs: dict[str, dict[str, list[Run]]]  # by column and row
    other: dict[str, str]  # by column: how its runs differ from the paper's
    further: list[Record]  # that stand for no cell


def match(recipe: Recipe, records: Iterable[Record]) -> Matched:
    defaults = {summary.name: summary.options for summary in describe_objectives()}
    found = Matched({}, {}, [])
    for record in records:
        places = [
            (part, row)
            for part in recipe.parts
            for row, options in part.plan.get("objectives", {}).items()
            if _is(record, part, options, defaults)
        ]
        for part, row in places:
            found.runs.setdefault(part.column, {}).setdefault(row, []).append(_run(record, row))
            if words := _differences(record, part):
                found.other[part.column] = words
        if not places:
            found.further.append(record)
    return found


def _is(record: Record, part: Part, options: Mapping[str, Any], defaults: Mapping[str, Mapping[str, Any]]) -> bool:
    plan, config = part.plan, record.config
    given = {name: value for name, value in options.items() if name != "objective"}
    known, asked, used = (
        current_options(record.objective, group)
        for group in (defaults.get(record.objective, {}), given, record.options)
    )
    return (
        options["objective"] == record.objective
        and record.data == plan["data"]
        and record.backbone in (plan["backbone"], part.substitute)
        and plan.get("taxonomy") in (None, config["taxonomy"])
        and _data(config["data_options"]) == _data(plan.get("data_options", {}))
        and {**known, **asked} == {**known, **used}
        and _trained_alike(record.settings, plan["training"])
    )


def _data(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options.get(name, default) for name, default in DATA.items()}


def _trained_alike(settings: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    return all(_plain(settings[name]) == _plain(value) for name, value in asked.items() if name not in SCALED)


def _plain(value: Any) -> Any:
    """Augmentations count in any order."""
    return sorted(value) if isinstance(value, (list, tuple)) else value


def _differences(record: Record, part: Part) -> str:
    told = [] if part.unlike is None else [part.unlike]
    if (epochs := record.settings["epochs"]) != part.epochs:
        told.append(f"{epochs} of the paper's {part.epochs} epochs")
    if record.backbone != part.plan["backbone"]:
        told.append(f"{record.backbone} from scratch in place of {part.plan['backbone']} with ImageNet weights")
    if (subset := record.config["data_options"].get("subset")) is not None:
        told.append(f"{subset:g} of the training samples")
    return ", ".join(told)


def _run(record: Record, row: str) -> Run:
    curve = tuple(line["test_accuracy"] for line in record.history())
    return Run(row, record.seed, record.final or {}, curve, (), record.seconds)


def precision_of(records: Sequence[Record]) -> str:
    """`"bf16-mixed precision"` where runs were not in full precision."""
    told = sorted({str(record.settings.get("precision", "32-true")) for record in records} - {"32-true"})
    return f"{', '.join(told)} precision" if told else ""
