"""Recipes: how a table or figure of a paper is rerun, what it needs and what it costs.

Beside `paper`, `shows` (its name in `labelkin.papers._published`), `title`, `command` and `seeds`, a recipe has `plan`,
which every one of its `parts` starts from; a part is a column with what it adds to the plan, or with `not_run`, why not.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from math import prod
from typing import Any, NamedTuple

from labelkin._checks import InputError, near
from labelkin._extras import require
from labelkin.papers._published import Figure, Table, figure, table

KEYS = (
    "paper", "shows", "title", "command", "seeds", "plan", "parts", "seconds_an_epoch", "departures", "as_published",
    "not_run", "claims", "weights", "best_rows", "reuse", "needs", "timing", "rows_of", "uses", "columns", "rows",
)  # fmt: skip
PART_KEYS = ("column", "plan", "seconds_an_epoch", "substitute", "unlike", "unjudged", "needs", "not_run")


class Part(NamedTuple):
    """A column of the table, or some rows of it."""

    column: str
    plan: Mapping[str, Any]  # as `labelkin.experiments.plan.Plan` takes it, without seeds; empty where not run
    seconds_an_epoch: float | None  # an estimate, on one H200
    substitute: str | None  # a backbone trained from scratch where the published one cannot be had
    unlike: str | None  # what is otherwise than in the paper, so that only directions are judged
    unjudged: str | None  # why its figures stand outside the verdicts
    needs: tuple[str, ...]  # data sets
    not_run: str | None

    @property
    def epochs(self) -> int:
        return int(self.plan["training"]["epochs"]) if self.plan else 0

    @property
    def runs_a_seed(self) -> int:
        objectives = self.plan.get("objectives", {}).values()
        return sum(prod(len(v["grid"]) for v in o.values() if isinstance(v, dict) and "grid" in v) for o in objectives)


class Recipe(NamedTuple):
    id: str
    paper: str
    shows: str
    title: str
    command: str
    seeds: tuple[int, ...]  # the paper's, or as many as it had
    parts: tuple[Part, ...]
    departures: tuple[str, ...]  # from the paper
    as_published: Mapping[str, Any]  # added to training, or to an objective's options, under that protocol
    not_run: Mapping[str, str]  # rows of the table, and why
    claims: tuple[Mapping[str, Any], ...]
    weights: str | None
    best_rows: Mapping[str, str]  # rows that stand for the best of the others, by a measure or by each
    reuse: Mapping[str, Mapping[str, str]]  # by column: a row that is given the embedding another row learned
    timing: str | None

    @property
    def printed(self) -> Table | Figure:
        is_figure = self.shows.startswith("figure")
        return figure(self.paper, self.shows) if is_figure else table(self.paper, self.shows)

    @property
    def runs(self) -> int:
        return len(self.seeds) * sum(part.runs_a_seed for part in self.parts)

    @property
    def epochs(self) -> int:
        """Of all runs together."""
        return len(self.seeds) * sum(part.runs_a_seed * part.epochs for part in self.parts)

    @property
    def seconds(self) -> float:
        """An estimate for all runs, one after the other."""
        return len(self.seeds) * sum(p.runs_a_seed * p.epochs * (p.seconds_an_epoch or 0.0) for p in self.parts)


def recipe_ids() -> tuple[str, ...]:
    """In the papers' order: tables, then figures."""
    names = [file.name.removesuffix(".yaml") for file in (files(__package__) / "recipes").iterdir()]
    return tuple(sorted(names, key=_order))


@cache
def recipe(wanted: str) -> Recipe:
    if wanted not in recipe_ids():
        raise InputError(
            f"there is no table or figure {wanted!r}; `labelkin reproduce --list` names all {len(recipe_ids())}."
            f"{near(wanted, recipe_ids())}"
        )
    given = _read(wanted)
    base = recipe(given["uses"]) if "uses" in given else None
    return _made(wanted, given, base)


def _read(name: str) -> dict[str, Any]:
    yaml = require("yaml", extra="yaml", use="reading a recipe")
    text = (files(__package__) / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for key in loaded:
        assert key in KEYS, f"{name}: {key}"
    return loaded


def _made(name: str, given: Mapping[str, Any], base: Recipe | None) -> Recipe:
    """With `uses` the runs are another recipe's, or those of some of its columns and rows."""
    return Recipe(
        id=name,
        paper=given["paper"],
        shows=given["shows"],
        title=given["title"],
        command=given["command"],
        seeds=_seeds(given["seeds"]) if base is None else base.seeds,
        parts=_parts(given) if base is None else _some(base.parts, given),
        departures=tuple(given.get("departures", ())) + (base.departures if base is not None else ()),
        as_published=given.get("as_published", {}) if base is None else base.as_published,
        not_run=given.get("not_run", {}) if base is None else base.not_run,
        claims=tuple(given.get("claims", ())),
        weights=given.get("weights") if base is None else base.weights,
        best_rows=given.get("best_rows", {}),
        reuse=given.get("reuse", {}),
        timing=given.get("timing"),
    )


def _seeds(given: int | list[int]) -> tuple[int, ...]:
    return tuple(range(given)) if isinstance(given, int) else tuple(given)


def _parts(given: Mapping[str, Any]) -> tuple[Part, ...]:
    if "parts" not in given:  # nothing to train, but perhaps data to look at
        needs = tuple(given.get("needs", ()))
        return (Part("", {}, None, None, None, None, needs, None),) if needs else ()
    return tuple(_part(part, given) for part in given["parts"])


def _part(part: Mapping[str, Any], given: Mapping[str, Any]) -> Part:
    for key in part:
        assert key in PART_KEYS, f"{part['column']}: {key}"
    plan = {} if "not_run" in part else merged(given.get("plan", {}), part.get("plan", {}))
    return Part(
        column=part["column"],
        plan=plan,
        seconds_an_epoch=part.get("seconds_an_epoch", given.get("seconds_an_epoch")),
        substitute=part.get("substitute"),
        unlike=part.get("unlike"),
        unjudged=part.get("unjudged"),
        needs=tuple(part.get("needs", [plan["data"]] if plan else [])),
        not_run=part.get("not_run"),
    )


def _some(parts: tuple[Part, ...], given: Mapping[str, Any]) -> tuple[Part, ...]:
    kept = [part for part in parts if part.column in given.get("columns", [part.column])]
    rows = given.get("rows")
    if rows is None:
        return tuple(kept)
    chosen = [{name: part.plan["objectives"][name] for name in rows} for part in kept]
    return tuple(p._replace(plan={**p.plan, "objectives": rows_}) for p, rows_ in zip(kept, chosen, strict=True))


def merged(base: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """`added` over `base`; `training` and `data_options` key by key."""
    joined = {**base, **added}
    for group in ("training", "data_options"):
        if group in base and group in added:
            joined[group] = {**base[group], **added[group]}
    return joined


def _order(name: str) -> tuple[str, bool, bool, int]:
    paper, _, what = name.partition("-")
    digits = "".join(c for c in what if c.isdigit())
    return paper, what.startswith("figure"), not digits, int(digits or 0)


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
    from labelkin.data import inventory

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


def listing_as_dict(entry: Entry) -> dict[str, Any]:
    return {**entry._asdict(), "at_hand": entry.at_hand}
