"""The demo, a comparison of objectives that ends in three lines: in which language is this name?"""

import os
from collections.abc import Callable, Sequence
from math import isnan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin import decide
from labelkin._checks import counted
from labelkin._files import contains_run, remove_run
from labelkin.comparison._api import compare_plan, plan_for
from labelkin.comparison._plan import Plan
from labelkin.comparison._statistics import paired
from labelkin.comparison._summary import REFERENCE, Comparison
from labelkin.comparison._verdict import Verdict
from labelkin.data import ArraySplit, Dataset
from labelkin.runs import DataCache, Predictor, RunFolder, load_run
from labelkin.structure import Taxonomy
from labelkin.training import Progress

DATA = "languages"
BACKBONE = "text-head-256"
OBJECTIVES = (REFERENCE, "label-smoothing", "hierarchical-cross-entropy", "kin")
# Half of the calibration samples fits the temperature, the other half the guarantee.
SETTINGS: dict[str, Any] = {"epochs": 20, "optimizer": "adam", "lr": 2e-3, "schedule": "cosine", "calibration": 0.1}
SEEDS = (0, 1, 2)  # with fewer seeds no difference would be significant
JOBS = 2
EXAMPLES = ("Danish", "German", "Italian", "Basque")  # instead of Swedish
GROUPS = "a group such as Indo-European or Romance"  # the groups that one-hot answers with most
COSTS = ("decided_cost", "argmax_cost", "decided_ahd5", "ahd5")  # metrics, in the order of `Costs`
ALPHA = 0.05  # the largest probability of a wrong answer
BATCH = 1024


class Demo(NamedTuple):
    """The comparison of a demo, its result in three lines, and a description of the problem."""

    comparison: Comparison
    lines: tuple[str, str, str]
    problem: str


class Costs(NamedTuple):
    """Mean costs of the answers of a run, and of its five best ones, by least expected cost and by probability."""

    decided: float
    argmax: float
    decided_five: float
    argmax_five: float


class Answered(NamedTuple):
    """Shares of samples that are answered with a class, with a node above the classes or not at all, and that are right."""

    by_class: float
    above: float
    nothing: float
    right: float


def demo(
    out: str | os.PathLike[str] = "runs/demo",
    *,
    fresh: bool = False,
    data: DataCache | None = None,
    progress: Callable[[str, int, int], Progress],
    say: Callable[[str], None] = lambda line: None,
) -> Demo:
    """Compare four objectives on `languages`, with the settings of `results/plans/languages.yaml` and three seeds.

    Args:
        out: The folder of the runs. Finished runs there are not repeated.
        fresh: Whether to remove the demo's runs first.
        data: Data sets that are already loaded; newly loaded ones are added, so that the report does not read them again.
        progress: Called with a run's title, epochs and steps per epoch; returns the object that shows them.
        say: Called with each line of status.

    Returns:
        The comparison, three lines (which objective to use, what calibrated decisions of least cost save over the most
        probable class, and what fallback with a guarantee answers), and a description of the problem.
    """
    sets = DataCache() if data is None else data
    plan = plan_for(DATA, objectives=OBJECTIVES, seeds=SEEDS, backbone=BACKBONE, training=SETTINGS)
    if fresh:
        remove_runs(plan, Path(out))
    problem = described(sets.workspace(plan.runs()[0].spec).dataset)
    say(problem)
    jobs = min(JOBS, os.cpu_count() or 1)
    comparison = compare_plan(plan, out, jobs=jobs, data=sets, progress=progress, say=say)[0]
    verdict = comparison.verdict
    chosen = verdict.winner or REFERENCE
    runs = [run for run in plan.runs() if run.label == chosen]
    finals = [RunFolder(Path(out) / run.name).final or {} for run in runs]
    costs = [Costs(*(final[name] for name in COSTS)) for final in finals]
    datasets = [sets.workspace(run.spec).dataset for run in runs]
    answers = [answered_by(load_run(Path(out) / run.name), found) for run, found in zip(runs, datasets, strict=True)]
    calibrated = len(decide.split_halves(len(datasets[0].calibration or ())).measured)
    lines = (
        training_line(verdict),
        saving_line(costs),
        guarantee_line(answers, calibrated, len(datasets[0].test)),
    )
    return Demo(comparison, lines, problem)


def described(dataset: Dataset) -> str:
    """Describe the task, the amount of data and the costs of mistakes."""
    tree = dataset.taxonomy
    assert tree is not None
    true, *others = (tree.classes.index(name) for name in ("Swedish", *EXAMPLES))
    near, *middle, far = (f"{cost:g}" for cost in tree.distance("height", true, others))
    between = "".join(f", {name} {cost}" for name, cost in zip(EXAMPLES[1:-1], middle, strict=True))
    return (
        "In which language is the name of a country, language or currency? "
        f"{counted(len(tree.classes), 'language')}, {counted(len(dataset.train), 'name')} to learn from. "
        "A mistake costs more the less the languages are related: instead of Swedish, "
        f"{EXAMPLES[0]} costs {near}{between} and {EXAMPLES[-1]} {far}. One-hot is the usual cross entropy."
    )


def training_line(verdict: Verdict) -> str:
    """Say which objective to train with."""
    return f"Train: {verdict.advice[:1].lower()}{verdict.advice[1:]}. {verdict}"


def saving_line(costs: Sequence[Costs]) -> str:
    """Say what calibrated decisions of least cost save over the most probable classes, with intervals over runs."""
    one = _saved([(run.decided, run.argmax) for run in costs], "the most probable one")
    five = _saved([(run.decided_five, run.argmax_five) for run in costs], "the five most probable ones")
    return f"Decide by least cost: a list of five answers {five}; one answer {one}."


def _saved(costs: Sequence[tuple[float, float]], other: str) -> str:
    """Return how much less answers cost than others, from (after, before) of each run, and whether that is shown."""
    found = paired([100 * (after / before - 1) if before else 0.0 for after, before in costs])
    interval = "" if isnan(found.low) else f", 95 % interval {_signed(found.low)} to {_signed(found.high)} %"
    if not found.shown:
        return f"is not shown to cost less than {other} ({_signed(found.mean)} %{interval})"
    more = "more" if found.mean > 0 else "less"
    return f"costs {abs(found.mean):.1f} % {more} than {other}{interval.replace(', ', ' (', 1)})"


def _signed(percent: float) -> str:
    return f"{round(percent, 1) + 0.0:+.1f}".replace("-", "−")


def guarantee_line(answers: Sequence[Answered], calibrated: int, tested: int) -> str:
    """Say what fallback with a guarantee answers, on average over runs.

    The guarantee is one over splits. On a single split, the share of right answers varies around it as a Beta variable does,
    because of the samples that it is fitted on, and as a binomial one because of the test samples (Vovk, 2012).

    Args:
        answers: The answers of each run.
        calibrated: The number of samples that the guarantee is fitted on.
        tested: The number of test samples.
    """
    spread = sqrt(ALPHA * (1 - ALPHA) * (1 / (calibrated + 2) + 1 / tested))
    mean = Answered(*np.mean(answers, axis=0).tolist())
    by_class, above = round(100 * mean.by_class), round(100 * mean.above)
    return (
        f"Fall back to be right or unanswered {100 * (1 - ALPHA):.0f} % of the time: {by_class} % of the names get a language, "
        f"{above} % {GROUPS}, {100 - by_class - above} % no answer (measured: "
        f"{100 * mean.right:.1f} %; one split varies by about {200 * spread:.0f} points)."
    )


def answered_by(model: Predictor, dataset: Dataset) -> Answered:
    """Fit the temperature and the guarantee of a model on halves of the calibration samples, and answer the test samples."""
    held_out, test, tree = dataset.calibration, dataset.test, model.taxonomy
    assert isinstance(held_out, ArraySplit)
    assert isinstance(test, ArraySplit)
    scores, target = _scores(model, held_out.inputs), held_out.targets
    halves = decide.split_halves(len(target))
    temperature = decide.Temperature().fit(scores[halves.fitted], target[halves.fitted])

    def probs(values: Tensor) -> Tensor:
        return decide.node_probs(torch.softmax(temperature.apply(values).double(), -1), tree)

    guarantee = decide.GuaranteedFallback(ALPHA).fit(probs(scores[halves.measured]), target[halves.measured], tree)
    return count_answers(guarantee.apply(probs(_scores(model, test.inputs)), tree), test.targets, tree)


def count_answers(nodes: Tensor, target: Tensor, tree: Taxonomy) -> Answered:
    """Return the shares of the kinds of answers; (n,) nodes, where the root means "no answer", and (n,) true classes."""
    found, true = nodes.numpy(), tree.leaves[target.numpy()]
    is_class = np.isin(found, tree.leaves)
    right = np.asarray(tree.lca(found, true)) == found
    return Answered(
        float(is_class.mean()),
        float((~is_class & (found != 0)).mean()),
        float((found == 0).mean()),
        float(right.mean()),
    )


@torch.no_grad()
def _scores(model: Predictor, inputs: Tensor) -> Tensor:
    return torch.cat([model(part).float() for part in torch.split(inputs, BATCH)])


def remove_runs(plan: Plan, folder: Path) -> None:
    """Remove the files of the demo's runs. Files that labelkin did not write are kept."""
    for run in plan.runs():
        if contains_run(folder / run.name):
            remove_run(folder / run.name)
