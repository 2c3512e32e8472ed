"""Results of benchmarks that compare with peers in the same run and measure how time grows with the size."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from labelkin.bench._measure import Machine, Timing, timed


class Measure(NamedTuple):
    """Time of a call, and the memory it takes beyond its inputs, which is measured on a GPU only."""

    timing: Timing
    peak_bytes: int | None


class Compared(NamedTuple):
    """A case: labelkin's time and that of each peer for the same work."""

    case: str
    sizes: Mapping[str, int]
    ours: Measure
    peers: Mapping[str, Measure]
    error: float | None = None  # largest relative difference from float64 or from a peer, in the timed run
    units: int | None = None  # what a call processes, such as images, for a rate

    def ratio(self, peer: str) -> float:
        """Return labelkin's time divided by the peer's."""
        return self.ours.timing.median / self.peers[peer].timing.median

    def memory_ratio(self, peer: str) -> float | None:
        """Return labelkin's peak memory divided by the peer's; None without a GPU."""
        theirs = self.peers[peer].peak_bytes
        return None if self.ours.peak_bytes is None or not theirs else self.ours.peak_bytes / theirs


class Growth(NamedTuple):
    """Seconds as a function of one size, with the others fixed; `exponent` is the slope of a line through the logarithms."""

    case: str
    over: str
    sizes: Sequence[int]
    seconds: Sequence[float]

    @property
    def exponent(self) -> float:
        """Return the fitted exponent: 1 if time is proportional to the size."""
        x, y = ([math.log(value) for value in values] for values in (self.sizes, self.seconds))
        mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
        covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
        return covariance / sum((a - mean_x) ** 2 for a in x)


class Comparison(NamedTuple):
    """The results of a benchmark, and what was left out with the reason."""

    name: str
    machine: Machine
    rows: Sequence[Compared]
    growth: Sequence[Growth]
    notes: Sequence[str]


def measured(call: Callable[[], object], repeats: int, *, cuda: bool, warm_up: int = 2) -> Measure:
    """Time a call by the wall clock; on a GPU, also record its peak memory."""
    if not cuda:
        return Measure(timed(call, repeats, warm_up=warm_up, clock=time.perf_counter), None)
    call()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    timing = timed(call, repeats, warm_up=warm_up, clock=time.perf_counter, wait=torch.cuda.synchronize)
    return Measure(timing, torch.cuda.max_memory_allocated() - before)


def comparison_as_dict(found: Comparison) -> dict[str, Any]:
    """Return the results as plain values for JSON."""
    return {
        "benchmark": found.name,
        "machine": found.machine._asdict(),
        "rows": [
            {
                "case": row.case,
                "sizes": dict(row.sizes),
                "ours": _plain(row.ours),
                "peers": {
                    name: {**_plain(peer), "times_time": row.ratio(name), "times_memory": row.memory_ratio(name)}
                    for name, peer in row.peers.items()
                },
                "error": row.error,
                "per_second": None if row.units is None else row.units / row.ours.timing.median,
            }
            for row in found.rows
        ],
        "growth": [
            {**one._asdict(), "sizes": list(one.sizes), "seconds": list(one.seconds), "exponent": one.exponent}
            for one in found.growth
        ],
        "notes": list(found.notes),
    }


def _plain(measure: Measure) -> dict[str, Any]:
    return {**measure.timing._asdict(), "peak_bytes": measure.peak_bytes}
