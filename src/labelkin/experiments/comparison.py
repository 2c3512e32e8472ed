"""Every objective under one protocol: the main job."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from labelkin._checks import InputError, check_count, check_names
from labelkin.experiments.run import Bench, check_same, train, tree_in_words
from labelkin.experiments.spec import RunSpec, check_chosen
from labelkin.experiments.table import as_dict, as_html, as_text
from labelkin.objectives import OBJECTIVES
from labelkin.training import RunFolder, Settings
from labelkin.training.progress import Progress, Silent

REFERENCE = "one-hot"


class Row(NamedTuple):
    """An objective's results over seeds: means, and the spread (standard deviation) where there are several."""

    objective: str
    runs: int
    accuracy: float
    accuracy_spread: float
    difference: float  # of the accuracy to the reference's, run by run with the same seed
    difference_spread: float
    top5: float
    severity: float
    epochs_to_reference: int | None  # the first epoch at which the mean curve reaches the reference's best
    seconds: float


class Comparison(NamedTuple):
    rows: list[Row]
    folder: Path
    tree: str  # where the tree that severity is measured on came from

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; NaN where a number is undefined."""
        return as_dict(self)


def compare(
    data: str | os.PathLike[str] = "digits",
    *,
    objectives: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
    backbone: str | None = None,
    taxonomy: str | None = None,
    out: str | os.PathLike[str] = "runs",
    data_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[str, int, int], Progress] = lambda title, epochs, steps: Silent(),
    **settings: Any,
) -> Comparison:
    """Train each objective on the same data, batches and first weights, and put the results side by side.

    `options` maps an objective to its own; `settings` are those of `labelkin.training.Settings`. Runs are kept under
    `out`; those that are finished there with the same configuration are not repeated, and broken ones are gone on with.
    """
    names = list(OBJECTIVES) if objectives is None else list(objectives)
    if not names or not seeds:
        raise InputError("compare: expected at least one objective and one seed.")
    check_names("objectives", names)
    for seed in seeds:
        check_count("seed", seed, least=0)
    if len(set(seeds)) < len(seeds):
        raise InputError(f"seeds: expected each once, got {', '.join(map(str, seeds))}.")
    base = RunSpec(
        data=os.fspath(data),
        backbone=backbone,
        taxonomy=taxonomy,
        data_options=dict(data_options or {}),
        settings=Settings.of(**settings),
    )
    specs = [
        replace(
            base,
            objective=name,
            options=dict((options or {}).get(name, {})),
            settings=replace(base.settings, seed=seed),
        )
        for seed in seeds
        for name in names
    ]
    check_chosen(options or {}, names)
    bench, folder = Bench(base), Path(out)
    waiting = [spec for spec in specs if not _finished(run_path(folder, spec), spec)]
    for spec in waiting:
        bench.try_out(spec)
    for spec in waiting:
        title = f"{spec.objective} seed {spec.settings.seed}"
        shown = partial(progress, title, spec.settings.epochs)
        train(spec, run_path(folder, spec), resume=True, bench=bench, progress=shown)
    rows = [_row(name, [run_path(folder, s) for s in specs if s.objective == name]) for name in names]
    tree = tree_in_words(RunFolder(run_path(folder, specs[0])).config)
    return Comparison(_with_reference(rows, folder, specs), folder, tree)


def run_path(folder: Path, spec: RunSpec) -> Path:
    return folder / spec.objective / f"seed-{spec.settings.seed}"


def _finished(path: Path, spec: RunSpec) -> bool:
    """Whether the run is there and done; one of another configuration is never mixed in."""
    if not (path / "config.json").exists():
        return False
    check_same(path, spec)
    return RunFolder(path).final is not None


def _row(name: str, paths: Sequence[Path]) -> Row:
    finals = [RunFolder(path).final or {} for path in paths]
    accuracies = _accuracies(paths)
    return Row(
        objective=name,
        runs=len(finals),
        accuracy=mean(accuracies),
        accuracy_spread=_spread(accuracies),
        difference=nan,
        difference_spread=nan,
        top5=_mean(final.get("top5") for final in finals),
        severity=_mean(final.get("severity") for final in finals),
        epochs_to_reference=None,
        seconds=_mean(RunFolder(path).seconds for path in paths),
    )


def _mean(values: Any) -> float:
    known = [value for value in values if value is not None]
    return mean(known) if known else nan


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else nan


def _with_reference(rows: list[Row], folder: Path, specs: Sequence[RunSpec]) -> list[Row]:
    """Fill in how each objective stands to the reference: the paired difference, and when it reaches its best."""
    paths = {row.objective: [run_path(folder, s) for s in specs if s.objective == row.objective] for row in rows}
    if REFERENCE not in paths:
        return rows
    best, reference = max(_curve(paths[REFERENCE])), _accuracies(paths[REFERENCE])
    filled = []
    for row in rows:
        reached = next((i + 1 for i, a in enumerate(_curve(paths[row.objective])) if a >= best), None)
        apart = [a - b for a, b in zip(_accuracies(paths[row.objective]), reference, strict=True)]
        filled.append(
            row._replace(difference=mean(apart), difference_spread=_spread(apart), epochs_to_reference=reached)
        )
    return filled


def _accuracies(paths: Sequence[Path]) -> list[float]:
    return [(RunFolder(path).final or {})["accuracy"] for path in paths]


def _curve(paths: Sequence[Path]) -> list[float]:
    """Test accuracy by epoch, averaged over seeds."""
    return [
        mean(column)
        for column in zip(*([row["test_accuracy"] for row in RunFolder(p).history()] for p in paths), strict=True)
    ]
