"""The row of an objective in a comparison: means over seeds, and differences from the reference."""

from collections.abc import Sequence
from math import isfinite, isnan, nan
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin.comparison._crossed import crossed
from labelkin.comparison._statistics import front, paired
from labelkin.metrics import first_epoch_reaching, share_of_epochs_saved
from labelkin.runs import Outcomes, Record

# Metrics that a row averages over seeds, besides accuracy and seconds.
IMBALANCE = ("balanced_accuracy", "macro_f1", "decided_balanced_accuracy", "decided_macro_f1")
MEANS = ("top5", "severity", "ahd5", "ece", "crm_accuracy", "crm_severity", "crm_ahd5", "structure", "bleu")
DECIDED = ("argmax_cost", "decided_accuracy", "decided_severity", "decided_ahd5", "decided_ahd20", "decided_ece")
FLOORS = ("ahd5_floor", "ahd20_floor", "temperature")
# The basis of the costs of a row. Only the first two decide a verdict.
CALIBRATED, NOT_CALIBRATED = "calibrated", "not calibrated"
SEEDS_ONLY, UNCALIBRATED = "calibrated, seeds only", "uncalibrated, seeds only"
DECIDING = (CALIBRATED, NOT_CALIBRATED)


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
    difference: float = nan  # accuracy minus the reference's, averaged over pairs of runs with the same seed
    difference_spread: float = nan
    difference_low: float = nan  # 95 % interval of the mean difference
    difference_high: float = nan
    # The number of seeds that would show the difference; None if test samples are what is needed.
    seeds_to_settle: int | None = None
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
    test_samples: int | None = None  # None if the runs did not store it
    # The number of test samples that would show a difference in accuracy of this size.
    samples_to_settle: int | None = None
    basis: str = ""  # of the costs: CALIBRATED, NOT_CALIBRATED, SEEDS_ONLY or UNCALIBRATED; "" without a tree
    cost: float = nan  # mean cost of a decision (least expected cost, CRM)
    cost_spread: float = nan
    cost_difference: float = nan  # cost minus the reference's, averaged over pairs of runs with the same seed
    cost_low: float = nan  # 95 % interval of the mean difference, for new seeds and new test samples
    cost_high: float = nan
    cost_change: float = nan  # the difference as a share of the reference's cost
    cost_change_low: float = nan
    cost_change_high: float = nan
    cost_seeds_to_settle: int | None = None
    cost_samples_to_settle: int | None = None
    cost_largest_share: float = nan  # share of the difference that is due to a single test sample
    argmax_cost: float = nan  # mean cost of the most probable class
    decided_accuracy: float = nan
    decided_accuracy_spread: float = nan
    decided_accuracy_change: float = nan  # mean difference from the reference over the seeds that both have
    decided_severity: float = nan
    decided_severity_spread: float = nan
    decided_ahd5: float = nan
    decided_ahd20: float = nan
    decided_ece: float = nan
    ahd5_floor: float = nan  # the least AHD@5 that the tree allows
    ahd20_floor: float = nan
    temperature: float = nan
    balanced_accuracy: float = nan  # mean over the classes
    macro_f1: float = nan
    decided_balanced_accuracy: float = nan
    decided_macro_f1: float = nan


def row_of(label: str, runs: Sequence[Record]) -> Row:
    """Return the means of an objective's runs."""
    finals = [run.final or {} for run in runs]

    def over(name: str) -> list[float]:
        return [final[name] for final in finals if isfinite(final.get(name, nan))]

    accuracies = over("accuracy")
    means: dict[str, Any] = {name: _mean(over(name)) for name in (*MEANS, *IMBALANCE, *DECIDED, *FLOORS)}
    costs = [cost for run in runs if isfinite(cost := cost_of(run))]
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
        cost=_mean(costs),
        cost_spread=_spread(costs),
        decided_accuracy_spread=_spread(over("decided_accuracy")),
        decided_severity_spread=_spread(over("decided_severity")),
        **_tested([run.outcomes() for run in runs], finals),
        **means,
    )


def final_of(run: Record, name: str) -> float:
    """Return a metric of a run, NaN if it has none."""
    return (run.final or {}).get(name, nan)


def cost_of(run: Record) -> float:
    """Return the mean cost of a run's decisions; for an earlier run, that of its uncalibrated decisions (CRM)."""
    final = run.final or {}
    if "decided_cost" in final:
        return final["decided_cost"]
    accuracy, severity = final.get("crm_accuracy", nan), final.get("crm_severity", nan)
    return 0.0 if accuracy == 1 else (1 - accuracy) * severity


def _tested(outcomes: Sequence[Outcomes | None], finals: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the size of the test set and the basis of the costs of runs."""
    if all(isnan(final.get("decided_cost", nan)) for final in finals):
        earlier = any(not isnan(final.get("crm_accuracy", nan)) and "decided_cost" not in final for final in finals)
        known = next((found for found in outcomes if found is not None), None)
        return {
            "basis": UNCALIBRATED if earlier else "",
            "test_samples": None if known is None else len(known.cost),
        }
    known_outcomes = [found for found in outcomes if found is not None]
    if len(known_outcomes) < len(outcomes):
        return {"basis": SEEDS_ONLY}
    calibrated = all(found.calibration_samples > 0 for found in known_outcomes)
    return {
        "basis": CALIBRATED if calibrated else NOT_CALIBRATED,
        "test_samples": len(known_outcomes[0].cost),
    }


class Difference(NamedTuple):
    """A mean difference with its interval: over seeds and test samples, or over seeds alone."""

    mean: float
    spread: float
    low: float
    high: float
    seeds_to_settle: int | None
    samples_to_settle: int | None = None
    largest_share: float = nan


def difference(by_seed: Sequence[float], by_sample: npt.NDArray[np.float64] | None) -> Difference:
    """Summarize the differences of pairs of runs; `by_sample` (pairs, n) has those on each test sample, if they are known."""
    alone = paired(by_seed)
    if by_sample is None:
        return Difference(*alone)
    found = crossed(by_sample)
    return Difference(
        found.mean,
        alone.spread,
        found.low,
        found.high,
        None if found.needs_samples else found.seeds_to_settle,
        found.samples_to_settle,
        found.largest_share,
    )


def against(row: Row, runs: Sequence[Record], reference: Sequence[Record]) -> Row:
    """Add the paired differences from the reference, and the epoch at which a row reaches the reference's best."""
    theirs = {run.seed: run for run in reference}
    pairs = [(run, theirs[run.seed]) for run in runs if run.seed in theirs]
    outcomes = _outcomes(pairs)
    accuracies = [final_of(ours, "accuracy") - final_of(other, "accuracy") for ours, other in pairs]
    accuracy = difference(
        [change for change in accuracies if isfinite(change)],
        None
        if outcomes is None
        else np.stack([ours.correct.astype(float) - other.correct for ours, other in outcomes]),
    )
    decided = [final_of(ours, "decided_accuracy") - final_of(other, "decided_accuracy") for ours, other in pairs]
    curves = curve(runs), curve(reference)
    reached, saved = first_epoch_reaching(*curves), share_of_epochs_saved(*curves)
    return _cost_against(row, pairs, outcomes)._replace(
        decided_accuracy_change=_mean([change for change in decided if isfinite(change)]),
        difference=accuracy.mean,
        difference_spread=accuracy.spread,
        difference_low=accuracy.low,
        difference_high=accuracy.high,
        seeds_to_settle=accuracy.seeds_to_settle,
        samples_to_settle=accuracy.samples_to_settle,
        epochs_to_reference=reached,
        epochs_saved=nan if saved is None else saved,
        seconds_to_reference=nan if reached is None else row.seconds * reached / len(curves[0]),
    )


def _cost_against(
    row: Row, pairs: Sequence[tuple[Record, Record]], outcomes: Sequence[tuple[Outcomes, Outcomes]] | None
) -> Row:
    """Add the paired difference of the costs, unless it would compare calibrated runs with uncalibrated earlier ones."""
    costs = [(cost_of(ours), cost_of(other)) for ours, other in pairs]
    alike = all(
        ("decided_cost" in (ours.final or {})) == ("decided_cost" in (other.final or {})) for ours, other in pairs
    )
    if not pairs or not alike or not all(isfinite(ours - other) for ours, other in costs):
        return row
    by_sample = (
        np.stack([ours.cost - other.cost for ours, other in outcomes])
        if outcomes is not None and row.basis in DECIDING
        else None
    )
    found = difference([ours - other for ours, other in costs], by_sample)
    base = mean(other for _, other in costs)
    low, middle, high = ((value / base if base else nan) for value in (found.low, found.mean, found.high))
    return row._replace(
        basis=SEEDS_ONLY if by_sample is None and row.basis in DECIDING else row.basis,
        cost_difference=found.mean,
        cost_low=found.low,
        cost_high=found.high,
        cost_change=middle,
        cost_change_low=low,
        cost_change_high=high,
        cost_seeds_to_settle=found.seeds_to_settle,
        cost_samples_to_settle=found.samples_to_settle,
        cost_largest_share=found.largest_share,
    )


def _outcomes(pairs: Sequence[tuple[Record, Record]]) -> list[tuple[Outcomes, Outcomes]] | None:
    """Return the outcomes of pairs of runs; None unless all runs have them for the same test samples."""
    found = [(ours.outcomes(), other.outcomes()) for ours, other in pairs]
    known = [(ours, other) for ours, other in found if ours is not None and other is not None]
    tested = {each.samples for pair in known for each in pair}
    return known if known and len(known) == len(found) and len(tested) == 1 else None


def rows_of_decisions(rows: Sequence[Row]) -> list[Row]:
    """Return rows whose accuracy, severity and Pareto front are those of the decisions by the least expected cost."""
    replaced = [
        row._replace(
            accuracy=row.decided_accuracy,
            accuracy_spread=row.decided_accuracy_spread,
            severity=row.decided_severity,
            severity_spread=row.decided_severity_spread,
        )
        for row in rows
        if not isnan(row.decided_accuracy)
    ]
    leads = front([(row.accuracy, 0.0 if isnan(row.severity) else row.severity) for row in replaced])
    return [row._replace(on_front=lead) for row, lead in zip(replaced, leads, strict=True)]


def curve(runs: Sequence[Record]) -> list[float]:
    """Return the test accuracy by epoch, averaged over seeds."""
    columns = zip(*([row.get("test_accuracy", nan) for row in run.history()] for run in runs), strict=False)
    return [mean(column) for column in columns]


def _mean(values: Sequence[float]) -> float:
    return mean(values) if values else nan


def _spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else nan
