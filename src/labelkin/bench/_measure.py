"""Measure time and peak memory, in this process or in a fresh one."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch

from labelkin._checks import InputError


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

    By default CPU time is measured. It does not include waiting for a core, but other processes still compete for caches.

    Args:
        call: The function to time.
        repeats: Number of timed calls.
        warm_up: Number of calls before them that are not timed.
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


STATUS = Path("/proc/self/status")
KIB = 1024


class Pass(NamedTuple):
    """Time and peak memory of one pass."""

    threads: int
    seconds: float  # wall clock
    cpu_seconds: float  # CPU time of all threads
    peak_bytes: int  # peak resident memory of the process
    before_bytes: int  # the same before the pass: Python, torch and the inputs


def fresh_pass(benchmark: str, sizes: Mapping[str, int], threads: int) -> Pass:
    """Run everything that `labelkin.bench._<benchmark>` times once, in a new process."""
    call = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
    command = [sys.executable, "-c", call, benchmark, json.dumps(dict(sizes)), str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"bench {benchmark}: the new process failed: {done.stderr.strip().splitlines()[-1]}")
    return Pass(**json.loads(done.stdout))


def _peak_bytes() -> int:
    if STATUS.exists():  # Linux; its getrusage would count the parent's memory as well
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * KIB
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * KIB


def main(benchmark: str, sizes: str, threads: str) -> None:
    """Run one pass and print its time and memory as JSON; the entry point of the new process."""
    import torch

    torch.set_num_threads(int(threads))
    every_call = import_module(f"labelkin.bench._{benchmark}").every_call(**json.loads(sizes))
    before = _peak_bytes()
    begun, cpu_begun = time.perf_counter(), time.process_time()
    for call in every_call:
        call()
    found = Pass(int(threads), time.perf_counter() - begun, time.process_time() - cpu_begun, _peak_bytes(), before)
    print(json.dumps(found._asdict()))
