"""docs/reproduction.md: the papers' tables and figures, published against measured."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from labelkin.papers._assess import Conditions, Reproduction, assess, summary
from labelkin.papers._format import CLAIMS, HEADINGS, cells, claims, markdown_table
from labelkin.papers._measured import Run
from labelkin.papers._recipe import Part, Recipe, cost_of, recipe, recipe_ids
from labelkin.runs import Record, Results, current_options, describe_objectives

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


INTRODUCTION = """# The papers' tables, rerun

Written by `make docs` from `results/*.json`; no number here is typed by hand. `labelkin reproduce --list` says what each table
needs and costs, `labelkin reproduce 003-table2` reruns one.

"Within spread" means that the measured mean differs from the printed one by no more than both standard deviations together and
the rounding in print. A direction is a row's difference to its column's reference row; it is reproduced where the measured
difference, seed by seed, has the printed sign and its 95 % interval leaves out zero, and not settled where the interval holds
zero or one seed has none. Where runs were shorter than the paper's, or of another network, only directions are judged.
"""


def reproduction(found: Sequence[Results]) -> str:
    names = dict.fromkeys(name for results in found for name in results.recipes)
    sections = [_section(recipe(name), [results for results in found if name in results.recipes]) for name in names]
    if not sections:
        sections = ["## Nothing measured yet\n\nThere are no results of a recipe under `results/`."]
    return "\n".join([INTRODUCTION, "\n\n".join(sections), "", _rest(found)])


def _section(found: Recipe, files: Sequence[Results]) -> str:
    """A table or figure with the runs of all files that were made for it."""
    runs = [run for results in files for run in results.runs]
    matched = match(found, runs)
    published = any(run.settings.get("report") == "best-test" for run in runs)
    judged = assess(found, matched.runs, Conditions("as-published" if published else "clean", other=matched.other))
    lines = [
        f"## {found.id}: {found.title}",
        "",
        f"Paper {found.paper}, {found.printed.source}. {summary(judged)}",
        "",
        *_tables(judged),
        *_notes(judged),
        *(line for results in files for line in _made(results, judged.conditions.protocol)),
    ]
    if matched.further:
        lines.append(f"- {_further(matched.further)}")
    return "\n".join(lines)


def _tables(judged: Reproduction) -> list[str]:
    rows = [row for row, cell in zip(cells(judged), judged.cells, strict=True) if cell.measured is not None]
    told = [markdown_table(HEADINGS, rows), ""] if rows else []
    known = [line for line, claim in zip(claims(judged), judged.claims, strict=True) if claim.holds is not None]
    return [*told, *([markdown_table(CLAIMS, known), ""] if known else [])]


def _notes(judged: Reproduction) -> list[str]:
    found = judged.recipe
    unrun = sum(cell.measured is None and cell.published is not None for cell in judged.cells)
    told = [
        *(f"{column}: {words}." for column, words in judged.conditions.other.items()),
        *(f"Not the paper's: {words}." for words in found.departures),
        *([f"Printed numbers that were not measured: {unrun}."] if unrun else []),
    ]
    return [f"- {line}" for line in told]


def _made(results: Results, protocol: str) -> list[str]:
    """How the runs of a file came about, and what it lacks."""
    seeds, precision = sorted({run.seed for run in results.runs}), precision_of(results.runs)
    command = f" `{results.command}`" if results.command else ""
    told = (
        f"`results/{results.name}.json`: {len(results.runs)} runs, seeds {', '.join(map(str, seeds))}; {results.machine}, "
        f"{results.date}; protocol {protocol}{f'; {precision}' if precision else ''}.{command}"
    )
    return [f"- {told}", *(f"  - Missing: {words}" for words in results.missing)]


def _further(records: Sequence[object]) -> str:
    labels = sorted({str(getattr(record, "label", "")) for record in records})
    return f"Also in the file, without a cell in print: {', '.join(labels)}."


def _rest(found: Sequence[Results]) -> str:
    """Every table and figure, measured or not."""
    files = {
        name: [f"`results/{results.name}.json`" for results in found if name in results.recipes]
        for name in recipe_ids()
    }
    rows = [
        (name, recipe(name).title, ", ".join(files[name]) or _why_not(recipe(name)), cost_of(recipe(name)))
        for name in recipe_ids()
    ]
    heading = "## All tables and figures\n\nThe cost is that of the paper's own number of runs, an estimate."
    return f"{heading}\n\n{markdown_table(('id', 'what it is', 'measured', 'cost'), rows)}\n"


def _why_not(found: Recipe) -> str:
    reasons = dict.fromkeys(part.not_run for part in found.parts if part.not_run is not None)
    return "no" if found.runs or not reasons else f"no: {'; '.join(map(str, reasons))}"
