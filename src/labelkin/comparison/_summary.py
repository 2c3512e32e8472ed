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
# Settings in which the runs of one comparison may differ.
IGNORED_SETTINGS = ("seed", "workers", "graph", "threads", "devices", "strategy", "accelerator")
# Metrics that a row averages over seeds, besides accuracy and seconds.
MEANS = ("top5", "severity", "ahd5", "ece", "crm_accuracy", "crm_severity", "crm_ahd5", "structure", "bleu")


class Row(NamedTuple):
    """The results of an objective over seeds: means, and standard deviations if there are several seeds.

    Accuracies and shares are between 0 and 1. Values are NaN where they are undefined.

    Args:
        label: The objective with its options, or the plan's name for it.
        objective: The name of the objective.
        runs: The number of finished runs.
        seeds: Their seeds.
        accuracy: The mean test accuracy.
        accuracy_spread: The standard deviation of the test accuracy.

    Example:
        >>> from labelkin.comparison import Row
        >>> Row("one-hot", "one-hot", runs=3, seeds=(0, 1, 2), accuracy=0.91, accuracy_spread=0.01).runs
        3
    """

    label: str
    objective: str
    runs: int
    seeds: tuple[int, ...]
    accuracy: float
    accuracy_spread: float
    difference: float = nan  # of the accuracy to the reference's, averaged over pairs of runs with the same seed
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
    bleu: float = nan  # only for translation runs; 0 to 100
    epochs_to_reference: int | None = None  # the first epoch at which the mean curve reaches the reference's best
    epochs_saved: float = nan  # share of the reference's epochs that are not needed (001)
    seconds: float = nan
    seconds_to_reference: float = nan
    on_front: bool = False  # no other objective is at least as good in both accuracy and severity


class Comparison(NamedTuple):
    """The comparison of objectives that were trained in one setting. `print` shows it as a table.

    Args:
        rows: One row per objective.
        reference: The label that the others are compared with. None if it has no finished runs.
        data: The name or path of the data.
        tree: The origin of the tree that severities are measured on, in words.
        folder: The folder of the runs.
        records: The finished runs by label.
        unfinished: The runs that have not finished.
        not_begun: The folder names of the plan's runs that have not begun.

    Example:
        >>> import labelkin, tempfile
        >>> compared = labelkin.compare("digits", objectives=["one-hot"], out=tempfile.mkdtemp(), epochs=1)
        >>> compared.reference, compared.data, [row.runs for row in compared.rows]
        ('one-hot', 'digits', [1])
    """

    rows: list[Row]
    reference: str | None
    data: str
    tree: str
    folder: Path
    records: dict[str, list[Record]]
    unfinished: list[Record]
    not_begun: Sequence[str] = ()

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
        reference: The label that the others are compared with. If it has no finished runs, differences are NaN.

    Returns:
        The comparison.

    Example:
        >>> import labelkin, tempfile
        >>> store = tempfile.mkdtemp()
        >>> run = labelkin.train("digits", out=f"{store}/run", epochs=1)
        >>> [row.label for row in labelkin.comparison.summarize(labelkin.runs.Store(store).records()).rows]
        ['one-hot']
    """
    given = list(records)
    if not given:
        raise InputError("compare: there are no runs to compare.")
    if len(settings := group_by_setting(given)) > 1:
        raise InputError(
            f"compare: expected runs of one setting, got {len(settings)}: {listed([name for name, _ in settings.values()], 3)}."
        )
    grouped: dict[str, list[Record]] = {}
    for record in _one_per_seed(record for record in given if record.finished):
        grouped.setdefault(record.label, []).append(record)
    rows = [_row(label, sorted(runs, key=lambda r: r.seed)) for label, runs in grouped.items()]
    compared = [
        row if reference not in grouped else _against(row, grouped[row.label], grouped[reference]) for row in rows
    ]
    known = [(row.accuracy, row.severity) for row in compared]
    leads = front([point if not isnan(point[1]) else (point[0], 0.0) for point in known])
    return Comparison(
        rows=[row._replace(on_front=lead) for row, lead in zip(compared, leads, strict=True)],
        reference=reference if reference in grouped else None,
        data=given[0].data,
        tree=describe_tree(given[0].config),
        folder=given[0].path.parent,
        records=grouped,
        unfinished=[record for record in given if not record.finished],
    )


def _one_per_seed(records: Iterable[Record]) -> Iterable[Record]:
    """Keep one run per label and seed, that of the latest revision of the objective."""
    kept: dict[tuple[str, int], Record] = {}
    for record in records:
        known = kept.setdefault((record.label, record.seed), record)
        if record.config.get("revision", 0) > known.config.get("revision", 0):
            kept[record.label, record.seed] = record
    return kept.values()


def group_by_setting(records: Iterable[Record]) -> dict[str, tuple[str, list[Record]]]:
    """Group runs that differ only in objective, options and seed. Returns a name and the runs of each group."""
    groups: dict[str, tuple[str, list[Record]]] = {}
    for record in records:
        config = record.config
        content = config.get("data_id")  # the content at a path may have changed
        alike = [config["data"], content, config["data_options"], config["resolved_backbone"], config["taxonomy"]]
        counted = settings_that_count(config["settings"])
        training = {name: value for name, value in counted.items() if name not in IGNORED_SETTINGS}
        key = dumps([alike, training], sort_keys=True)
        name = f"{record.data}, {record.backbone}, {training['epochs']} epochs"
        groups.setdefault(key, (name, []))[1].append(record)
    return groups


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
    """Describe the origin of the tree of a run."""
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


def _against(row: Row, runs: Sequence[Record], reference: Sequence[Record]) -> Row:
    """Add the paired difference to the reference, and the epoch at which a row reaches the reference's best."""
    theirs = {run.seed: (run.final or {})["accuracy"] for run in reference}
    differences = [(run.final or {})["accuracy"] - theirs[run.seed] for run in runs if run.seed in theirs]
    found: Paired = paired(differences)
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
    record = _any_record(comparison)
    training = {name: value for name, value in record.settings.items() if name not in IGNORED_SETTINGS}
    return {**training, **record.config["data_options"]}


def _in_words(value: Any) -> str:
    """Join the parts of a list."""
    parts = value if isinstance(value, list) else [] if value is None else [value]
    return "+".join(map(str, parts)) or "none"
