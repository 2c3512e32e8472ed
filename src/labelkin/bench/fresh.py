"""One pass in its own process, so that the peak memory is that of the pass alone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from labelkin._checks import InputError

STATUS = Path("/proc/self/status")
KIB = 1024


class Pass(NamedTuple):
    """Time and peak memory of one pass."""

    threads: int
    seconds: float  # wall clock
    cpu_seconds: float  # of all threads: what other processes take away does not count
    peak_bytes: int  # resident memory of the process at its highest
    before_bytes: int  # the same before the pass: Python, torch and the inputs


def fresh_pass(benchmark: str, sizes: Mapping[str, int], threads: int) -> Pass:
    """Run everything that `labelkin.bench.<benchmark>` times once, in a new process."""
    call = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
    command = [sys.executable, "-c", call, benchmark, json.dumps(dict(sizes)), str(threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"bench {benchmark}: the fresh process failed: {done.stderr.strip().splitlines()[-1]}")
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
    every_call = import_module(f"labelkin.bench.{benchmark}").every_call(**json.loads(sizes))
    before = _peak_bytes()
    begun, cpu_begun = time.perf_counter(), time.process_time()
    for call in every_call:
        call()
    found = Pass(int(threads), time.perf_counter() - begun, time.process_time() - cpu_begun, _peak_bytes(), before)
    print(json.dumps(found._asdict()))
