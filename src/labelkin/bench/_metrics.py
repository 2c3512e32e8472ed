"""Time every metric against its literal implementation and other packages."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin import metrics
from labelkin._checks import check_count
from labelkin.bench import _literal as literal
from labelkin.bench._literal import Plain, plain
from labelkin.bench._measure import fresh_pass, machine, one_thread, timed
from labelkin.bench._peers import Predictions, make, peers
from labelkin.bench._result import Benchmark, Row, Slow, first_part, slow
from labelkin.metrics import UndefinedMetric


class Case(NamedTuple):
    """A metric to time: `ours` returns its result, `literal` the same numbers as a list."""

    ours: Callable[[Predictions], object]
    literal: Callable[[Plain], list[float]] | None = None


def _on_classes(metric: Callable[..., object]) -> Callable[[Predictions], object]:
    return lambda given: metric(given.predicted, given.target, given.taxonomy)


def _weighted(metric: Callable[..., object]) -> Callable[[Predictions], object]:
    return lambda given: metric(_confusion(given), given.distances)


def _confusion(given: Predictions) -> Tensor:
    return metrics.confusion_matrix(given.predicted, given.target, len(given.distances))


def _distance(k: int) -> Case:
    return Case(
        lambda given: metrics.average_distance(given.logits, given.target, given.taxonomy, k=k),
        partial(literal.average_distance, k=k),
    )


def by_kmeans(given: Predictions) -> metrics.Metric:
    """Compute superclass accuracy by k-means."""
    return metrics.superclass_accuracy_by_kmeans(given.probs, given.probs, given.target, given.groups)


def structure(given: Predictions) -> metrics.StructureCorrelation:
    """Compute the structure correlation of the label vectors."""
    return metrics.structure_correlation(given.vectors, given.distances, given="vectors")


CASES: dict[str, Case] = {
    "accuracy": Case(lambda given: metrics.accuracy(given.predicted, given.target), literal.accuracy),
    "balanced_accuracy": Case(
        lambda given: metrics.balanced_accuracy(given.predicted, given.target), literal.balanced_accuracy
    ),
    "macro_f1": Case(lambda given: metrics.macro_f1(given.predicted, given.target), literal.macro_f1),
    "top_k_accuracy, k 5": Case(
        lambda given: metrics.top_k_accuracy(given.logits, given.target, k=5), partial(literal.top_k, k=5)
    ),
    "mistake_severity": Case(_on_classes(metrics.mistake_severity), literal.severity),
    "average_distance, k 1": _distance(1),
    "average_distance, k 5": _distance(5),
    "average_distance, k 20": _distance(20),
    "least_average_distance, k 5": Case(
        lambda given: metrics.least_average_distance(given.target, given.taxonomy, k=5),
        partial(literal.least_average_distance, k=5),
    ),
    "hops, k 5": Case(
        lambda given: metrics.hops(given.logits, given.target, given.taxonomy, k=5), partial(literal.hops, k=5)
    ),
    "hierarchical_precision": Case(
        _on_classes(metrics.hierarchical_precision), partial(literal.ancestors_shared, part=lambda ours, theirs: ours)
    ),
    "hierarchical_recall": Case(
        _on_classes(metrics.hierarchical_recall), partial(literal.ancestors_shared, part=lambda ours, theirs: theirs)
    ),
    "hierarchical_f1": Case(
        _on_classes(metrics.hierarchical_f1),
        partial(literal.ancestors_shared, part=lambda ours, theirs: (ours + theirs) / 2),
    ),
    "confusion_matrix": Case(_confusion, literal.confusion),
    "weighted_counts": Case(_weighted(metrics.weighted_counts), literal.weighted_counts),
    "weighted_precision": Case(_weighted(metrics.weighted_precision), partial(literal.weighted, errors=["predicted"])),
    "weighted_recall": Case(_weighted(metrics.weighted_recall), partial(literal.weighted, errors=["true"])),
    "weighted_f1": Case(_weighted(metrics.weighted_f1), partial(literal.weighted, errors=["true", "predicted"])),
    "weighted_accuracy": Case(_weighted(metrics.weighted_accuracy), literal.weighted_accuracy),
    "expected_cost": Case(
        lambda given: metrics.expected_cost(given.predicted, given.target, given.distances), literal.expected_cost
    ),
    "ordinal_mse": Case(lambda given: metrics.ordinal_mse(given.predicted, given.target), literal.ordinal_mse),
    "expected_calibration_error": Case(
        lambda given: metrics.expected_calibration_error(given.probs, given.target), literal.calibration_error
    ),
    "brier_score": Case(lambda given: metrics.brier_score(given.probs, given.target), literal.brier),
    "superclass_accuracy": Case(
        lambda given: metrics.superclass_accuracy(given.probs, given.target, given.groups), literal.superclass
    ),
    "superclass_accuracy_by_kmeans": Case(by_kmeans),
    "structure_correlation": Case(structure),  # its literal form loops over classes
    "auac": Case(lambda given: metrics.auac(given.curve).mean, literal.auac),
    "epochs_saved": Case(lambda given: metrics.epochs_saved(given.curve, given.curve).mean, literal.epochs_saved),
    "summary": Case(lambda given: metrics.summary(given.logits, given.target, given.taxonomy), literal.summary),
}


def flat(found: object) -> list[float]:
    """Return the numbers of a metric as the literal forms list them: values first, the mean last."""
    if isinstance(found, metrics.Calibration):
        return [found.mean]
    if isinstance(found, metrics.Metric):
        return [*found.values.double().tolist(), found.mean]
    if isinstance(found, metrics.WeightedCounts):
        return torch.cat(list(found)).tolist()
    if isinstance(found, Tensor):
        return found.flatten().double().tolist()
    if isinstance(found, dict):
        return list(found.values())
    assert isinstance(found, float)
    return [found]


def time_metrics(*, samples: int = 10_000, classes: int = 1_000, repeats: int = 3, threads: int = 2) -> Benchmark:
    """Time every metric on generated predictions: CPU time on one thread, and one pass on `threads` in a new process.

    A literal form that would take more than five seconds runs on the first hundredth of the samples (or classes) and is
    extrapolated; its values are compared with the metric's on that part.

    Args:
        samples: Number of samples, at least 100.
        classes: Number of classes, at least 30.
        repeats: Number of calls; the median is reported.
        threads: Threads of the pass in a new process.

    Returns:
        One row per metric.

    Example:
        >>> from labelkin.bench import time_metrics
        >>> found = time_metrics(samples=100, classes=30, repeats=1, threads=1)
        >>> found.rows[0].name
        'accuracy'
    """
    for argument, value, least in (("samples", samples, 100), ("classes", classes, 30), ("repeats", repeats, 1)):
        check_count(argument, value, least=least)
    given = make(samples, classes)
    others = peers(given)
    parts = {count: plain(given.first(count)) for count in (first_part(samples), samples)}
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetric)  # a part of the samples may not contain all classes
        rows = [
            Row(
                name,
                timed(partial(case.ours, given), repeats),
                _slow(name, given, parts, repeats),
                {peer: timed(call, repeats, warm_up=0) for peer, call in others.get(name, {}).items()},
            )
            for name, case in CASES.items()
        ]
        on = machine()
    sizes = {"samples": samples, "classes": classes, "superclasses": given.superclasses}
    return Benchmark(
        "metrics", sizes, on, rows, fresh_pass("metrics", {"samples": samples, "classes": classes}, threads)
    )


def every_call(samples: int, classes: int) -> Iterator[Callable[[], object]]:
    """Generate predictions and return the calls of a pass in a new process."""
    given = make(samples, classes)
    return (partial(case.ours, given) for case in CASES.values())


def _slow(name: str, given: Predictions, parts: dict[int, Plain], repeats: int) -> Slow | None:
    samples = len(given.target)
    case = CASES[name]
    form = case.literal
    if case.ours is structure:
        return slow(
            lambda count: literal.structure_correlation(parts[samples], count),
            lambda count: structure(given).values[:count].tolist(),
            units=len(given.distances),
            repeats=repeats,
        )
    if form is None:
        return None
    return slow(
        lambda count: form(parts[count]),
        lambda count: flat(case.ours(given.first(count))),
        units=samples,
        repeats=repeats,
    )
