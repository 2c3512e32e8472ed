"""A reproduction in a few sentences."""

from labelkin.experiments.reproduce import verdict
from labelkin.experiments.reproduce.assess import Judged, Reproduction


def summary(found: Reproduction) -> str:
    printed = [cell for cell in found.cells if cell.published is not None]
    run = [cell for cell in printed if cell.measured is not None]
    parts = [_levels(printed, run)] if printed else []
    parts += [_directions(run), _claims(found)]
    if run and not found.conditions.same:
        parts.append("The runs are not the paper's in length or data, so only directions are judged.")
    return " ".join(part for part in parts if part) or "Nothing was run."


def _levels(printed: list[Judged], run: list[Judged]) -> str:
    words = (verdict.WITHIN, verdict.BETTER, verdict.WORSE)
    counted = [(word, sum(cell.verdict.level == word for cell in run)) for word in words]
    told = ", ".join(f"{count} {word}" for word, count in counted if count)
    return f"Of {len(printed)} printed numbers {len(run)} were measured{f': {told}' if told else ''}."


def _directions(run: list[Judged]) -> str:
    ways = [cell.verdict.direction for cell in run if cell.verdict.direction not in (None, verdict.FLAT)]
    if not ways:
        return ""
    settled, leaning = ways.count(verdict.REPRODUCED), ways.count(verdict.UNSETTLED)
    compared = f"{len(ways)} comparison{'s' if len(ways) > 1 else ''}"
    return (
        f"The printed direction is reproduced in {settled} of {compared}, and seen without being settled in {leaning}."
    )


def _claims(found: Reproduction) -> str:
    if not found.claims:
        return ""
    tested = sum(claim.holds is not None for claim in found.claims)
    held = sum(claim.holds is True and claim.settled for claim in found.claims)
    leaning = sum(claim.holds is True and not claim.settled for claim in found.claims)
    count = f"{len(found.claims)} claim{'s' if len(found.claims) > 1 else ''}"
    told = f"Of {count} {tested} could be checked, and {held} held"
    return f"{told}, beside {leaning} that did without being settled." if leaning else f"{told}."
