"""Assign the runs of the results files to the tables and figures of the papers, and judge them."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labelkin._checks import InputError, counted
from labelkin.papers._assess import Conditions, Reproduction, assess
from labelkin.papers._claims import Checked
from labelkin.papers._measured import Run
from labelkin.papers._recipe import Part, Recipe, recipe
from labelkin.runs import Record, Results, current_options, describe_objectives

# Subfolders of results/: tables and figures that need no training, and claims that were checked on the weights or outputs of
# runs, which results files do not have.
UNTRAINED, CHECKED = "untrained", "checked"
SCALED = ("epochs", "milestones")  # settings in which a run may differ from the recipe
CLEAN, AS_PUBLISHED = "clean", "as-published"  # protocols
DATA = {"label_noise": 0.0, "classes": None, "encoder": None}  # data options in which it may not, with their defaults


class Matched(NamedTuple):
    """Runs assigned to the cells of a recipe."""

    runs: dict[str, dict[str, list[Run]]]  # by column and row
    other: dict[str, str]  # column -> how its runs differ from the paper's
    further: list[Record]  # runs that belong to no cell


def protocol_of(record: Record) -> str:
    """Return "as-published" for a run that reports its best test epoch or is evaluated in training mode, else "clean"."""
    settings = record.settings
    published = settings.get("report") == "best-test" or settings.get("evaluation") == "batch-statistics"
    return AS_PUBLISHED if published else CLEAN


def without_published(found: Iterable[Results]) -> list[Results]:
    """Return the results of the clean protocol; the test set influences the others, so no recommendation may rest on them."""
    clean = (one._replace(runs=[run for run in one.runs if protocol_of(run) == CLEAN]) for one in found)
    return [one for one in clean if one.runs]


def match(recipe: Recipe, records: Iterable[Record], protocol: str = "clean") -> Matched:
    """Assign runs of one protocol to the cells of a recipe by their configurations.

    The runs of a cell, and of a column if it can be, differ from the paper's in the same way, so that they can be compared:
    those nearest to the paper's count, and the others belong to no cell.
    """
    added = recipe.as_published if protocol == AS_PUBLISHED else {}
    defaults = {summary.name: summary.options for summary in describe_objectives()}
    placed: list[tuple[Record, Part, str]] = []
    found = Matched({}, {}, [])
    for record in records:
        places = [
            (record, part, row)
            for part in recipe.parts
            for row, options in part.plan.get("objectives", {}).items()
            if _belongs(record, part, {**options, **added.get(options["objective"], {})}, defaults)
        ]
        placed += places
        if not places:
            found.further.append(record)
    nearest = _nearest(placed)
    for record, part, row in placed:
        words = _differences(record, part)
        if _nearness(record, part) != nearest[part.column, row]:
            found.further.append(record._replace(label=f"{record.label} ({words})" if words else record.label))
            continue
        found.runs.setdefault(part.column, {}).setdefault(row, []).append(_run(record, row))
        if words:
            found.other[part.column] = words
    return found


Nearness = tuple[bool, float, float]


def _nearness(record: Record, part: Part) -> Nearness:
    """Return how near a run is to the paper's: the same weights, then the share of the data, then the epochs."""
    subset = record.config["data_options"].get("subset")
    same = record.backbone == part.plan["backbone"]
    return same, 1.0 if subset is None else float(subset), -abs(float(record.settings["epochs"]) - part.epochs)


def _nearest(placed: Iterable[tuple[Record, Part, str]]) -> dict[tuple[str, str], Nearness]:
    """Return the nearness of the runs that count in each cell: the largest that two rows of the column have.

    If no two rows have the same nearness, it is the largest of the row itself.
    """
    rows: dict[str, dict[Nearness, set[str]]] = {}
    for record, part, row in placed:
        rows.setdefault(part.column, {}).setdefault(_nearness(record, part), set()).add(row)
    nearest = {}
    for column, own in rows.items():
        shared = [near for near, names in own.items() if len(names) > 1]
        for row in set().union(*own.values()):
            nearest[column, row] = max(shared or [near for near, names in own.items() if row in names])
    return nearest


def _belongs(record: Record, part: Part, options: Mapping[str, Any], defaults: Mapping[str, Mapping[str, Any]]) -> bool:
    plan, config = part.plan, record.config
    given = {name: value for name, value in options.items() if name != "objective"}
    known, asked, used = (
        current_options(record.objective, group)
        for group in (defaults.get(record.objective, {}), given, record.options)
    )
    return (
        options["objective"] == record.objective
        and record.data == plan["data"]
        and record.backbone in (plan["backbone"], part.untrained_backbone, part.substitute)
        and plan.get("taxonomy") in (None, config["taxonomy"])
        and _data(config["data_options"]) == _data(plan.get("data_options", {}))
        and {**known, **asked} == {**known, **used}
        and _trained_alike(record.settings, {"calibration": 0.0, **plan["training"]})
    )


def _data(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options.get(name, default) for name, default in DATA.items()}


def _trained_alike(settings: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    return all(_plain(settings[name]) == _plain(value) for name, value in asked.items() if name not in SCALED)


def _plain(value: Any) -> Any:
    """Sort lists, because the order of augmentations does not matter."""
    return sorted(value) if isinstance(value, (list, tuple)) else value


def _differences(record: Record, part: Part) -> str:
    words = [] if part.unlike is None else [part.unlike]
    if (epochs := record.settings["epochs"]) != part.epochs:
        words.append(f"{epochs} of the paper's {counted(part.epochs, 'epoch')}")
    if record.backbone == part.untrained_backbone:
        words.append("random initial weights instead of ImageNet's")
    elif record.backbone != part.plan["backbone"]:
        words.append(f"{record.backbone} from scratch instead of {part.plan['backbone']} with ImageNet weights")
    if (subset := record.config["data_options"].get("subset")) is not None:
        words.append(f"{subset:g} of the training samples")
    return ", ".join(words)


def _run(record: Record, row: str) -> Run:
    curve = tuple(line["test_accuracy"] for line in record.history())
    return Run(row, record.seed, record.final or {}, curve, (), record.seconds)


class Untrained(NamedTuple):
    """The output of `labelkin reproduce ID --json` in a file: of a table or figure without training, or checked claims."""

    name: str  # of the file, with its subfolder of results/
    recipe: str
    machine: str
    date: str
    runs: dict[str, dict[str, list[Run]]]  # by column and row; empty if the results files have them
    claims: list[Checked]

    @property
    def trained(self) -> bool:
        """Whether the table or figure needs training, so that only the claims are taken from the file."""
        return self.name.startswith(f"{CHECKED}/")


def read_untrained(results: str | os.PathLike[str]) -> list[Untrained]:
    """Read the files in the subfolders `untrained` and `checked` of the folder of results, sorted by name."""
    folders = (Path(results) / name for name in (CHECKED, UNTRAINED))
    return [_read_untrained(path) for folder in folders for path in sorted(folder.glob("*.json"))]


def _read_untrained(path: Path) -> Untrained:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        runs: dict[str, dict[str, list[Run]]] = {}
        name = f"{path.parent.name}/{path.stem}"
        for cell in [] if path.parent.name == CHECKED else content["cells"]:
            values = {int(seed): float(value) for seed, value in cell["values"].items()}
            made = [Run(cell["row"], seed, {cell["measure"]: value}, ()) for seed, value in values.items()]
            runs.setdefault(cell["column"], {})[cell["row"]] = made
        claims = [Checked(**claim) for claim in content["claims"]]
        return Untrained(name, content["id"], content["machine"], content["date"], runs, claims)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not the output of `labelkin reproduce ID --json` ({error!r}).") from error


class Evidence(NamedTuple):
    """What was measured for a table or figure."""

    judged: Reproduction
    runs: Mapping[str, Mapping[str, Sequence[Run]]]  # by column and row
    further: list[Record]  # runs in the files that belong to no cell
    files: list[Results]
    untrained: list[Untrained]
    beside: "Evidence | None" = None  # of the protocol "as-published", if there are runs of both protocols


def evidence(found: Sequence[Results], untrained: Sequence[Untrained] = ()) -> dict[str, Evidence]:
    """Return what was measured for each table or figure that a file names."""
    names = [name for results in found for name in results.recipes] + [one.recipe for one in untrained]
    return {
        name: _evidence(
            recipe(name),
            [results for results in found if name in results.recipes],
            [one for one in untrained if one.recipe == name],
        )
        for name in dict.fromkeys(names)
    }


def _evidence(found: Recipe, files: list[Results], untrained: list[Untrained]) -> Evidence:
    """Return the evidence of the clean protocol, with that of the other one beside it, or the only one there is."""
    protocols = {protocol_of(run) for results in files for run in results.runs} or {CLEAN}
    first, *second = (_of_protocol(found, files, untrained, name) for name in sorted(protocols, reverse=True))
    return first._replace(beside=second[0]) if second else first


def _of_protocol(found: Recipe, files: list[Results], untrained: list[Untrained], protocol: str) -> Evidence:
    own = [results for results in files if any(protocol_of(run) == protocol for run in results.runs)]
    matched = match(found, [run for one in own for run in one.runs if protocol_of(run) == protocol], protocol)
    cells = {**matched.runs, **{column: rows for one in untrained for column, rows in one.runs.items()}}
    judged = assess(found, cells, Conditions(protocol, other=matched.other))
    if untrained:  # checks that need the data, the weights or the outputs were made when the file was written
        stored = [claim for one in untrained for claim in one.claims]
        if any(one.trained for one in untrained):
            pairs = zip(judged.claims, stored, strict=True)
            stored = [kept if computed.holds is None else computed for computed, kept in pairs]
        judged = judged._replace(claims=stored)
    return Evidence(judged, cells, matched.further, own, untrained)
