"""Time of training epochs: steps captured as CUDA graphs, compiled, or neither, on images in memory."""

from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

from labelkin.bench._measure import Machine, machine
from labelkin.data import ArraySplit, Dataset
from labelkin.structure import catalogue
from labelkin.training import Classify, Settings, Silent, Trainer, build_model, context_for

TRAINING_WAYS: dict[str, dict[str, Any]] = {
    "plain": {"graph": "off"},
    "captured": {"graph": "auto"},
    "compiled": {"graph": "off", "compile": True},
    "compiled and captured": {"graph": "auto", "compile": True},
}


class EpochTimes(NamedTuple):
    """Times of one way to train one objective, in seconds.

    Attributes:
        objective: The name of the objective.
        way: "plain", "captured", "compiled" or "compiled and captured".
        epoch: The median time of the steps of an epoch, without the first epoch.
        end: The median time of the evaluation at the end of an epoch.
        first_step: The time from the start of training until the first step is done.
        memory: The peak memory on the GPU in bytes; None on the CPU.
        loss: The loss of the last epoch, to check that all ways give the same result.
        note: Why steps were not captured; None if they were or were not meant to be.

    Example:
        >>> from labelkin.bench import EpochTimes
        >>> EpochTimes("one-hot", "captured", 1.2, 0.1, 5.0, None, 0.5, None).epoch
        1.2
    """

    objective: str
    way: str
    epoch: float
    end: float
    first_step: float
    memory: int | None
    loss: float
    note: str | None


class TrainingTimes(NamedTuple):
    """The result of `time_training`.

    Example:
        >>> from labelkin.bench import Machine, TrainingTimes
        >>> TrainingTimes(Machine("cpu", 2, 1, "2.11"), "resnet-18", 50_000, 128, []).batch
        128
    """

    machine: Machine
    backbone: str
    samples: int
    batch: int
    rows: list[EpochTimes]


class Clock(Silent):
    """Record when the first step, the last step of each epoch and each evaluation end."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.first: float | None = None
        self.stepped: list[float] = []
        self.ended: list[float] = []

    def step(self, epoch: int, step: int, loss: torch.Tensor) -> None:
        if self.first is None:
            float(loss)  # waits for the device
            self.first = perf_counter()
        if step == self.steps:
            float(loss)
            self.stepped.append(perf_counter())

    def epoch(self, epoch: int, metrics: Any) -> None:
        self.ended.append(perf_counter())

    def epochs(self) -> list[float]:
        """Return the time of the steps of each epoch but the first."""
        return [end - start for start, end in zip(self.ended, self.stepped[1:], strict=False)]

    def ends(self) -> list[float]:
        """Return the time of the evaluation of each epoch but the first."""
        return [ended - stepped for stepped, ended in zip(self.stepped[1:], self.ended[1:], strict=True)]


def time_training(
    objectives: list[str],
    *,
    backbone: str = "resnet-18",
    samples: int = 50_000,
    batch: int = 128,
    epochs: int = 4,
    size: int = 32,
    ways: list[str] | None = None,
    precision: str = "bf16-mixed",
) -> TrainingTimes:
    """Time training epochs on random images with the classes and the tree of CIFAR-100.

    Args:
        objectives: Names of objectives.
        backbone: The name of the backbone.
        samples: The number of training images; a fifth as many are evaluated after each epoch.
        batch: The batch size.
        epochs: The number of epochs, at least 2; the first one is not timed, because it compiles and captures.
        size: The height and width of the images in pixels.
        ways: Names of `TRAINING_WAYS`; by default plain and, on a GPU, captured.
        precision: The precision of `Settings`.

    Returns:
        The times of each objective in each way.

    Example:
        >>> from labelkin.bench import time_training
        >>> found = time_training(["one-hot"], backbone="tiny-cnn", samples=200, batch=100, epochs=2, precision="32-true")
        >>> [row.way for row in found.rows][:1]
        ['plain']
    """
    chosen = ways or (["plain", "captured"] if torch.cuda.is_available() else ["plain"])
    dataset = _random_images(samples, size)
    rows = []
    for objective in objectives:
        for way in chosen:
            settings = Settings(
                epochs=max(2, epochs),
                batch_size=batch,
                optimizer="sgd",
                lr=0.05,
                nesterov=True,
                weight_decay=5e-4,
                schedule="cosine",
                augment=("pad-crop:4", "flip"),
                precision=precision,
                **TRAINING_WAYS[way],
            )
            rows.append(_timed(dataset, objective, way, backbone, settings))
    return TrainingTimes(machine("cuda" if torch.cuda.is_available() else "cpu"), backbone, samples, batch, rows)


def _timed(dataset: Dataset, objective: str, way: str, backbone: str, settings: Settings) -> EpochTimes:
    context = context_for(dataset, dataset.taxonomy)
    model = build_model(objective, {}, backbone, dataset.shape, context, seed=0)
    clocks: list[Clock] = []

    def clock(steps: int) -> Clock:
        clocks.append(Clock(steps))
        return clocks[-1]

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    begun = perf_counter()
    trainer = Trainer(model, Classify(dataset), settings, progress=clock)
    trained = trainer.fit()
    times = clocks[0]
    assert times.first is not None
    return EpochTimes(
        objective=objective,
        way=way,
        epoch=median(times.epochs()),
        end=median(times.ends()),
        first_step=times.first - begun,
        memory=torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None,
        loss=trained.history[-1]["loss"],
        note=trainer.steps.not_captured,
    )


def _random_images(samples: int, size: int) -> Dataset:
    """Return random images in the classes of CIFAR-100, with a different color for each class, so that training succeeds."""
    taxonomy = catalogue.taxonomy("cifar100")
    classes = tuple(taxonomy.names[leaf] for leaf in taxonomy.leaves)
    generator = torch.Generator().manual_seed(0)
    colors = torch.randint(256, (len(classes), 3, 1, 1), generator=generator)

    def split(count: int) -> ArraySplit:
        targets = torch.arange(count) % len(classes)
        noise = torch.randint(256, (count, 3, size, size), generator=generator)
        return ArraySplit(((noise + colors[targets]) // 2).to(torch.uint8), targets)

    return Dataset(
        name="random images", classes=classes, train=split(samples), test=split(samples // 5), taxonomy=taxonomy
    )


def training_times_as_dict(times: TrainingTimes) -> dict[str, Any]:
    """Return the results as plain values for JSON."""
    rows = [row._asdict() for row in times.rows]
    return {**times._asdict(), "machine": times.machine._asdict(), "rows": rows}
