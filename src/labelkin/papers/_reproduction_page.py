"""Generate docs/reproduction.md: published and measured numbers of the papers' tables and figures."""

from collections.abc import Sequence

from labelkin._checks import counted
from labelkin.papers._assess import Reproduction, summary
from labelkin.papers._claims_table import claims_table, slug
from labelkin.papers._coverage import Coverage, coverage
from labelkin.papers._evidence import Evidence, Untrained, evidence
from labelkin.papers._format import CLAIMS, HEADINGS, cell_rows, claim_rows, markdown_table
from labelkin.papers._main_claims import main_claims
from labelkin.papers._measured import MISSED, REVERSED
from labelkin.papers._recipe import recipe, recipe_ids
from labelkin.runs import Record, Results


def precision_of(records: Sequence[Record]) -> str:
    """Return the precision of the runs, such as `"bf16-mixed precision"`, or "" for full precision."""
    names = sorted({str(record.settings.get("precision", "32-true")) for record in records} - {"32-true"})
    return f"{', '.join(names)} precision" if names else ""


OVERVIEW = "All tables and figures"
PUBLISHED = "evaluated as in the paper"
CLAIMS_ALONE = " (only claims that need the weights or outputs of runs)"
INTRODUCTION = """# Reproduction of the papers' tables

`make docs` generates this page from `results/*.json` and the published numbers. `labelkin reproduce --list` says what is
measured and what the rest costs; `labelkin reproduce 003-table2` reruns a table.

## The claims and their verdicts

"""
READING = """
- A claim **holds** if the 95 % interval of the difference, paired by seed, lies on its side of zero (or, for two that should be
  alike, within the allowed difference), and **fails** if the interval lies on the other side. It **cannot be told** if the
  interval contains both outcomes, or if there is only one seed. The number of seeds that would settle it is an estimate for a
  power of 80 % from the measured mean and spread.
- A claim that a check of a network's outputs decides, and not a difference of two numbers, is decided by the run with the first
  seed, without an interval; n is then 1.
- Differences are those of the two measured numbers, in the order in which they are given.

## How to read the tables

- A measured mean is "within spread" if it differs from the published one by no more than both standard deviations and the
  rounding of the published number together.
- A direction is the sign of a row's difference to the reference row of its column. It is reproduced if the measured
  difference, paired by seed, has the published sign and its 95 % interval excludes zero. It is not significant if the interval
  includes zero, or if there is only one seed.
- If the runs are shorter than the paper's or use another network, only directions are compared.
"""


def reproduction_page(found: Sequence[Results], untrained: Sequence[Untrained] = ()) -> str:
    """Return the text of docs/reproduction.md."""
    known = evidence(found, untrained)
    covered = coverage(known)
    sections = [_section(one) for one in known.values()]
    if not sections:
        sections = ["## No results yet\n\nThere are no results for a recipe in `results/`."]
    titles = {name: slug(_heading(one)) for name, one in known.items()}
    claims = claims_table(known, covered, titles, slug(OVERVIEW))
    return "\n".join([INTRODUCTION + claims, READING, "\n\n".join(sections), "", _overview(covered)])


def _heading(one: Evidence) -> str:
    return f"{one.judged.recipe.id}: {one.judged.recipe.title}"


def _section(one: Evidence) -> str:
    """Return the section of a table or figure, with the runs of all results files for it."""
    found = one.judged.recipe
    first = f"## {_heading(one)}\n\nPaper {found.paper}, {found.published.source}. {_measurements(one)}"
    return first if one.beside is None else f"{first}\n\n### {found.id}, {PUBLISHED}\n\n{_measurements(one.beside)}"


def _measurements(one: Evidence) -> str:
    """Return what was measured under one protocol."""
    judged = one.judged
    found = judged.recipe
    lines = [
        summary(judged),
        "",
        *_tables(judged),
        *_notes(judged),
        *(line for results in one.files for line in _origin(results, judged.conditions.protocol)),
        *(
            f"- `results/{u.name}.json`: {u.machine}, {u.date}{CLAIMS_ALONE if u.trained else ''}. `{found.command} --json`"
            for u in one.untrained
        ),
    ]
    if one.further:
        lines.append(f"- {_further(one.further)}")
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
        *_causes(judged),
    ]
    return [f"- {note}" for note in notes]


def _causes(judged: Reproduction) -> list[str]:
    """Say why directions are not reproduced, as far as is known."""
    missed = [cell for cell in judged.cells if cell.verdict.direction in (MISSED, REVERSED)]
    if not missed:
        return []
    known = [claim.why for claim in main_claims() if claim.recipe == judged.recipe.id and claim.why is not None]
    causes = [judged.conditions.other.get(cell.column) for cell in missed]
    counts = {len(cell.measured.values) for cell in missed if cell.measured and cell.verdict.direction == MISSED}
    causes += ["one seed"] if 1 in counts else []
    causes += ["chance, because the interval of the difference contains zero"] if counts - {1} else []
    causes += known
    reasons = list(dict.fromkeys(cause for cause in causes if cause is not None))
    count = f"{len(missed)} direction{'s are' if len(missed) > 1 else ' is'} not reproduced"
    return [f"{count}. Possible causes: {'; '.join(reasons)}." if reasons else f"{count}. No cause is known."]


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


def _overview(covered: dict[str, Coverage]) -> str:
    """Return the table of all recipes: what is measured, and the cost of what is not."""
    rows = [
        (
            name,
            recipe(name).title,
            f"no: {one.why_not}" if one.why_not else one.measured,
            one.files_named,
            one.left,
            one.command_shown,
        )
        for name in recipe_ids()
        for one in [covered[name]]
    ]
    heading = f"""## {OVERVIEW}

The cost is that of three seeds for each cell that has fewer at the paper's number of epochs. It is the number of epochs times
the seconds an epoch, in parentheses, that the recipe assumes for one run at a time on one H200. Several at once take less."""
    headings = ("id", "title", "measured", "files", "cost of the rest", "command")
    return f"{heading}\n\n{markdown_table(headings, rows)}\n"
