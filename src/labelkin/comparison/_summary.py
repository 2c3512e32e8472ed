"""Compare objectives from the records of their runs, without torch. The runs of a cross-validation are pooled."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from json import dumps
from math import isnan, nan
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from labelkin._checks import InputError, counted, listed, near
from labelkin.comparison import _table as table
from labelkin.comparison._cost_verdict import judge
from labelkin.comparison._differences import IGNORED_SETTINGS, differ, setting_of
from labelkin.comparison._rows import Row, against, row_of
from labelkin.comparison._statistics import front
from labelkin.comparison._verdict import Verdict
from labelkin.runs import NOT_OF_THE_TEST_SET, Outcomes, Record, settings_that_count

# Means over the mistakes alone are pooled by the number of mistakes; other means by the number of test samples.
OVER_MISTAKES = {"severity": "accuracy", "crm_severity": "crm_accuracy", "decided_severity": "decided_accuracy"}
REFERENCE = "one-hot"


def fold_of(record: Record) -> int | None:
    """Return the fold of a run; None if it is not part of a cross-validation."""
    fold = record.config["data_options"].get("fold") if "data_options" in record.config else None
    return None if fold is None else int(fold)


class PooledRecord(Record):
    """The folds of one objective and seed as one run: those of a cross-validation, with the configuration of the first."""

    parts: tuple[Record, ...]

    def history(self) -> list[dict[str, float]]:
        epochs = zip(*(part.history() for part in self.parts), strict=False)
        return [{name: mean(row.get(name, nan) for row in rows) for name in rows[0]} for rows in epochs]

    def outcomes(self) -> Outcomes | None:
        found = [part.outcomes() for part in self.parts]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        return Outcomes(
            cost=np.concatenate([each.cost for each in known]),
            correct=np.concatenate([each.correct for each in known]),
            samples=sha256(" ".join(each.samples for each in known).encode()).hexdigest()[:16],
            calibration_samples=min(each.calibration_samples for each in known),
        )


class Pooled(NamedTuple):
    """Runs with their folds pooled, and a description of the seeds that were left out because folds are missing."""

    records: list[Record]
    incomplete: list[str]


def pool_folds(records: Iterable[Record]) -> Pooled:
    """Pool the folds of each label and seed. Runs without folds are returned unchanged."""
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record.label, record.seed), []).append(record)
    pooled: list[Record] = []
    incomplete = []
    for (label, seed), parts in groups.items():
        if fold_of(parts[0]) is None:
            pooled.extend(parts)
            continue
        wanted = int(parts[0].config["data_options"]["folds"])
        if len(parts) == wanted:
            pooled.append(_pool(sorted(parts, key=lambda part: fold_of(part) or 0)))
        else:
            incomplete.append(f"{label} seed {seed} ({len(parts)} of {counted(wanted, 'fold')})")
    return Pooled(pooled, incomplete)


def _pool(parts: Sequence[Record]) -> PooledRecord:
    first = parts[0]
    finals = [part.final or {} for part in parts]
    sizes = [1 if (found := part.outcomes()) is None else len(found.cost) for part in parts]
    names = [name for name in finals[0] if all(name in final for final in finals)]
    final = {name: _pooled_mean(name, finals, sizes) for name in names}
    seconds = [part.seconds for part in parts if part.seconds is not None]
    record = PooledRecord(first.id, first.path, first.label, first.config, final, sum(seconds) if seconds else None)
    record.parts = tuple(parts)
    return record


def _pooled_mean(name: str, finals: Sequence[dict[str, float]], sizes: Sequence[int]) -> float:
    """Return the mean of a metric over all test samples of the folds in which it is defined."""
    accuracy = OVER_MISTAKES.get(name)
    weights = [
        size * (1 - final.get(accuracy, nan)) if accuracy else float(size)
        for final, size in zip(finals, sizes, strict=True)
    ]
    known = [(final[name], w) for final, w in zip(finals, weights, strict=True) if not isnan(final[name]) and w > 0]
    return sum(value * w for value, w in known) / sum(w for _, w in known) if known else nan


class Comparison(NamedTuple):
    """The comparison of objectives that were trained in one setting. `print` shows it as a table.

    Args:
        rows: One row per objective.
        reference: The label that the others are compared with. None if it has no finished runs.
        data: The name or path of the data.
        tree: A description of the tree that severities are measured on.
        folder: The folder of the runs.
        records: The finished runs by label.
        unfinished: The runs that have not finished.
        not_begun: The folder names of the plan's runs that have not begun.
        built_tree: Whether the tree was built from the training data. Costs on such a tree decide no verdict.
        costs: The file of costs that decisions use; None if they use distances in the tree.
        incomplete: A description of the seeds that are left out because folds are missing.

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
    built_tree: bool = False
    costs: str | None = None
    incomplete: Sequence[str] = ()

    @property
    def verdict(self) -> Verdict:
        """Which objective decides at the least cost, by how much and at what accuracy; `str` gives the first sentence."""
        return judge(self)

    def __str__(self) -> str:
        return table.comparison_as_text(self)

    def _repr_html_(self) -> str:
        return table.comparison_as_html(self)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values; NaN where a number is undefined."""
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
    finished, incomplete = pool_folds(_one_per_seed(record for record in given if record.finished))
    grouped: dict[str, list[Record]] = {}
    for record in finished:
        grouped.setdefault(record.label, []).append(record)
    rows = [row_of(label, sorted(runs, key=lambda r: r.seed)) for label, runs in grouped.items()]
    compared = [
        row if reference not in grouped else against(row, grouped[row.label], grouped[reference]) for row in rows
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
        built_tree=given[0].config["tree"] == "built" and given[0].settings["costs"] is None,
        costs=given[0].settings["costs"],
        incomplete=incomplete,
    )


def _one_per_seed(records: Iterable[Record]) -> Iterable[Record]:
    """Keep one run per label, seed and fold, that of the latest revision of the objective."""
    kept: dict[tuple[str, int, int | None], Record] = {}
    for record in records:
        known = kept.setdefault((record.label, record.seed, fold_of(record)), record)
        if record.config.get("revision", 0) > known.config.get("revision", 0):
            kept[record.label, record.seed, fold_of(record)] = record
    return kept.values()


def group_by_setting(records: Iterable[Record]) -> dict[str, tuple[str, list[Record]]]:
    """Group runs that differ only in objective, options, seed, fold and use of partial labels.

    Returns:
        A name and the runs of each group.
    """
    groups: dict[str, tuple[str, list[Record]]] = {}
    for record in records:
        config = record.config
        content = config.get("data_id")  # the content at a path may have changed
        options = {name: value for name, value in config["data_options"].items() if name not in NOT_OF_THE_TEST_SET}
        alike = [config["data"], content, options, config["resolved_backbone"], config["taxonomy"]]
        settings = settings_that_count(config["settings"])
        training = {name: value for name, value in settings.items() if name not in IGNORED_SETTINGS}
        key = dumps([alike, training], sort_keys=True)
        name = f"{record.data}, {record.backbone}, {counted(training['epochs'], 'epoch')}"
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


def comparison_titles(compared: Sequence[Comparison]) -> list[str]:
    """Return a heading for each comparison: data, backbone, tree, and the options in which they differ."""
    facts = [_facts(comparison) for comparison in compared]
    names = list(dict.fromkeys(name for fact in facts for name in fact))
    differing = [name for name in names if differ([fact.get(name) for fact in facts])]
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
    return {
        name: value for name, value in setting_of(_any_record(comparison)).items() if name not in NOT_OF_THE_TEST_SET
    }


def _in_words(value: Any) -> str:
    """Join the parts of a list."""
    parts = value if isinstance(value, list) else [] if value is None else [value]
    return "+".join(map(str, parts)) or "none"
