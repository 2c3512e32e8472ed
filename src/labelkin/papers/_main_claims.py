"""Read the main claims of the papers, and judge them.

A claim is stored with the published numbers. It compares one row with another (`of` is better `than`), or says that two are
alike (`within` some points), or points to a check of its recipe (`checked`). A claim without a published pair of numbers says
why there is none (`no_pair`). `why` names known causes of results that differ from the paper's.
"""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

from labelkin.comparison import Paired, seeds_to_settle
from labelkin.papers._published import PAPERS, Cell, Figure, Measure, Table, published_paper
from labelkin.papers._recipe import recipe

HOLDS, FAILS, UNTOLD, UNMEASURED = "holds", "fails", "cannot be told", "not measured"
KEYS = ("claim", "recipe", "of", "than", "measure", "within", "checked", "no_pair", "why")
CURVE_MEASURES = {  # measures of claims about figures, which have no table to define them
    "accuracy": Measure("accuracy", "%", "higher"),
    "auac": Measure("auac", "%", "higher"),
    "fluctuation": Measure("fluctuation", "%", "lower"),
}


class MainClaim(NamedTuple):
    """A claim of a paper in one sentence, and what decides it."""

    paper: str
    words: str
    recipe: str  # the id of the table or figure that has the evidence
    of: tuple[str, str] | None  # column and row that the claim says to be better
    than: tuple[str, str] | None  # column and row that it is compared with
    measure: Measure | None
    within: float | None  # the rows are alike if they differ by no more than this; None if `of` is better
    checked: str | None  # the key of a check of the recipe that decides instead of two rows
    no_pair: str | None  # why there is no published pair
    why: str | None  # known causes of a different result

    @property
    def published(self) -> tuple[Cell, Cell] | None:
        """The published pair: the value of `of` and that of `than`."""
        table = recipe(self.recipe).published
        if isinstance(table, Figure) or self.of is None or self.than is None or self.measure is None:
            return None
        first, second = (table.cell(*place, self.measure.name) for place in (self.of, self.than))
        return None if first is None or second is None else (first, second)


def main_claims() -> list[MainClaim]:
    """Return the main claims of all papers."""
    return [_claim(number, entry) for number in PAPERS for entry in published_paper(number)["claims"]]


def _claim(number: str, entry: Mapping[str, Any]) -> MainClaim:
    for key in entry:
        assert key in KEYS, f"{number}: {key}"
    of, than = (tuple(entry[key]) if key in entry else None for key in ("of", "than"))
    measure = _measure(recipe(entry["recipe"]).published, entry["measure"]) if "measure" in entry else None
    rest = [entry.get(key) for key in ("within", "checked", "no_pair", "why")]
    return MainClaim(number, entry["claim"], entry["recipe"], of, than, measure, *rest)


def _measure(published: Table | Figure, name: str) -> Measure:
    return CURVE_MEASURES[name] if isinstance(published, Figure) else published.measures[name]


class Ruling(NamedTuple):
    """The verdict on a claim; `reason` says what is missing where it cannot be told."""

    verdict: str  # HOLDS, FAILS, UNTOLD or UNMEASURED
    reason: str = ""
    # Whether the mean difference points the way of the claim; None if nothing is measured.
    as_claimed: bool | None = None


def rule(difference: Paired, count: int, *, better: str = "higher", within: float | None = None) -> Ruling:
    """Judge a claim by the differences between two rows, paired by seed.

    Args:
        difference: `of` minus `than`.
        count: The number of pairs.
        better: "higher" or "lower" values of the measure are better.
        within: The claim is that the rows differ by no more than this. None: that `of` is better.
    """
    if count == 0 or isnan(difference.mean):
        return Ruling(UNMEASURED)
    sign = 1 if better == "higher" else -1
    low, high = sorted((sign * difference.low, sign * difference.high))
    if within is None:
        margin, inside, outside = sign * difference.mean, low > 0, high < 0
    else:
        margin = within - abs(difference.mean)
        inside, outside = -within <= low and high <= within, high < -within or low > within
    if count == 1:
        return Ruling(UNTOLD, "one seed has no interval", margin > 0)
    if inside or outside:
        return Ruling(HOLDS if inside else FAILS, "", inside)
    needed = seeds_to_settle(margin, difference.spread)
    seeds = "more than 1,000 seeds" if needed is None else f"about {max(needed, count + 1)} seeds"
    return Ruling(UNTOLD, f"the interval contains both outcomes; {seeds} would settle it", margin > 0)


def papers_named(claims: Sequence[MainClaim]) -> dict[str, str]:
    """Return the title and year of each paper."""
    found = {claim.paper: published_paper(claim.paper) for claim in claims}
    return {number: f"{paper['title']} ({paper['year']})" for number, paper in found.items()}
