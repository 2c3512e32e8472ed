"""How much work a piece of code takes, as a multiple of a fixed piece of work on the same machine at the same time.

A limit in seconds fails on a slow or busy machine. A limit in these units holds wherever the tests run, and it still catches
code whose time grows with the square of its input.
"""

import gc
import time
from collections.abc import Callable


def _fixed_work() -> None:
    """About 50 ms on one core of a current machine."""
    counts: dict[str, int] = {}
    for i in range(150_000):
        name = f"n{i % 5_000}"
        counts[name] = counts.get(name, 0) + i


def _least_seconds(work: Callable[[], object], times: int) -> float:
    """The least processor time of some repetitions, without the garbage collector's pauses for other tests' objects."""
    found = []
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(times):
            start = time.process_time()
            work()
            found.append(time.process_time() - start)
    finally:
        if collecting:
            gc.enable()
    return min(found)


def unit_seconds() -> float:
    """Return the processor time of the fixed work, the least of three repetitions."""
    return _least_seconds(_fixed_work, 3)


def units_of_work(work: Callable[[], object], times: int = 3) -> float:
    """Return the processor time of ``work()`` over that of the fixed work; each is the least of ``times`` repetitions."""
    return _least_seconds(work, times) / unit_seconds()
