"""How long calls take: medians with their spread, and on what."""

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
    """Seconds of a call, over `repeats` of them."""

    median: float
    fastest: float
    slowest: float
    repeats: int


class Machine(NamedTuple):
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
    """CPU time unless another clock is given: waiting for a core does not count, though sharing caches with others does.

    `wait` returns when the device has done what it was given.
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
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return Machine(name, os.cpu_count() or 1, torch.get_num_threads(), torch.__version__)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread, and so numpy and scikit-learn where threadpoolctl is at hand."""
    before = torch.get_num_threads()
    with ExitStack() as stack:
        if find_spec("threadpoolctl") is not None:
            stack.enter_context(import_module("threadpoolctl").threadpool_limits(1))
        torch.set_num_threads(1)
        stack.callback(torch.set_num_threads, before)
        yield
