"""Generate the section of docs/choosing.md that lists objectives by need, with their results."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from statistics import fmean
from typing import NamedTuple

from labelkin.comparison import Row
from labelkin.papers._format import UNDEFINED, markdown_table
from labelkin.papers._settings import ONE_SEED, SHOWN_BETTER, SHOWN_WORSE, UNCLEAR, Setting, by_objective, outcome

Compared = Sequence[tuple[Setting, Row]]
ACCURACY = ("comparisons", "more accurate", "less accurate", "not significant", "one seed")
MISTAKES = (*ACCURACY, "cost of decisions lower")
EPOCHS_SAVED = ("comparisons", "reaches one-hot's best accuracy in", "epochs saved there")


class Need(NamedTuple):
    """A need, the objectives that may serve it, the results that count for it, and the function that describes them."""

    title: str
    advice: str
    objectives: tuple[str, ...]
    columns: tuple[str, ...]
    describe: Callable[[Compared], tuple[str, ...]]  # one cell per column
    counts: Callable[[Compared], Compared] = lambda rows: rows
    unmeasured: str = "not measured"

    def results(self, rows: Mapping[str, Compared]) -> dict[str, Compared]:
        """Return the results of each objective that count for the need."""
        return {name: self.counts(rows.get(name, [])) for name in self.objectives}


def by_need(settings: Sequence[Setting]) -> str:
    """Return the section "By need": a table of objectives for each need."""
    rows = by_objective(settings)
    sections = ["## By need"]
    for need in NEEDS:
        found = need.results(rows)
        known = [(linked(name), *need.describe(rows)) for name, rows in found.items() if rows]
        parts = [f"### {need.title}", need.advice]
        if known:
            parts.append(markdown_table(("objective", *need.columns), known))
        if missing := [f"`{name}`" for name, rows in found.items() if not rows]:
            parts.append(f"{', '.join(missing)}: {need.unmeasured}.")
        sections.append("\n\n".join(parts))
    return "\n\n".join(sections) + "\n"


def linked(objective: str) -> str:
    """Return the name of an objective with a link to its page."""
    return f"[`{objective}`](methods/{objective}.md)"


def accuracy(rows: Compared) -> tuple[str, ...]:
    """Count how often the accuracy of an objective is shown to differ from one-hot's, with the range of the differences."""
    kinds = (SHOWN_BETTER, SHOWN_WORSE, UNCLEAR, ONE_SEED)
    found = {kind: [100 * row.difference for _, row in rows if outcome(row) == kind] for kind in kinds}
    return (str(len(rows)), *(_counted(found[kind], shown=kind in kinds[:2]) for kind in kinds))


def _counted(differences: Sequence[float], *, shown: bool) -> str:
    """Return a count, with the range of the differences if they are shown; a dash for none."""
    if not differences:
        return UNDEFINED
    if not shown:
        return str(len(differences))
    low, high = min(differences), max(differences)
    between = f"{low:+.2f}" if len(differences) == 1 else f"{low:+.2f} to {high:+.2f}"
    return f"{len(differences)} ({between})"


def mistakes(rows: Compared) -> tuple[str, ...]:
    """Compare accuracy and costs with one-hot's; the costs of both after CRM."""
    known = [(row.cost, setting.reference.cost) for setting, row in rows if not isnan(row.cost_difference)]
    cheaper = sum(own < theirs for own, theirs in known)
    return (*accuracy(rows), f"{cheaper} of {len(known)}" if known else UNDEFINED)


def with_relation(name: str) -> Callable[[Compared], Compared]:
    """Return a function that keeps the rows whose targets were smoothed by a relation."""
    return lambda rows: [
        (setting, row)
        for setting, row in rows
        if setting.compared.records[row.label][0].options.get("relation") == name
    ]


def under_noise(rows: Compared) -> Compared:
    """Keep the rows of settings with label noise."""
    return [(setting, row) for setting, row in rows if setting.noise]


def epochs(rows: Compared) -> tuple[str, ...]:
    """Count how often an objective reaches one-hot's best accuracy, and how many epochs it saves there on average."""
    saved = [100 * row.epochs_saved for _, row in rows if not isnan(row.epochs_saved)]
    return str(len(rows)), str(len(saved)), f"{fmean(saved):.0f} %" if saved else UNDEFINED


def of_total(count: int, total: int) -> str:
    """Return "2 of 5 comparisons"."""
    return f"{count} of {total} comparison{'s' if total != 1 else ''}"


TREE, EPOCHS = "I have a tree of my classes", "I have time for few epochs"
NEEDS: tuple[Need, ...] = (
    Need(
        TREE,
        "Decide by the least expected cost, whatever you train; see [the leaderboard](leaderboard.md) for the objectives.",
        (
            "hierarchical-cross-entropy",
            "conditional-softmax",
            "hierarchical",
            "convex-hierarchical",
            "semantic-smoothing",
        ),
        MISTAKES,
        mistakes,
    ),
    Need(
        "My classes have an order",
        "Smooth the targets along the order: `semantic-smoothing` with `relation: ordinal`.",
        ("semantic-smoothing",),
        MISTAKES,
        mistakes,
        with_relation("ordinal"),
        "not measured with `relation: ordinal`",
    ),
    Need(
        "I have groups of classes",
        "Smooth within groups: `semantic-smoothing` with `relation: groups` and the groups as the taxonomy.",
        ("semantic-smoothing",),
        MISTAKES,
        mistakes,
        with_relation("groups"),
        "not measured with `relation: groups`",
    ),
    Need(
        "I know nothing about my classes",
        "Use an objective that learns the similarity of classes or takes it from the data. Label smoothing is the baseline.",
        ("label-smoothing", "label-embedding", "adaptive-labels", "mixed-cross-entropy", "retrospection"),
        ACCURACY,
        accuracy,
    ),
    Need(
        "I have many classes",
        "Use a label embedding that needs no K x K matrix; `start_after` starts it later in training.",
        ("compressed-label-embedding",),
        ACCURACY,
        accuracy,
    ),
    Need(
        "My labels are noisy",
        "Soft targets and fixed label vectors can reduce the effect of wrong labels.",
        (
            "static-labels",
            "retrospection",
            "adaptive-labels",
            "mixed-cross-entropy",
            "label-embedding",
            "label-smoothing",
            "confidence-penalty",
        ),
        ACCURACY,
        accuracy,
        under_noise,
        "not measured under label noise",
    ),
    Need(
        EPOCHS,
        "Compare how soon an objective reaches one-hot's best accuracy.",
        ("adaptive-labels", "label-embedding", "retrospection"),
        EPOCHS_SAVED,
        epochs,
    ),
)
