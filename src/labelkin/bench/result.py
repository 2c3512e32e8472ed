"""What a benchmark of ours against slower forms returns."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from labelkin.bench.fresh import Pass
from labelkin.bench.timing import Machine, Timing, timed

WHOLE_WITHIN = 5.0  # seconds: a literal form that would take longer is run on a part


class Slow(NamedTuple):
    """A literal form. Where `share` is below 1 it ran on that share of the work alone, and `timing` is extrapolated."""

    timing: Timing
    share: float
    difference: float  # the largest from our values, on what it ran on


class Row(NamedTuple):
    name: str
    ours: Timing
    literal: Slow | None
    peers: dict[str, Timing]

    @property
    def ratio(self) -> float | None:
        """How many times as long the literal form takes."""
        return None if self.literal is None else self.literal.timing.median / self.ours.median

    def peer_ratio(self, peer: str) -> float:
        return self.peers[peer].median / self.ours.median


class Benchmark(NamedTuple):
    name: str
    sizes: dict[str, int]
    machine: Machine
    rows: list[Row]
    whole: Pass  # everything of ours once, in a fresh process; rows are CPU time on one thread


def first_part(units: int) -> int:
    return min(units, max(10, units // 100))


def slow(
    run: Callable[[int], Sequence[float]],
    expected: Callable[[int], Sequence[float]],
    *,
    units: int,
    repeats: int,
    work: Callable[[int], float] = float,
) -> Slow:
    """Time a literal form of so many units (samples, classes): on a hundredth of them first, on all where that is quick.

    `work(units)` is what the time grows with.
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
    """The largest between two lists, infinite where they differ in length or in where they are NaN."""
    if len(left) != len(right) or any((a != a) != (b != b) for a, b in zip(left, right, strict=True)):
        return float("inf")
    return max((abs(a - b) for a, b in zip(left, right, strict=True) if a == a), default=0.0)


def as_dict(found: Benchmark) -> Mapping[str, object]:
    """Plain values, for JSON."""
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
