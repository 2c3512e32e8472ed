"""Generate the table of the papers' main claims: verdict, published and measured numbers, and why a result differs."""

from collections.abc import Mapping
from math import isnan
from re import sub

from labelkin.comparison import Paired
from labelkin.papers._coverage import Coverage, cost_in_words, missing_runs
from labelkin.papers._evidence import Evidence
from labelkin.papers._format import UNDEFINED, markdown_table
from labelkin.papers._main_claims import (
    FAILS,
    HOLDS,
    UNMEASURED,
    UNTOLD,
    MainClaim,
    Ruling,
    main_claims,
    papers_named,
    rule,
)
from labelkin.papers._measured import Measured, measured, paired_by_seed
from labelkin.papers._published import Measure
from labelkin.papers._recipe import recipe

HEADINGS = ("paper", "claim", "verdict", "published", "measured", "n", "why, or what it would take", "section")
NOTHING_RANDOM = "nothing is random"


def slug(heading: str) -> str:
    """Return the anchor of a heading, as Python-Markdown and GitHub create it."""
    return sub(r"[\s]+", "-", sub(r"[^\w\s-]", "", heading).strip().lower())


def claims_table(
    known: Mapping[str, Evidence], covered: Mapping[str, Coverage], titles: Mapping[str, str], overview: str
) -> str:
    """Return the table.

    Args:
        known: The evidence that was measured, by recipe.
        covered: The coverage (what is not measured, and its cost), by recipe.
        titles: The anchor of the section of each recipe that was measured.
        overview: The anchor of the list of all recipes.
    """
    claims = main_claims()
    names = papers_named(claims)
    rows, rulings = [], []
    for claim in claims:
        found = known.get(claim.recipe)
        ruling, numbers, count = judge_claim(claim, found)
        rulings.append(ruling)
        place = titles.get(claim.recipe, overview) if ruling.verdict != UNMEASURED else overview
        why = reasons(claim, ruling, found, covered[claim.recipe])
        link = f"[{claim.recipe}](#{place})"
        rows.append((names[claim.paper], claim.words, f"**{ruling.verdict}**", _pair(claim), numbers, count, why, link))
    counts = [
        (verdict, sum(one.verdict == verdict for one in rulings)) for verdict in (HOLDS, FAILS, UNTOLD, UNMEASURED)
    ]
    summary = "; ".join(f"{verdict}: {count}" for verdict, count in counts)
    unlike = sum(
        ruling.verdict in (HOLDS, FAILS) and _conditions(claim, known.get(claim.recipe)) is not None
        for claim, ruling in zip(claims, rulings, strict=True)
    )
    words = f" In {unlike} of those that hold or fail, the runs differ from the paper's; the row says how."
    text = f"{len(claims)} claims. {summary[0].upper()}{summary[1:]}.{words if unlike else ''}"
    return f"{text}\n\n{markdown_table(HEADINGS, rows)}"


def _conditions(claim: MainClaim, found: Evidence | None) -> str | None:
    """Return how the runs that decide a claim differ from the paper's in weights, network or length; None if they do not."""
    return None if found is None or claim.of is None else found.judged.conditions.other.get(claim.of[0])


def judge_claim(claim: MainClaim, found: Evidence | None) -> tuple[Ruling, str, str]:
    """Return the verdict on a claim, a description of the measured numbers, and the number of seeds."""
    if found is None:
        return Ruling(UNMEASURED), UNDEFINED, "0"
    if claim.checked is not None:
        return _by_check(claim, found)
    assert claim.of is not None
    assert claim.than is not None
    assert claim.measure is not None
    first, second = (measured(claim.measure, found.runs.get(c, {}).get(r, ())) for c, r in (claim.of, claim.than))
    if first is None or second is None:
        return Ruling(UNMEASURED), UNDEFINED, "0"
    difference = paired_by_seed(first, second)
    count = len(set(first.values) & set(second.values))
    ruling = rule(difference, count, better=str(claim.measure.better), within=claim.within)
    return ruling, _measured(claim.measure, first, second, difference), str(count)


def _by_check(claim: MainClaim, found: Evidence) -> tuple[Ruling, str, str]:
    """Return the verdict of the checks of the recipe that have the claim's key."""
    keys = [entry["claim"] for entry in found.judged.recipe.claims]
    checks = [one for key, one in zip(keys, found.judged.claims, strict=True) if key == claim.checked]
    if not checks or any(one.holds is None for one in checks):
        return Ruling(UNMEASURED), UNDEFINED, "0"
    holds = all(one.holds for one in checks)
    count = "1" if found.judged.recipe.runs else NOTHING_RANDOM  # checks of a network take the run with the first seed
    return Ruling(HOLDS if holds else FAILS, "", holds), "; ".join(one.found for one in checks), count


def reasons(claim: MainClaim, ruling: Ruling, found: Evidence | None, covered: Coverage) -> str:
    """Return why a claim is not shown to hold, as far as is known, or how to measure it."""
    words = []
    if ruling.verdict == UNMEASURED:
        words.append(covered.why_not or _cost(claim, found, covered))
    elif found is not None and claim.of is not None:
        words += [other for other in [_conditions(claim, found)] if other is not None]
    if ruling.reason:
        words.append(ruling.reason)
    if found is not None and found.beside is not None:
        _, numbers, count = judge_claim(claim, found.beside)
        words += [] if count == "0" else [f"evaluated as in the paper: {numbers}"]
    if claim.why is not None and ruling.as_claimed is not True:
        words.append(f"{'caution' if ruling.verdict == UNMEASURED else 'possible cause'}: {claim.why}")
    elif ruling.as_claimed is False and not words:
        words.append("no cause is known")
    return "; ".join(words) or UNDEFINED


def _cost(claim: MainClaim, found: Evidence | None, covered: Coverage) -> str:
    """Return the cost of the runs that the claim needs, and their command."""
    places = [place for place in (claim.of, claim.than) if place is not None]
    needed = recipe(claim.recipe)
    if not places or not needed.runs:
        return f"{covered.left}: `{covered.command}`"
    columns, rows = (",".join(dict.fromkeys(names)) for names in zip(*places, strict=True))
    missing = missing_runs(needed, found, places)
    return f'{cost_in_words(missing)}: `{covered.command} --columns "{columns}" --rows "{rows}"`'


def _pair(claim: MainClaim) -> str:
    if claim.published is None or claim.measure is None:
        return f"none: {claim.no_pair}"
    first, second = (f"{cell.value:g}" for cell in claim.published)
    return f"{first} against {second}{_unit(claim.measure)}"


def _unit(measure: Measure) -> str:
    return {"share": "", "squared digits": " (squared error)", "tau-b": " (tau-b)"}.get(
        measure.unit, f" {measure.unit}"
    )


def _measured(measure: Measure, first: Measured, second: Measured, difference: Paired) -> str:
    shown = f"{_number(first.mean, measure)} against {_number(second.mean, measure)}{_unit(measure)}"
    if isnan(difference.low):
        return f"{shown}; difference {_number(difference.mean, measure, '+')}"
    low, high = (_number(value, measure, "+") for value in (difference.low, difference.high))
    return f"{shown}; difference {_number(difference.mean, measure, '+')} [{low}, {high}]"


def _number(value: float, measure: Measure, sign: str = "") -> str:
    if measure.unit == "s":
        return f"{value:{sign}.3g}"
    return f"{value:{sign}.{3 if measure.unit in ('share', 'tau-b') else 2}f}"
