"""Every table and figure: what it needs, what it costs, and whether its data can be had here. Reads no data."""

from typing import Any, NamedTuple

from labelkin.experiments.reproduce.recipe import Recipe, recipe, recipe_ids


class Entry(NamedTuple):
    id: str
    title: str
    data: tuple[str, ...]
    missing: tuple[str, ...]  # of the data
    backbones: tuple[str, ...]
    weights: str | None
    runs: int
    epochs: int  # of all runs together
    seconds: float  # an estimate on one H200, one run after the other
    cost: str  # the same in words
    not_run: tuple[str, ...]  # why parts of it cannot be run

    @property
    def at_hand(self) -> str:
        """ "yes", "no", or which of several data sets."""
        there = [name for name in self.data if name not in self.missing]
        if not self.missing:
            return "yes" if self.data else "none needed"
        return f"in part: {', '.join(there)}" if there else "no"


def cost_of(found: Recipe) -> str:
    """Runs x epochs at the paper's number of seeds, and about how long that takes."""
    if not found.runs:
        return "no training"
    runs, each = f"{found.runs} run{'s' if found.runs > 1 else ''}", found.epochs / found.runs
    return f"{runs} x {each:.0f} epochs, about {found.seconds / 3600:.1f} h on one H200 (estimate)"


def entries() -> list[Entry]:
    there = at_hand()
    return [_entry(recipe(name), there) for name in recipe_ids()]


def at_hand() -> set[str]:
    """The names of the data sets that are here."""
    from labelkin.data.inventory import inventory

    return {entry.name for entry in inventory() if entry.at_hand}


def _entry(found: Recipe, there: set[str]) -> Entry:
    data = tuple(dict.fromkeys(name for part in found.parts for name in part.needs))
    nets = tuple(dict.fromkeys(str(part.plan["backbone"]) for part in found.parts if part.plan))
    reasons = tuple(dict.fromkeys(part.not_run for part in found.parts if part.not_run is not None))
    missing = tuple(name for name in data if name not in there)
    return Entry(
        id=found.id,
        title=found.title,
        data=data,
        missing=missing,
        backbones=nets,
        weights=found.weights,
        runs=found.runs,
        epochs=found.epochs,
        seconds=found.seconds,
        cost=cost_of(found),
        not_run=reasons,
    )


def as_dict(entry: Entry) -> dict[str, Any]:
    return {**entry._asdict(), "at_hand": entry.at_hand}
