"""Time of training many small networks as one batched model, against one after another in the same process."""

from collections.abc import Callable
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

from labelkin._checks import check_count
from labelkin.bench._measure import Machine, machine
from labelkin.bench._training import Clock
from labelkin.data import ArraySplit, Dataset
from labelkin.training import (
    Classify,
    Fleet,
    FleetMember,
    Model,
    Progress,
    Settings,
    Silent,
    Trained,
    Trainer,
    build_model,
    context_for,
)

CLASSES = 10
ALONE = 2  # runs that are timed one after another
COMPARED = 24  # steps whose losses are compared: enough to be captured, too few for rounding to grow


class FleetTimes(NamedTuple):
    """Times of a fleet and of its members alone, in seconds.

    Attributes:
        machine: The machine.
        backbone: The name of the backbone.
        objective: The name of the objective.
        members: The number of members.
        samples: The number of training images.
        batch: The batch size of each member.
        alone: The median time of the steps of an epoch of one run; on a GPU, steps are captured as CUDA graphs.
        alone_end: The median time of the evaluation at the end of an epoch of one run.
        fleet: The median time of the steps of an epoch of all members together.
        fleet_end: The median time of their evaluation.
        begun: The time from the start of the fleet until the first step is done.
        loss_difference: The largest relative difference between a member and the same run alone in the mean loss of the first
            24 steps. Later losses are not compared: rounding alone may make a small network leave a plateau epochs earlier or
            later.
        note: Why the steps of the fleet were not captured; None if they were or were not meant to be.
        way: How the fleet computed convolutions: "grouped", "products" or "kernel". On a GPU it takes the fastest.

    Example:
        >>> from labelkin.bench import FleetTimes, Machine
        >>> on = Machine("cpu", 2, 1, "2.11")
        >>> times = FleetTimes(on, "mlp", "one-hot", 36, 60_000, 128, 1.0, 0.5, 3.0, 1.5, 0.1, 1e-6, None, "grouped")
        >>> times.throughput, times.step_throughput
        (12.0, 12.0)
    """

    machine: Machine
    backbone: str
    objective: str
    members: int
    samples: int
    batch: int
    alone: float
    alone_end: float
    fleet: float
    fleet_end: float
    begun: float
    loss_difference: float
    note: str | None
    way: str

    @property
    def throughput(self) -> float:
        """The runs that a fleet trains and evaluates in the time of one alone."""
        return self.members * (self.alone + self.alone_end) / (self.fleet + self.fleet_end)

    @property
    def step_throughput(self) -> float:
        """The same without evaluation."""
        return self.members * self.alone / self.fleet


def time_fleet(
    objective: str = "one-hot",
    *,
    members: int = 36,
    backbone: str = "3-layer-1",
    samples: int = 60_000,
    batch: int = 128,
    epochs: int = 3,
    size: int = 28,
) -> FleetTimes:
    """Time a fleet of networks that differ in the seed, on random gray images of ten classes.

    Args:
        objective: The name of the objective.
        members: The number of networks.
        backbone: The name of the backbone.
        samples: The number of training images; a sixth as many are evaluated after each epoch.
        batch: The batch size of each network.
        epochs: The number of epochs, at least 2; the first one is not timed.
        size: The height and width of the images in pixels.

    Returns:
        The times of the fleet and of two of its members alone.

    Example:
        >>> from labelkin.bench import time_fleet
        >>> found = time_fleet(members=3, backbone="mlp", samples=120, batch=40, epochs=2, size=8)
        >>> found.members, found.loss_difference < 1e-3
        (3, True)
    """
    for name, value, least in (("members", members, 2), ("samples", samples, 6 * CLASSES), ("epochs", epochs, 2)):
        check_count(name, value, least=least)
    runs = _Runs(objective, backbone, _gray_images(samples, size), batch, epochs)
    clocks: list[Clock] = []

    def clock(steps: int) -> Clock:
        clocks.append(Clock(steps))
        return clocks[-1]

    begun = perf_counter()
    fleet = runs.fleet(members, clock)
    _trained(fleet)
    assert clocks[0].first is not None
    begun = clocks[0].first - begun
    for seed in range(ALONE):
        runs.alone(seed, clock).fit()
    return FleetTimes(
        machine=machine("cuda" if torch.cuda.is_available() else "cpu"),
        backbone=backbone,
        objective=objective,
        members=members,
        samples=samples,
        batch=batch,
        alone=median(time for one in clocks[1:] for time in one.epochs()),
        alone_end=median(time for one in clocks[1:] for time in one.ends()),
        fleet=median(clocks[0].epochs()),
        fleet_end=median(clocks[0].ends()),
        begun=begun,
        loss_difference=_first_difference(
            _Runs(objective, backbone, _gray_images(COMPARED * batch, size), batch, epochs=1), members
        ),
        note=fleet.steps.not_captured,
        way=fleet.model.backbone.way,
    )


def train_gray_fleet(members: int, backbone: str, *, steps: int, batch: int = 128, size: int = 28) -> str:
    """Train a fleet of one-hot networks on random gray images for some steps, for profilers; return how it convolved.

    Args:
        members: The number of networks.
        backbone: The name of the backbone.
        steps: The number of steps.
        batch: The batch size of each network.
        size: The height and width of the images in pixels.

    Example:
        >>> from labelkin.bench import train_gray_fleet
        >>> train_gray_fleet(2, "tiny-cnn", steps=3, batch=20, size=8)
        'grouped'
    """
    fleet = _Runs("one-hot", backbone, _gray_images(steps * batch, size), batch, epochs=1).fleet(members)
    _trained(fleet)
    return fleet.model.backbone.way


class _Runs:
    """Runs that differ in the seed, as members of a fleet or alone."""

    def __init__(self, objective: str, backbone: str, dataset: Dataset, batch: int, epochs: int) -> None:
        self.objective, self.backbone, self.dataset = objective, backbone, dataset
        self.context = context_for(dataset, None)
        self.task = Classify(dataset, self.context.tree())
        self.settings = Settings(epochs=epochs, batch_size=batch, optimizer="sgd", lr=0.01)

    def fleet(self, members: int, progress: Callable[[int], Progress] = lambda steps: Silent()) -> Fleet:
        """Return a fleet with the seeds from 0 on."""
        made = [FleetMember(self._model(seed), self.task, self._settings(seed)) for seed in range(members)]
        return Fleet(made, [self.objective] * members, progress=progress)

    def alone(self, seed: int, progress: Callable[[int], Progress] = lambda steps: Silent()) -> Trainer:
        """Return the run with a seed."""
        return Trainer(self._model(seed), self.task, self._settings(seed), progress=progress)

    def _model(self, seed: int) -> Model:
        return build_model(self.objective, {}, self.backbone, self.dataset.shape, self.context, seed=seed)

    def _settings(self, seed: int) -> Settings:
        return replace(self.settings, seed=seed)


def _first_difference(runs: _Runs, members: int) -> float:
    """Return the largest relative difference in loss between the first and last members and the same runs alone."""
    trained = _trained(runs.fleet(members))
    return max(abs(_loss(trained[seed]) / _loss(runs.alone(seed).fit()) - 1) for seed in (0, members - 1))


def _trained(fleet: Fleet) -> list[Trained]:
    """Train a fleet, and raise the error of a member that failed."""
    found = []
    for result in fleet.fit():
        if isinstance(result, Exception):
            raise result
        found.append(result)
    return found


def _loss(trained: Trained) -> float:
    return trained.history[-1]["loss"]


def _gray_images(samples: int, size: int) -> Dataset:
    """Return random gray images, with a different shade for each class, so that training succeeds."""
    generator = torch.Generator().manual_seed(0)

    def split(count: int) -> ArraySplit:
        targets = torch.arange(count) % CLASSES
        noise = torch.randint(256, (count, 1, size, size), generator=generator)
        shade = (25 * targets).view(-1, 1, 1, 1)
        return ArraySplit(((noise + shade) // 2).to(torch.uint8), targets)

    names = tuple(map(str, range(CLASSES)))
    return Dataset(name="random images", classes=names, train=split(samples), test=split(samples // 6))


def fleet_times_as_dict(times: FleetTimes) -> dict[str, Any]:
    """Return the results as plain values for JSON."""
    ratios = {"throughput": times.throughput, "step_throughput": times.step_throughput}
    return {**times._asdict(), "machine": times.machine._asdict(), **ratios}
