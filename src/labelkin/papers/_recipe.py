"""Read recipes, which describe how to reproduce a table or figure of a paper, with its requirements and its cost.

A recipe is a YAML file in recipes/. It names the `paper`, the table or figure that it `shows`, its `title`, the `command` and
the `seeds`. Its `plan` is the base of all its `parts`. A part is a column of the table: it has additions to the plan, or
`not_run`, the reason why it cannot be run.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from labelkin._checks import InputError, near
from labelkin._extras import require
from labelkin.papers._published import Figure, Table, published_figure, published_table

if TYPE_CHECKING:
    from labelkin.papers._coverage import Coverage

KEYS = (
    "paper", "shows", "title", "command", "seeds", "plan", "parts", "seconds_an_epoch", "departures", "as_published",
    "not_run", "claims", "weights", "best_rows", "reuse", "needs", "timing", "rows_of", "uses", "columns", "rows",
)  # fmt: skip
PART_KEYS = ("column", "plan", "seconds_an_epoch", "substitute", "unlike", "unjudged", "needs", "not_run")


class Part(NamedTuple):
    """A column of the table, or some rows of it."""

    column: str
    plan: Mapping[str, Any]  # values for `Plan.from_dict`, without seeds; empty if the part is not run
    seconds_an_epoch: float | None  # an estimate for one H200
    substitute: str | None  # a backbone to train from scratch if the published one is not available
    unlike: str | None  # how the part differs from the paper, so that only directions are compared
    unjudged: str | None  # why its numbers get no verdict
    needs: tuple[str, ...]  # data sets
    not_run: str | None  # why it is not run

    @property
    def untrained_backbone(self) -> str | None:
        """The paper's pretrained network with random weights; None if the paper's network is not pretrained."""
        library, colon, name = str(self.plan.get("backbone", "")).partition(":")
        return f"timm-scratch:{name}" if library == "timm" and colon else None

    @property
    def epochs(self) -> int:
        """The number of epochs of a run."""
        return int(self.plan["training"]["epochs"]) if self.plan else 0

    @property
    def runs_per_seed(self) -> int:
        """The number of runs per seed."""
        objectives = self.plan.get("objectives", {}).values()
        return sum(prod(len(v["grid"]) for v in o.values() if isinstance(v, dict) and "grid" in v) for o in objectives)


class Recipe(NamedTuple):
    """How to reproduce a table or figure."""

    id: str
    paper: str
    shows: str
    title: str
    command: str
    seeds: tuple[int, ...]  # the paper's seeds, or as many seeds as it used
    parts: tuple[Part, ...]
    departures: tuple[str, ...]  # from the paper
    as_published: Mapping[str, Any]  # additional training settings and options under the protocol "as-published"
    not_run: Mapping[str, str]  # row -> why it is not run
    claims: tuple[Mapping[str, Any], ...]
    weights: str | None  # the pretrained weights that it needs
    best_rows: Mapping[str, str]  # row for the best of several runs -> the measure that chooses it, or "each"
    reuse: Mapping[str, Mapping[str, str]]  # column -> the row that uses an embedding, and the row that learned it
    timing: str | None  # set if the table compares times
    uses: str | None = None  # the recipe whose runs it takes

    @property
    def published(self) -> Table | Figure:
        """The published table or figure."""
        is_figure = self.shows.startswith("figure")
        return published_figure(self.paper, self.shows) if is_figure else published_table(self.paper, self.shows)

    @property
    def runs(self) -> int:
        """The number of runs for all seeds."""
        return len(self.seeds) * sum(part.runs_per_seed for part in self.parts)

    @property
    def epochs(self) -> int:
        """The number of epochs of all runs together."""
        return len(self.seeds) * sum(part.runs_per_seed * part.epochs for part in self.parts)

    @property
    def seconds(self) -> float:
        """The estimated time for all runs, one after another."""
        return len(self.seeds) * sum(p.runs_per_seed * p.epochs * (p.seconds_an_epoch or 0.0) for p in self.parts)


def recipe_ids() -> tuple[str, ...]:
    """Return the ids of all recipes, sorted by paper; tables come before figures.

    Returns:
        Ids such as "003-table2".

    Example:
        >>> from labelkin.papers import recipe_ids
        >>> recipe_ids()[0]
        '000-table2'
    """
    names = [file.name.removesuffix(".yaml") for file in (files(__package__) / "recipes").iterdir()]
    return tuple(sorted(names, key=_order))


@cache
def recipe(wanted: str) -> Recipe:
    """Read a recipe.

    Args:
        wanted: The id of a table or figure, such as "003-table2".

    Returns:
        The recipe.

    Example:
        >>> from labelkin.papers import recipe
        >>> recipe("003-table2").seeds
        (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
    """
    if wanted not in recipe_ids():
        raise InputError(
            f"there is no table or figure {wanted!r}; `labelkin reproduce --list` lists all {len(recipe_ids())}."
            f"{near(wanted, recipe_ids())}"
        )
    given = _read(wanted)
    base = recipe(given["uses"]) if "uses" in given else None
    return _build(wanted, given, base)


def _read(name: str) -> dict[str, Any]:
    yaml = require("yaml", extra="yaml", use="reading a recipe")
    text = (files(__package__) / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for key in loaded:
        assert key in KEYS, f"{name}: {key}"
    return loaded


def _build(name: str, given: Mapping[str, Any], base: Recipe | None) -> Recipe:
    """Build a recipe. If it has a `base` (`uses` in its file), it takes the runs of that recipe, or a selection of them."""
    return Recipe(
        id=name,
        paper=given["paper"],
        shows=given["shows"],
        title=given["title"],
        command=given["command"],
        seeds=_seeds(given["seeds"]) if base is None else base.seeds,
        parts=_parts(given) if base is None else _select(base.parts, given),
        departures=tuple(given.get("departures", ())) + (base.departures if base is not None else ()),
        as_published=given.get("as_published", {}) if base is None else base.as_published,
        not_run=given.get("not_run", {}) if base is None else base.not_run,
        claims=tuple(given.get("claims", ())),
        weights=given.get("weights") if base is None else base.weights,
        best_rows=given.get("best_rows", {}),
        reuse=given.get("reuse", {}),
        timing=given.get("timing"),
        uses=given.get("uses"),
    )


def _seeds(given: int | list[int]) -> tuple[int, ...]:
    return tuple(range(given)) if isinstance(given, int) else tuple(given)


def _parts(given: Mapping[str, Any]) -> tuple[Part, ...]:
    if "parts" not in given:  # nothing to train, but a claim may be about the data
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


def _select(parts: tuple[Part, ...], given: Mapping[str, Any]) -> tuple[Part, ...]:
    kept = [part for part in parts if part.column in given.get("columns", [part.column])]
    rows = given.get("rows")
    if rows is None:
        return tuple(kept)
    chosen = [{name: part.plan["objectives"][name] for name in rows} for part in kept]
    return tuple(p._replace(plan={**p.plan, "objectives": rows_}) for p, rows_ in zip(kept, chosen, strict=True))


def merged(base: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` updated by `added`; the keys of `training` and `data_options` are merged."""
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
    """A line of `labelkin reproduce --list`."""

    id: str
    title: str
    data: tuple[str, ...]
    missing: tuple[str, ...]  # data sets that are not available
    backbones: tuple[str, ...]
    weights: str | None
    runs: int
    epochs: int  # of all runs together
    seconds: float  # an estimate for one H200, one run after another
    cost: str  # a description of runs, epochs and seconds
    not_run: tuple[str, ...]  # why some parts cannot be run
    measured: str  # a description of what labelkin's own results cover
    left: str  # a description of the cost of the rest
    left_gpu_hours: float  # the same as a number
    command: str  # that measures the rest

    @property
    def at_hand(self) -> str:
        """Whether the data are available: "yes", "no", "none needed", or the data sets that are."""
        available = [name for name in self.data if name not in self.missing]
        if not self.missing:
            return "yes" if self.data else "none needed"
        return f"in part: {', '.join(available)}" if available else "no"


def cost_of(found: Recipe) -> str:
    """Return the number of runs and epochs with the paper's number of seeds, and the estimated time."""
    if not found.runs:
        return "no training"
    runs, each = f"{found.runs} run{'s' if found.runs > 1 else ''}", found.epochs / found.runs
    return f"{runs} x {each:.0f} epochs, about {found.seconds / 3600:.1f} h on one H200 (estimate)"


def list_recipes() -> list[Entry]:
    """Return a line for each recipe."""
    from labelkin.papers._coverage import known_coverage

    available, covered = available_data(), known_coverage()
    return [_entry(recipe(name), available, covered[name]) for name in recipe_ids()]


def available_data() -> set[str]:
    """Return the names of the data sets that are on this machine."""
    from labelkin.data import inventory

    return {entry.name for entry in inventory() if entry.at_hand}


def _entry(found: Recipe, available: set[str], covered: "Coverage") -> Entry:
    data = tuple(dict.fromkeys(name for part in found.parts for name in part.needs))
    nets = tuple(dict.fromkeys(str(part.plan["backbone"]) for part in found.parts if part.plan))
    reasons = tuple(dict.fromkeys(part.not_run for part in found.parts if part.not_run is not None))
    missing = tuple(name for name in data if name not in available)
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
        measured=covered.measured,
        left=covered.left,
        left_gpu_hours=covered.left_hours,
        command=covered.command,
    )


def listing_as_dict(entry: Entry) -> dict[str, Any]:
    """Return a line of the list as plain values."""
    return {**entry._asdict(), "at_hand": entry.at_hand}
