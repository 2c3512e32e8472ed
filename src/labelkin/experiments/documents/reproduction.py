"""docs/reproduction.md: the papers' tables and figures, published against measured."""

from collections.abc import Sequence

from labelkin.experiments.documents.matching import match, precision_of
from labelkin.experiments.documents.results import Results
from labelkin.experiments.reproduce.assess import Conditions, Reproduction, assess
from labelkin.experiments.reproduce.listing import cost_of
from labelkin.experiments.reproduce.recipe import Recipe, recipe, recipe_ids
from labelkin.experiments.reproduce.summary import summary
from labelkin.experiments.reproduce.text import CLAIMS, HEADINGS, cells, claims, markdown_table

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
