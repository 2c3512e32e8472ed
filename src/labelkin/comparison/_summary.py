"""Compare objectives from the records of their runs, without torch."""

from collections.abc import Iterable, Mapping, Sequence
from json import dumps
from math import isnan, nan
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from labelkin._checks import InputError, listed, near
from labelkin.comparison import _table as table
from labelkin.comparison._statistics import Paired, front, paired
from labelkin.metrics import first_epoch_reaching, share_of_epochs_saved
from labelkin.runs import Record, settings_that_count

REFERENCE = "one-hot"


class Row(NamedTuple):
    """An objective's results over seeds: means, and standard deviations if there are several seeds."""

    label: str
    objective: str
    runs: int
    seeds: tuple[int, ...]
    accuracy: float
    accuracy_spread: float
    difference: float = nan  # in accuracy to the reference, averaged over pairs of runs with the same seed
    difference_spread: float = nan
    difference_low: float = nan  # 95 % interval of the mean difference
    difference_high: float = nan
    seeds_to_settle: int | None = None  # the number of seeds that would show a difference of this size
    top5: float = nan
    severity: float = nan
    severity_spread: float = nan
    ahd5: float = nan
    ahd5_spread: float = nan
    ece: float = nan
    crm_accuracy: float = nan
    crm_severity: float = nan
    crm_ahd5: float = nan
    structure: float = nan
    bleu: float = nan  # of translation runs, from 0 to 100
    epochs_to_reference: int | None = None  # the first epoch at which the mean curve reaches the reference's best
    epochs_saved: float = nan  # share of the reference's epochs that are not needed (001)
    seconds: float = nan
    seconds_to_reference: float = nan
    on_front: bool = False  # no other objective is at least as good in both accuracy and severity


class Comparison(NamedTuple):
    """Objectives trained in one setting: a row per objective, and the records of the runs."""

    rows: list[Row]
    reference: str | None
    data: str
    tree: str  # where the tree for the severity came from
    folder: Path
    records: dict[str, list[Record]]  # the finished runs, by label
    unfinished: list[Record]
    not_begun: Sequence[str] = ()  # folder names of the plan's runs that have not begun

    def __str__(self) -> str:
        return table.comparison_as_text(self)

    def _repr_html_(self) -> str:
        return table.comparison_as_html(self)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; NaN where a number is undefined."""
        return {**table.comparison_as_dict(self), "not_begun": list(self.not_begun)}


def summarize(records: Iterable[Record], *, reference: str | None = REFERENCE) -> Comparison:
    """Compare the runs of one setting (data, backbone, training) by label.

    Args:
        records: The runs.
        reference: The label that the others are compared with. Without runs of it, differences are NaN.
    """
    given = list(records)
    if not given:
        raise InputError("compare: there are no runs to compare.")
    if len(settings := group_by_setting(given)) > 1:
        raise InputError(
            f"compare: expected runs of one setting, got {len(settings)}: {listed([name for name, _ in settings.values()], 3)}."
        )
    grouped: dict[str, list[Record]] = {}
    for record in _one_a_seed(record for record in given if record.finished):
        grouped.setdefault(record.label, []).append(record)
    rows = [_row(label, sorted(runs, key=lambda r: r.seed)) for label, runs in grouped.items()]
    stand = [row if reference not in grouped else _against(row, grouped[row.label], grouped[reference]) for row in rows]
    known = [(row.accuracy, row.severity) for row in stand]
    leads = front([point if not isnan(point[1]) else (point[0], 0.0) for point in known])
    return Comparison(
        rows=[row._replace(on_front=lead) for row, lead in zip(stand, leads, strict=True)],
        reference=reference if reference in grouped else None,
        data=given[0].data,
        tree=describe_tree(given[0].config),
        folder=given[0].path.parent,
        records=grouped,
        unfinished=[record for record in given if not record.finished],
    )


def _one_a_seed(records: Iterable[Record]) -> Iterable[Record]:
    """Keep one run per label and seed: a seed trained twice, on other threads or an older revision, counts once."""
    kept: dict[tuple[str, int], Record] = {}
    for record in records:
        known = kept.setdefault((record.label, record.seed), record)
        if record.config.get("revision", 0) > known.config.get("revision", 0):
            kept[record.label, record.seed] = record
    return kept.values()


def group_by_setting(records: Iterable[Record]) -> dict[str, tuple[str, list[Record]]]:
    """Group runs that differ in objective, options and seed alone. Returns a name and the runs of each group."""
    found: dict[str, tuple[str, list[Record]]] = {}
    for record in records:
        config = record.config
        content = config.get("data_id")  # the content at a path may have changed
        alike = [config["data"], content, config["data_options"], config["resolved_backbone"], config["taxonomy"]]
        counted = settings_that_count(config["settings"])
        training = {name: value for name, value in counted.items() if name not in NO_MATTER}
        key = dumps([alike, training], sort_keys=True)
        name = f"{record.data}, {record.backbone}, {training['epochs']} epochs"
        found.setdefault(key, (name, []))[1].append(record)
    return found


NO_MATTER = (
    "seed",
    "workers",
    "threads",
    "devices",
    "strategy",
    "accelerator",
)  # settings that do not matter for a comparison


def runs_with_labels(records: Sequence[Record], labels: Sequence[str]) -> list[Record]:
    """Return the runs with these labels."""
    known = sorted({record.label for record in records})
    for label in labels:
        if label not in known:
            raise InputError(
                f"compare: there are no runs of {label!r}; known: {listed(known, 20)}.{near(label, known)}"
            )
    return [record for record in records if record.label in labels]


def describe_tree(config: Mapping[str, Any]) -> str:
    """Say where the tree of a run came from."""
    if config["tree"] == "given":
        return f"{config['taxonomy']!r}, as given"
    if config["tree"] == "none":
        return "none, because words have no taxonomy"
    if config["tree"] == "own":
        return f"the taxonomy of {config['data']!r}"
    return "built from the training data by average linkage of the class means, because none was given"


def _row(label: str, runs: Sequence[Record]) -> Row:
    finals = [run.final or {} for run in runs]

    def over(name: str) -> list[float]:
        return [final[name] for final in finals if not isnan(final.get(name, nan))]

    accuracies = over("accuracy")
    means: dict[str, Any] = {name: _mean(over(name)) for name in MEANS}
    return Row(
        label=label,
        objective=runs[0].objective,
        runs=len(runs),
        seeds=tuple(run.seed for run in runs),
        accuracy=_mean(accuracies),
        accuracy_spread=_spread(accuracies),
        severity_spread=_spread(over("severity")),
        ahd5_spread=_spread(over("ahd5")),
        seconds=_mean([run.seconds for run in runs if run.seconds is not None]),
        **means,
    )


MEANS = ("top5", "severity", "ahd5", "ece", "crm_accuracy", "crm_severity", "crm_ahd5", "structure", "bleu")


def _against(row: Row, runs: Sequence[Record], reference: Sequence[Record]) -> Row:
    """Add the paired difference to the reference, and the epoch at which a row reaches the reference's best."""
    theirs = {run.seed: (run.final or {})["accuracy"] for run in reference}
    apart = [(run.final or {})["accuracy"] - theirs[run.seed] for run in runs if run.seed in theirs]
    found: Paired = paired(apart)
    ours, their_curve = curve(runs), curve(reference)
    reached, saved = first_epoch_reaching(ours, their_curve), share_of_epochs_saved(ours, their_curve)
    return row._replace(
        difference=found.mean,
        difference_spread=found.spread,
        difference_low=found.low,
        difference_high=found.high,
        seeds_to_settle=found.seeds_to_settle,
        epochs_to_reference=reached,
        epochs_saved=nan if saved is None else saved,
        seconds_to_reference=nan if reached is None else row.seconds * reached / len(ours),
    )


def curve(runs: Sequence[Record]) -> list[float]:
    """Return the test accuracy by epoch, averaged over seeds."""
    columns = zip(*([row.get("test_accuracy", nan) for row in run.history()] for run in runs), strict=False)
    return [mean(column) for column in columns]


def _mean(values: Sequence[float]) -> float:
    return mean(values) if values else nan


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else nan


def comparison_titles(compared: Sequence[Comparison]) -> list[str]:
    """Return a heading for each comparison: data, backbone, tree, and the options in which they differ."""
    facts = [_facts(comparison) for comparison in compared]
    names = list(dict.fromkeys(name for fact in facts for name in fact))
    differing = [name for name in names if len({dumps(fact.get(name), sort_keys=True) for fact in facts}) > 1]
    return [
        ", ".join(
            [_heading(one), *(f"{name} {_in_words(fact[name]) if name in fact else 'default'}" for name in differing)]
        )
        for one, fact in zip(compared, facts, strict=True)
    ]


def _heading(comparison: Comparison) -> str:
    return f"{comparison.data}, {_any_record(comparison).backbone}, the tree {comparison.tree}"


def _any_record(comparison: Comparison) -> Record:
    return next(record for runs in (*comparison.records.values(), comparison.unfinished) for record in runs)


def _facts(comparison: Comparison) -> dict[str, Any]:
    config = _any_record(comparison).config
    training = {name: value for name, value in config["settings"].items() if name not in NO_MATTER}
    return {**training, **config["data_options"]}


def _in_words(value: Any) -> str:
    """Join the parts of a list."""
    parts = value if isinstance(value, list) else [] if value is None else [value]
    return "+".join(map(str, parts)) or "none"
