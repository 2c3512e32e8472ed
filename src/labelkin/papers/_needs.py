"""By need: what there is to choose from, and what the results say of each."""

from collections.abc import Callable, Sequence
from math import isnan
from statistics import fmean
from typing import NamedTuple

from labelkin.comparison import Row
from labelkin.papers._settings import ONE_SEED, SHOWN_BETTER, SHOWN_WORSE, Setting, by_objective, outcome, points

Compared = Sequence[tuple[Setting, Row]]


class Need(NamedTuple):
    """What each need leaves to choose from; which of it helps is for the numbers to say."""

    title: str
    advice: str
    objectives: tuple[str, ...]
    found: Callable[[Compared], str]


def by_need(settings: Sequence[Setting]) -> str:
    told = by_objective(settings)
    sections = ["## By need"]
    for need in NEEDS:
        lines = [f"- `{name}`: {need.found(told.get(name, []))}." for name in need.objectives]
        sections.append("\n".join([f"### {need.title}", "", need.advice, "", *lines]))
    return "\n\n".join(sections) + "\n"


def accuracy(rows: Compared) -> str:
    """How an objective's accuracy stands to one-hot's."""
    if not rows:
        return "not measured"
    told = [outcome(row) for _, row in rows]
    parts = []
    for word in (SHOWN_BETTER, SHOWN_WORSE):
        there = [f"{_place(setting, row)} ({points(row)})" for setting, row in rows if outcome(row) == word]
        if there:
            parts.append(f"shown {word} than one-hot in {_of(len(there), len(rows))}: {'; '.join(there)}")
    alone = told.count(ONE_SEED)
    rest = len(rows) - alone - sum(word in (SHOWN_BETTER, SHOWN_WORSE) for word in told)
    if rest:
        parts.append(f"no difference shown in {_of(rest, len(rows))}")
    if alone:
        means = [100 * row.difference for _, row in rows if outcome(row) == ONE_SEED]
        between = f"{min(means):+.2f}" if len(means) == 1 else f"{min(means):+.2f} to {max(means):+.2f}"
        parts.append(f"one seed alone, which shows nothing, in {_of(alone, len(rows))} ({between})")
    return "; ".join(parts)


def mistakes(rows: Compared) -> str:
    """Accuracy, and whether mistakes are milder than what CRM gives one-hot for free."""
    known = [
        (row.ahd5, setting.reference.crm_ahd5)
        for setting, row in rows
        if not isnan(row.ahd5) and not isnan(setting.reference.crm_ahd5)
    ]
    told = accuracy(rows)
    if not known:
        return told
    milder = sum(own < free for own, free in known)
    return f"{told}; mean AHD@5 below that of one-hot with CRM in {_of(milder, len(known))}"


def with_relation(name: str) -> Callable[[Compared], str]:
    """The same, of the rows whose targets were smoothed by that relation."""

    def found(rows: Compared) -> str:
        kept = [(s, row) for s, row in rows if s.compared.records[row.label][0].options.get("relation") == name]
        return mistakes(kept) if kept else f"not measured with `relation: {name}`"

    return found


def under_noise(rows: Compared) -> str:
    noisy = [(setting, row) for setting, row in rows if setting.noise]
    return accuracy(noisy) if noisy else "not measured under label noise"


def epochs(rows: Compared) -> str:
    """How many epochs sooner the mean curve is at one-hot's best."""
    if not rows:
        return "not measured"
    saved = [100 * row.epochs_saved for _, row in rows if not isnan(row.epochs_saved)]
    told = f"reaches the best accuracy that one-hot ever has in {_of(len(saved), len(rows))}"
    return f"{told}, and leaves {fmean(saved):.0f} % of the epochs then, on average" if saved else told


def _of(count: int, all_of_them: int) -> str:
    return f"{count} of {all_of_them} comparison{'s' if all_of_them != 1 else ''}"


def _place(setting: Setting, row: Row) -> str:
    options = row.label.removeprefix(row.objective).strip()
    return f"{setting.name}, {options}" if options else setting.name


NEEDS: tuple[Need, ...] = (
    Need(
        "I have a tree of my classes",
        "Start with one-hot and CRM (`labelkin.decide`), which needs no training; then the losses on the tree.",
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
        "Smooth the targets by order: `semantic-smoothing` with `relation: ordinal`.",
        ("semantic-smoothing",),
        with_relation("ordinal"),
    ),
    Need(
        "I have groups of classes",
        "Smooth within groups: `semantic-smoothing` with `relation: groups` and the groups as the taxonomy.",
        ("semantic-smoothing",),
        with_relation("groups"),
    ),
    Need(
        "I know nothing of my classes",
        "Objectives that learn the labels' kinship, or take it from the data; plain label smoothing is the bar.",
        ("label-smoothing", "label-embedding", "adaptive-labels", "mixed-cross-entropy", "retrospection"),
        accuracy,
    ),
    Need(
        "I have very many classes",
        "An embedding that is never held as K x K; give it time with `start_after`.",
        ("compressed-label-embedding",),
        accuracy,
    ),
    Need(
        "My labels are noisy",
        "Softer targets, and labels that do not follow each sample, may forgive wrong labels.",
        (
            "static-labels",
            "retrospection",
            "adaptive-labels",
            "mixed-cross-entropy",
            "label-embedding",
            "label-smoothing",
            "confidence-penalty",
        ),
        under_noise,
    ),
    Need(
        "I have time for few epochs",
        "What counts is how soon one-hot's best accuracy is there.",
        ("adaptive-labels", "label-embedding", "retrospection"),
        epochs,
    ),
)
