"""Results of a benchmark against literal implementations."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from labelkin.bench._measure import Machine, Pass, Timing, timed

WHOLE_WITHIN = 5.0  # seconds: a literal form that would take longer is run on a part


class Slow(NamedTuple):
    """Time of a literal form; if `share` is below 1, it ran on that share of the work, and `timing` is extrapolated.

    Example:
        >>> from labelkin.bench import Slow, Timing
        >>> Slow(Timing(2.0, 1.0, 3.0, 5), share=1.0, difference=0.0).timing.median
        2.0
    """

    timing: Timing
    share: float
    difference: float  # largest difference from our values, on the part that it ran on


class Row(NamedTuple):
    """Times of one metric: this library's, the literal form's, and those of other packages.

    Example:
        >>> from labelkin.bench import Row, Slow, Timing
        >>> row = Row("accuracy", Timing(1.0, 1.0, 1.0, 3), Slow(Timing(4.0, 4.0, 4.0, 3), 1.0, 0.0), {})
        >>> row.ratio
        4.0
    """

    name: str
    ours: Timing
    literal: Slow | None
    peers: dict[str, Timing]

    @property
    def ratio(self) -> float | None:
        """Time of the literal form as a multiple of ours."""
        return None if self.literal is None else self.literal.timing.median / self.ours.median

    def peer_ratio(self, peer: str) -> float:
        """Return the time of another package as a multiple of ours."""
        return self.peers[peer].median / self.ours.median


class Benchmark(NamedTuple):
    """All rows of a benchmark, its sizes and machine, and one pass in a new process; rows are CPU time on one thread.

    Example:
        >>> from labelkin.bench import Benchmark, Machine
        >>> from labelkin.bench._measure import Pass
        >>> Benchmark("naa", {"samples": 10}, Machine("cpu", 2, 1, "2.11"), [], Pass(1, 0.1, 0.1, 2, 1)).name
        'naa'
    """

    name: str
    sizes: dict[str, int]
    machine: Machine
    rows: list[Row]
    whole: Pass  # one pass over all our functions in a new process


def first_part(units: int) -> int:
    """Return the number of units that a literal form runs on first."""
    return min(units, max(10, units // 100))


def slow(
    run: Callable[[int], Sequence[float]],
    expected: Callable[[int], Sequence[float]],
    *,
    units: int,
    repeats: int,
    work: Callable[[int], float] = float,
) -> Slow:
    """Time a literal form: on a hundredth of its units (samples, classes) first, and on all if that is quick.

    Args:
        run: The literal form, on the first units.
        expected: This library's values on the first units.
        units: Number of units.
        repeats: Number of calls.
        work: The amount of work as a function of the units, to extrapolate the time.

    Returns:
        The time, and the largest difference of the values.
    """
    count = first_part(units)
    found = timed(lambda: run(count), 1, warm_up=0)
    if found.median * work(units) / work(count) <= WHOLE_WITHIN:
        count = units
    values: list[Sequence[float]] = []
    timing = timed(lambda: values.append(run(count)), repeats, warm_up=0)
    times = work(units) / work(count)
    stretched = Timing(timing.median * times, timing.fastest * times, timing.slowest * times, repeats)
    return Slow(stretched, 1 / times, difference(values[0], expected(count)))


def difference(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the largest difference of two lists, infinite if they differ in length or in the positions of NaN."""
    if len(left) != len(right) or any((a != a) != (b != b) for a, b in zip(left, right, strict=True)):
        return float("inf")
    return max((abs(a - b) for a, b in zip(left, right, strict=True) if a == a), default=0.0)


def as_dict(found: Benchmark) -> Mapping[str, object]:
    """Return the results as plain values for JSON."""
    rows = [
        {
            "name": row.name,
            "ours": row.ours._asdict(),
            "literal": None
            if row.literal is None
            else {**row.literal._asdict(), "timing": row.literal.timing._asdict(), "ratio": row.ratio},
            "peers": {peer: {**timing._asdict(), "ratio": row.peer_ratio(peer)} for peer, timing in row.peers.items()},
        }
        for row in found.rows
    ]
    return {
        "benchmark": found.name,
        "sizes": found.sizes,
        "machine": found.machine._asdict(),
        "whole": found.whole._asdict(),
        "rows": rows,
    }
