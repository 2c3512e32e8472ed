"""What is trained on what: a task hands the loop its batches, takes losses and measures. Nobody needs to fork the loop."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin import metrics
from labelkin._checks import InputError, near
from labelkin.data import AUGMENTATIONS, Batches, Dataset
from labelkin.data.batches import Minibatch
from labelkin.structure import Taxonomy
from labelkin.training.conclusion import conclude
from labelkin.training.model import Model
from labelkin.training.settings import Settings

EVALUATION_BATCH = 1024


class Place(NamedTuple):
    """Where a process stands: its device, and its place among the processes."""

    device: torch.device
    rank: int = 0
    world: int = 1
    gather: Callable[[Tensor], Tensor] = lambda part: part.unsqueeze(0)  # (n, ...) to (world, n, ...)


class Evaluation(NamedTuple):
    metrics: dict[str, float]
    outputs: dict[str, Tensor]  # "scores" (n, K) and "target" (n,), in the split's order


class Task(ABC):
    """Batches in, numbers out."""

    @property
    def chosen_by(self) -> str:
        """The metric that chooses the epoch."""
        return "accuracy"

    @abstractmethod
    def batches(self, settings: Settings, place: Place) -> Any:
        """The training batches: `len()` steps an epoch, `epoch(e, start=s)` to iterate."""

    @abstractmethod
    def loss(self, model: Callable[..., Any], batch: Any) -> Any:
        """Return the scalar loss of a batch; `model` may be wrapped for parallel training."""

    @abstractmethod
    def parts(self, batch: Any, count: int) -> list[Any]:
        """A batch in `count` parts, for gradient accumulation."""

    @abstractmethod
    def refresh(self, model: Model, place: Place) -> None:
        """A pass over the training set for objectives that need one."""

    @abstractmethod
    def evaluate(self, model: Model, part: str, place: Place) -> Evaluation:
        """The metrics and outputs on a part of the data ("val", "test"), the same on every process."""

    def conclude(self, model: Model, tested: Evaluation) -> dict[str, float]:
        """What is said of the trained model at the end, from its evaluation on the test set."""
        return tested.metrics

    @property
    @abstractmethod
    def parts_evaluated(self) -> tuple[str, ...]:
        """The parts measured after every epoch; "val", where it is there, chooses the epoch that counts."""


class Classify(Task):
    """Classification of a `Dataset`."""

    def __init__(self, dataset: Dataset, taxonomy: Taxonomy | None = None) -> None:
        self.dataset = dataset
        self.taxonomy = dataset.taxonomy if taxonomy is None else taxonomy.reorder(dataset.classes)
        self._ordered: dict[str, Batches] = {}

    @property
    def parts_evaluated(self) -> tuple[str, ...]:
        return ("test",) if self.dataset.val is None else ("val", "test")

    def batches(self, settings: Settings, place: Place) -> Batches:
        return Batches(
            self.dataset.train,
            batch_size=min(settings.batch_size, len(self.dataset.train)),
            shuffle=True,
            seed=settings.seed,
            device=place.device,
            augment=[augmentation(name) for name in settings.augment],
            normalize=self.dataset.normalize,
            balanced=settings.balanced,
            rank=place.rank,
            world=place.world,
            workers=settings.workers,
        )

    def loss(self, model: Callable[..., Any], batch: Minibatch) -> Any:
        weight = batch.weight if batch.weighted else None  # with weights, a loss masks all outputs
        return model(batch.inputs, batch.targets, index=batch.index, weight=weight)

    def weighed(self, batch: Minibatch) -> Minibatch:
        """A training batch with the weights of its samples; a task whose samples have some multiplies them in here."""
        return batch

    def parts(self, batch: Minibatch, count: int) -> list[Minibatch]:
        weighed = self.weighed(batch)
        weighted = batch.weighted or weighed.weight is not batch.weight
        if count == 1:
            return [weighed._replace(weighted=weighted)]
        fields = (torch.chunk(field, count) for field in weighed[:-1])
        return [Minibatch(*part, weighted) for part in zip(*fields, strict=True)]

    def refresh(self, model: Model, place: Place) -> None:
        batches = map(self.weighed, self._in_order("train", place))
        model.objective.refresh((_outputs(model, batch), batch.targets, batch.weight) for batch in batches)

    def _in_order(self, part: str, place: Place) -> Iterator[Minibatch]:
        """All samples of a part, in order; moved to the device once."""
        if part not in self._ordered:
            split = self.dataset.splits[part]
            self._ordered[part] = Batches(
                split,
                batch_size=min(EVALUATION_BATCH * place.world, len(split)),
                device=place.device,
                normalize=self.dataset.normalize,
                rank=place.rank,
                world=place.world,
            )
        return self._ordered[part].epoch(0)

    def evaluate(self, model: Model, part: str, place: Place) -> Evaluation:
        found: list[list[Tensor]] = []
        for batch in self._in_order(part, place):
            scores = model.objective.scores(_outputs(model, batch))
            gathered = [
                place.gather(field).flatten(0, 1) for field in (scores, batch.targets, batch.index, batch.weight)
            ]
            found.append([field[gathered[3] > 0].cpu() for field in gathered[:3]])
        scores, target, index = (torch.cat(field) for field in zip(*found, strict=True))
        order = index.argsort()
        scores, target = scores[order].float(), target[order]
        return Evaluation(metrics.summary(scores, target, self.taxonomy), {"scores": scores, "target": target})

    def conclude(self, model: Model, tested: Evaluation) -> dict[str, float]:
        return conclude(model.objective, tested.outputs["scores"], tested.outputs["target"], self.taxonomy)


def _outputs(model: Model, batch: Minibatch) -> Any:
    """What the model makes of a batch, in the precision of its weights."""
    return model(batch.inputs.to(next(model.parameters()).dtype))


def augmentation(text: str) -> Any:
    """An augmentation by name, with a number where it takes one: "flip", "pad-crop:4", "rotation:15"."""
    name, _, argument = text.partition(":")
    if name not in AUGMENTATIONS:
        raise InputError(
            f"augment: expected some of {', '.join(AUGMENTATIONS)}, got {name!r}.{near(name, AUGMENTATIONS)}"
        )
    if not argument:
        return AUGMENTATIONS[name]()
    try:
        number = float(argument)
        return AUGMENTATIONS[name](int(number) if number.is_integer() else number)
    except InputError:
        raise
    except ValueError:
        raise InputError(f"augment: expected a number after {name}:, got {argument!r}.") from None
    except TypeError:
        raise InputError(f"augment: {name} takes no number, got {argument!r}.") from None
