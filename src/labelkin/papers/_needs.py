"""Generate the section of docs/choosing.md that lists objectives by need, with their results."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from statistics import fmean
from typing import NamedTuple

from labelkin.comparison import Row
from labelkin.papers._settings import ONE_SEED, SHOWN_BETTER, SHOWN_WORSE, Setting, by_objective, outcome, points

Compared = Sequence[tuple[Setting, Row]]


class Need(NamedTuple):
    """A need, the objectives that may serve it, the results that count for it, and the function that describes them."""

    title: str
    advice: str
    objectives: tuple[str, ...]
    describe: Callable[[Compared], str]
    counts: Callable[[Compared], Compared] = lambda rows: rows
    unmeasured: str = "not measured"

    def results(self, rows: Mapping[str, Compared]) -> dict[str, Compared]:
        """Return the results of each objective that count for the need."""
        return {name: self.counts(rows.get(name, [])) for name in self.objectives}


def by_need(settings: Sequence[Setting]) -> str:
    """Return the section "By need"."""
    rows = by_objective(settings)
    sections = ["## By need"]
    for need in NEEDS:
        lines = [
            f"- `{name}`: {need.describe(found) if found else need.unmeasured}."
            for name, found in need.results(rows).items()
        ]
        sections.append("\n".join([f"### {need.title}", "", need.advice, "", *lines]))
    return "\n\n".join(sections) + "\n"


def accuracy(rows: Compared) -> str:
    """Compare the accuracy of an objective with one-hot's."""
    outcomes = [outcome(row) for _, row in rows]
    parts = []
    for word in (SHOWN_BETTER, SHOWN_WORSE):
        there = [f"{_place(setting, row)} ({points(row)})" for setting, row in rows if outcome(row) == word]
        if there:
            parts.append(f"significantly {word} than one-hot in {of_total(len(there), len(rows))}: {'; '.join(there)}")
    alone = outcomes.count(ONE_SEED)
    rest = len(rows) - alone - sum(word in (SHOWN_BETTER, SHOWN_WORSE) for word in outcomes)
    if rest:
        parts.append(f"no significant difference in {of_total(rest, len(rows))}")
    if alone:
        means = [100 * row.difference for _, row in rows if outcome(row) == ONE_SEED]
        between = f"{min(means):+.2f}" if len(means) == 1 else f"{min(means):+.2f} to {max(means):+.2f}"
        parts.append(f"only one seed, which shows nothing, in {of_total(alone, len(rows))} ({between})")
    return "; ".join(parts)


def mistakes(rows: Compared) -> str:
    """Compare accuracy and costs with one-hot's; the costs of both after CRM."""
    known = [(row.cost, setting.reference.cost) for setting, row in rows if not isnan(row.cost_difference)]
    sentence = accuracy(rows)
    if not known:
        return sentence
    cheaper = sum(own < theirs for own, theirs in known)
    return (
        f"{sentence}; mean cost of a decision below one-hot's, both decided by CRM, in {of_total(cheaper, len(known))}"
    )


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


def epochs(rows: Compared) -> str:
    """Say how often an objective reaches one-hot's best accuracy, and how many epochs it saves."""
    saved = [100 * row.epochs_saved for _, row in rows if not isnan(row.epochs_saved)]
    count = f"reaches one-hot's best accuracy in {of_total(len(saved), len(rows))}"
    return f"{count}, and saves {fmean(saved):.0f} % of the epochs there on average" if saved else count


def of_total(count: int, total: int) -> str:
    """Return "2 of 5 comparisons"."""
    return f"{count} of {total} comparison{'s' if total != 1 else ''}"


def _place(setting: Setting, row: Row) -> str:
    options = row.label.removeprefix(row.objective).strip()
    return f"{setting.name}, {options}" if options else setting.name


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
        mistakes,
    ),
    Need(
        "My classes have an order",
        "Smooth the targets along the order: `semantic-smoothing` with `relation: ordinal`.",
        ("semantic-smoothing",),
        mistakes,
        with_relation("ordinal"),
        "not measured with `relation: ordinal`",
    ),
    Need(
        "I have groups of classes",
        "Smooth within groups: `semantic-smoothing` with `relation: groups` and the groups as the taxonomy.",
        ("semantic-smoothing",),
        mistakes,
        with_relation("groups"),
        "not measured with `relation: groups`",
    ),
    Need(
        "I know nothing about my classes",
        "Use an objective that learns the similarity of classes or takes it from the data. Label smoothing is the baseline.",
        ("label-smoothing", "label-embedding", "adaptive-labels", "mixed-cross-entropy", "retrospection"),
        accuracy,
    ),
    Need(
        "I have many classes",
        "Use a label embedding that needs no K x K matrix; `start_after` starts it later in training.",
        ("compressed-label-embedding",),
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
        accuracy,
        under_noise,
        "not measured under label noise",
    ),
    Need(
        EPOCHS,
        "Compare how soon an objective reaches one-hot's best accuracy.",
        ("adaptive-labels", "label-embedding", "retrospection"),
        epochs,
    ),
)
