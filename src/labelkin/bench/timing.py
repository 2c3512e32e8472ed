"""Time of calls: medians with their spread, and the machine they ran on."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

import torch


class Timing(NamedTuple):
    """Seconds of a call, over `repeats` of them.

    Example:
        >>> from labelkin.bench import Timing
        >>> Timing(median=2.0, fastest=1.0, slowest=3.0, repeats=5).median
        2.0
    """

    median: float
    fastest: float
    slowest: float
    repeats: int


class Machine(NamedTuple):
    """The machine of a benchmark.

    Example:
        >>> from labelkin.bench import Machine
        >>> Machine("cpu", cores=2, threads=1, torch="2.11").device
        'cpu'
    """

    device: str
    cores: int
    threads: int  # of torch, on the CPU
    torch: str


def timed(
    call: Callable[[], object],
    repeats: int,
    *,
    warm_up: int = 1,
    clock: Callable[[], float] = time.process_time,
    wait: Callable[[], object] = lambda: None,
) -> Timing:
    """Time a call.

    CPU time unless another clock is given: waiting for a core does not count, though sharing caches with others does.

    Args:
        call: What to time.
        repeats: Number of calls that count.
        warm_up: Number of calls before them that do not.
        clock: Returns seconds.
        wait: Returns when the device has finished its work.

    Returns:
        Median, fastest and slowest call.
    """
    taken = []
    for _ in range(warm_up + repeats):
        wait()
        begun = clock()
        call()
        wait()
        taken.append(clock() - begun)
    counted = taken[warm_up:]
    return Timing(statistics.median(counted), min(counted), max(counted), repeats)


def machine(device: str = "cpu") -> Machine:
    """Describe the machine."""
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return Machine(name, os.cpu_count() or 1, torch.get_num_threads(), torch.__version__)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread, and numpy and scikit-learn too if threadpoolctl is installed."""
    before = torch.get_num_threads()
    with ExitStack() as stack:
        if find_spec("threadpoolctl") is not None:
            stack.enter_context(import_module("threadpoolctl").threadpool_limits(1))
        torch.set_num_threads(1)
        stack.callback(torch.set_num_threads, before)
        yield
