"""Estimate how long a plan takes: from finished runs of the store, and from the first steps of the others."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from json import dumps
from os import cpu_count
from pathlib import Path
from statistics import mean, median
from time import monotonic
from typing import NamedTuple

from torch import Tensor

from labelkin.comparison._plan import Plan, Planned
from labelkin.comparison._work import in_words, is_finished
from labelkin.data import is_corpus
from labelkin.runs import DataCache, RunSpec, read_record, train_run
from labelkin.training import Silent, make_fabric

PROBE = 1.0  # seconds of training that one measurement takes, or one step if that takes longer
ALL_PROBES = 5.0  # seconds for all measurements; runs beyond them count as the mean of the others
QUICK = 30.0  # seconds; if all runs take less, the first measurement is enough
GPU_SETUP = 8  # the first steps on a GPU, which choose kernels and capture graphs
LONGEST_SETUP = 20.0  # seconds for them
FORWARD = 1 / 3  # the share of a training step that an evaluation of the same samples takes


class Estimate(NamedTuple):
    """An estimate of the time that the unfinished runs of a plan take.

    Args:
        runs: The number of unfinished runs.
        seconds: The time that they take.
        at_once: How many are trained at once.
        device: "cpu", "cuda" or another type of torch devices.
    """

    runs: int
    seconds: float
    at_once: int
    device: str

    def __str__(self) -> str:
        where = "the CPU" if self.device == "cpu" else f"the GPU ({self.device})"
        together = f", {self.at_once} at once" if self.at_once > 1 else ""
        count = f"{self.runs} run{'s' if self.runs > 1 else ''}"
        return f"Estimate: {count} on {where}{together}, about {in_words(self.seconds)}."


def estimate(
    plan: Plan, store: Path, *, data: DataCache, jobs: int = 1, say: Callable[[str], None] = lambda text: None
) -> Estimate | None:
    """Estimate the time that the unfinished runs of a plan take on this machine.

    A run that differs from a finished one only in seed and fold takes as long as that one. Some of the others are trained
    for a few steps, and the result is discarded.

    Args:
        plan: The plan. Its runs have been checked.
        store: The folder of the runs.
        data: Data sets that are already loaded; newly loaded ones are added.
        jobs: The number of runs to train at once.
        say: Called with what takes time before the first step, such as the features of a frozen backbone.

    Returns:
        The estimate. None if there is nothing to train, or if several devices train one run.
    """
    runs = list({run.id: run for run in plan.runs()}.values())
    waiting = [run for run in runs if not is_finished(store, run)]
    if not waiting or any(run.spec.settings.devices != 1 for run in waiting):
        return None
    settings = waiting[0].spec.settings
    device = make_fabric(settings).device.type
    at_once = 1  # runs that share a GPU take about as long as one after another
    if device == "cpu":
        at_once = min(jobs, len(waiting), max(1, (cpu_count() or 1) // settings.threads))
    known = _finished_times(runs, store)
    measured: dict[str, float] = {}
    begun = monotonic()
    for run in waiting:
        times = known | measured
        if times and (monotonic() - begun > ALL_PROBES or _total(waiting, times) / at_once < QUICK):
            break
        if _kind(run) not in times:
            measured[_kind(run)] = seconds_of(run.spec, data, say=say)
    return Estimate(len(waiting), _total(waiting, known | measured) / at_once, min(jobs, len(waiting)), device)


def seconds_of(spec: RunSpec, data: DataCache, *, say: Callable[[str], None] = lambda text: None) -> float:
    """Estimate the time of a run from its first steps, whose result is discarded; `say` gets the notes of the run."""
    workspace, probe = data.workspace(spec), Probe(say)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # training repeats these warnings
        with suppress(Measured):
            train_run(spec, workspace=workspace, progress=probe.begin)
    evaluated = 0.0
    if probe.epoch_seconds is None and not is_corpus(spec.data):
        dataset = workspace.dataset
        evaluated = (len(dataset.test) + len(dataset.val or ())) / len(dataset.train)
    return spec.settings.epochs * probe.seconds_per_epoch(evaluated)


class Measured(Exception):
    """Raised to end a run that was started only to time it."""


class Probe(Silent):
    """Time the first steps of a run, then end it with `Measured`. Notes of the run go to `say`.

    The first steps allocate memory, and on a GPU they also choose kernels and capture graphs. They do not count.
    """

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self.say = say
        self.steps, self.times = 1, list[float]()
        self.setup = 1  # steps that do not count
        self.epoch_seconds: float | None = None
        self.begun = self.last = self.epoch_begun = monotonic()

    def begin(self, steps: int) -> "Probe":
        """Start the clock; `steps` is the number of steps in an epoch."""
        self.steps, self.begun = steps, monotonic()
        self.last = self.epoch_begun = self.begun
        return self

    def step(self, epoch: int, step: int, loss: Tensor) -> None:
        float(loss)  # waits for the device
        now = monotonic()
        self.times.append(now - self.last)
        self.last = now
        if loss.device.type != "cpu":
            self.setup = GPU_SETUP
            if len(self.times) == GPU_SETUP:
                self.begun = now
        is_ready = len(self.times) > self.setup or self.setup == 1 or now - self.begun > LONGEST_SETUP
        if is_ready and now - self.begun > PROBE and step < self.steps:
            self.epoch_seconds = None
            raise Measured

    def note(self, text: str) -> None:
        self.say(text)

    def epoch(self, epoch: int, metrics: object) -> None:
        now = monotonic()
        self.epoch_seconds, self.epoch_begun = now - self.epoch_begun, now
        if len(self.times) - self.steps >= self.setup or self.setup == 1:  # the steps of this epoch all count
            raise Measured

    def seconds_per_epoch(self, evaluated: float) -> float:
        """Return the time of an epoch: as measured, or that of its steps and of evaluating this share of its samples."""
        if self.epoch_seconds is not None:
            return self.epoch_seconds
        step = median(self.times[self.setup :] or self.times[1:] or self.times)
        return self.steps * step * (1 + FORWARD * evaluated)


def _finished_times(runs: Sequence[Planned], store: Path) -> dict[str, float]:
    """Return the mean training time of finished runs by kind."""
    found: dict[str, list[float]] = {}
    for run in runs:
        record = read_record(store / run.name) if is_finished(store, run) else None
        if record is not None and record.seconds is not None:
            found.setdefault(_kind(run), []).append(record.seconds)
    return {kind: mean(times) for kind, times in found.items()}


def _total(runs: Sequence[Planned], times: dict[str, float]) -> float:
    """Return the time of all runs, each of an unknown kind with the mean time of the known kinds."""
    usual = mean(times.values())
    return sum(times.get(_kind(run), usual) for run in runs)


def _kind(run: Planned) -> str:
    """Return a key that is the same for runs of a plan that differ only in seed and fold."""
    spec = replace(run.spec, settings=replace(run.spec.settings, seed=0))
    values = spec.as_dict()
    values["data_options"] = {name: value for name, value in spec.data_options.items() if name != "fold"}
    return dumps(values, sort_keys=True)
