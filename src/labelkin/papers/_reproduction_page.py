"""Generate docs/reproduction.md: published and measured numbers of the papers' tables and figures."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from labelkin._checks import counted
from labelkin.papers._assess import Conditions, Reproduction, assess, summary
from labelkin.papers._format import CLAIMS, HEADINGS, cell_rows, claim_rows, markdown_table
from labelkin.papers._measured import Run
from labelkin.papers._recipe import Part, Recipe, cost_of, recipe, recipe_ids
from labelkin.runs import Record, Results, current_options, describe_objectives

SCALED = ("epochs", "milestones")  # settings in which a run may differ from the recipe
DATA = {"label_noise": 0.0, "classes": None, "encoder": None}  # data options in which it may not, with their defaults


class Matched(NamedTuple):
    """Runs assigned to the cells of a recipe."""

    runs: dict[str, dict[str, list[Run]]]  # by column and row
    other: dict[str, str]  # column -> how its runs differ from the paper's
    further: list[Record]  # runs that belong to no cell


def match(recipe: Recipe, records: Iterable[Record]) -> Matched:
    """Assign runs to the cells of a recipe by their configurations."""
    defaults = {summary.name: summary.options for summary in describe_objectives()}
    found = Matched({}, {}, [])
    for record in records:
        places = [
            (part, row)
            for part in recipe.parts
            for row, options in part.plan.get("objectives", {}).items()
            if _belongs(record, part, options, defaults)
        ]
        for part, row in places:
            found.runs.setdefault(part.column, {}).setdefault(row, []).append(_run(record, row))
            if words := _differences(record, part):
                found.other[part.column] = words
        if not places:
            found.further.append(record)
    return found


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
        and record.backbone in (plan["backbone"], part.substitute)
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
    if record.backbone != part.plan["backbone"]:
        words.append(f"{record.backbone} from scratch instead of {part.plan['backbone']} with ImageNet weights")
    if (subset := record.config["data_options"].get("subset")) is not None:
        words.append(f"{subset:g} of the training samples")
    return ", ".join(words)


def _run(record: Record, row: str) -> Run:
    curve = tuple(line["test_accuracy"] for line in record.history())
    return Run(row, record.seed, record.final or {}, curve, (), record.seconds)


def precision_of(records: Sequence[Record]) -> str:
    """Return the precision of the runs, such as `"bf16-mixed precision"`, or "" for full precision."""
    names = sorted({str(record.settings.get("precision", "32-true")) for record in records} - {"32-true"})
    return f"{', '.join(names)} precision" if names else ""


INTRODUCTION = """# Reproduction of the papers' tables

`make docs` generates this page from `results/*.json`. `labelkin reproduce --list` lists the requirements and the cost of each
table; `labelkin reproduce 003-table2` reruns one.

- A measured mean is "within spread" if it differs from the published one by no more than both standard deviations and the
  rounding of the published number together.
- A direction is the sign of a row's difference to the reference row of its column. It is reproduced if the measured
  difference, paired by seed, has the published sign and its 95 % interval excludes zero. It is not significant if the interval
  includes zero, or if there is only one seed.
- If the runs are shorter than the paper's or use another network, only directions are compared.
"""


def reproduction_page(found: Sequence[Results]) -> str:
    """Return the text of docs/reproduction.md."""
    names = dict.fromkeys(name for results in found for name in results.recipes)
    sections = [_section(recipe(name), [results for results in found if name in results.recipes]) for name in names]
    if not sections:
        sections = ["## No results yet\n\nThere are no results for a recipe in `results/`."]
    return "\n".join([INTRODUCTION, "\n\n".join(sections), "", _overview(found)])


def _section(found: Recipe, files: Sequence[Results]) -> str:
    """Return the section of a table or figure, with the runs of all results files for it."""
    runs = [run for results in files for run in results.runs]
    matched = match(found, runs)
    as_published = any(run.settings.get("report") == "best-test" for run in runs)
    judged = assess(found, matched.runs, Conditions("as-published" if as_published else "clean", other=matched.other))
    lines = [
        f"## {found.id}: {found.title}",
        "",
        f"Paper {found.paper}, {found.published.source}. {summary(judged)}",
        "",
        *_tables(judged),
        *_notes(judged),
        *(line for results in files for line in _origin(results, judged.conditions.protocol)),
    ]
    if matched.further:
        lines.append(f"- {_further(matched.further)}")
    return "\n".join(lines)


def _tables(judged: Reproduction) -> list[str]:
    rows = [row for row, cell in zip(cell_rows(judged), judged.cells, strict=True) if cell.measured is not None]
    tables = [markdown_table(HEADINGS, rows), ""] if rows else []
    known = [line for line, claim in zip(claim_rows(judged), judged.claims, strict=True) if claim.holds is not None]
    return [*tables, *([markdown_table(CLAIMS, known), ""] if known else [])]


def _notes(judged: Reproduction) -> list[str]:
    found = judged.recipe
    unrun = sum(cell.measured is None and cell.published is not None for cell in judged.cells)
    notes = [
        *(f"{column}: {words}." for column, words in judged.conditions.other.items()),
        *(f"Differs from the paper: {words}." for words in found.departures),
        *([f"Published numbers that were not measured: {unrun}."] if unrun else []),
    ]
    return [f"- {note}" for note in notes]


def _origin(results: Results, protocol: str) -> list[str]:
    """Describe the runs of a results file: seeds, machine, command, and what is missing."""
    seeds, precision = sorted({run.seed for run in results.runs}), precision_of(results.runs)
    command = f" `{results.command}`" if results.command else ""
    runs = (
        f"`results/{results.name}.json`: {counted(len(results.runs), 'run')}, seeds "
        f"{', '.join(map(str, seeds))}; {results.machine}, "
        f"{results.date}; protocol {protocol}{f'; {precision}' if precision else ''}.{command}"
    )
    return [f"- {runs}", *(f"  - Limitations: {words}" for words in results.missing)]


def _further(records: Sequence[object]) -> str:
    labels = sorted({str(getattr(record, "label", "")) for record in records})
    return f"Also in the file, but not in the table: {', '.join(labels)}."


def _overview(found: Sequence[Results]) -> str:
    """Return the table of all recipes, measured or not."""
    files = {
        name: [f"`results/{results.name}.json`" for results in found if name in results.recipes]
        for name in recipe_ids()
    }
    rows = [
        (name, recipe(name).title, ", ".join(files[name]) or _why_not(recipe(name)), cost_of(recipe(name)))
        for name in recipe_ids()
    ]
    heading = "## All tables and figures\n\nThe cost is an estimate for the paper's number of runs."
    return f"{heading}\n\n{markdown_table(('id', 'title', 'measured', 'cost'), rows)}\n"


def _why_not(found: Recipe) -> str:
    reasons = dict.fromkeys(part.not_run for part in found.parts if part.not_run is not None)
    return "no" if found.runs or not reasons else f"no: {'; '.join(map(str, reasons))}"
