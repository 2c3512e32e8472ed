"""Time of the metrics beside their literal forms and other packages."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial

from labelkin._checks import check_count
from labelkin.bench import literal
from labelkin.bench.cases import CASES, flat, structure
from labelkin.bench.fresh import fresh_pass
from labelkin.bench.peers import peers
from labelkin.bench.plain import Plain, plain
from labelkin.bench.predictions import Predictions, make
from labelkin.bench.result import Benchmark, Row, Slow, first_part, slow
from labelkin.bench.timing import machine, one_thread, timed
from labelkin.metrics import UndefinedMetric


def time_metrics(*, samples: int = 10_000, classes: int = 1_000, repeats: int = 3, threads: int = 2) -> Benchmark:
    """Time every metric on generated predictions: CPU time on one thread, and one pass on `threads` in a new process.

    A literal form that would take more than five seconds runs on the first hundredth of the samples (or classes) and is
    extrapolated; its values are compared with the metric's on what it ran on.

    Args:
        samples: Number of samples, at least 100.
        classes: Number of classes, at least 30.
        repeats: Number of calls, of which the median counts.
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
        warnings.simplefilter("ignore", UndefinedMetric)  # a part of the samples leaves classes out
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
