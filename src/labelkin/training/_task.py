"""Tasks: training batches, their loss, and the evaluation of a model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from labelkin import metrics
from labelkin.data import Batches, Dataset, Minibatch, Split, samples_at_once
from labelkin.structure import Taxonomy
from labelkin.training._final_metrics import decide_test, final_metrics, fit_calibration
from labelkin.training._fleet_model import FleetModel
from labelkin.training._model import Model
from labelkin.training._settings import Settings, augmentations


@contextmanager
def batch_statistics(net: nn.Module) -> Iterator[None]:
    """Put a network into training mode for the duration of a `with` block.

    Batch normalization uses the statistics of each batch and does not update its running ones; dropout is active.

    >>> net = nn.BatchNorm1d(3).eval()
    >>> with batch_statistics(net):
    ...     net.training
    True
    >>> net.training
    False
    """
    modes = {module: module.training for module in net.modules()}
    norms = {module: module.momentum for module in modes if isinstance(module, _BatchNorm)}
    counts = {norm: None if norm.num_batches_tracked is None else norm.num_batches_tracked.clone() for norm in norms}
    net.train()
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
        for norm, momentum in norms.items():
            norm.momentum = momentum
            if (count := counts[norm]) is not None:
                norm.num_batches_tracked = count


EVALUATION_BATCH = 1024  # samples on each process
MOST_WAITING = 2**26  # scores that stay on the device before they are moved to the CPU


class Place(NamedTuple):
    """The device of a process and its rank among all processes.

    Attributes:
        device: The device.
        rank: The rank of this process.
        world: The number of processes.
        gather: Stacks the tensors (n, ...) of all processes to (world, n, ...).

    Example:
        >>> Place(torch.device("cpu")).gather(torch.zeros(3)).shape
        torch.Size([1, 3])
    """

    device: torch.device
    rank: int = 0
    world: int = 1
    gather: Callable[[Tensor], Tensor] = lambda part: part.unsqueeze(0)


class Evaluation(NamedTuple):
    """The metrics of a part of the data, and the outputs they come from in the part's order.

    A classifier's outputs are "scores" (n, K) and "target" (n,).
    """

    metrics: dict[str, float]
    outputs: dict[str, Tensor]


class Task(ABC):
    """The data, loss and evaluation of a training run; subclass it for a new kind of data.

    `Classify` trains classifiers, `Translate` sequence-to-sequence models.

    Example:
        >>> from labelkin.training import Classify, Task
        >>> issubclass(Classify, Task), sorted(Task.__abstractmethods__)
        (True, ['batches', 'evaluate', 'loss', 'parts', 'parts_evaluated', 'refresh'])
    """

    @property
    def chosen_by(self) -> str:
        """The metric that selects the best epoch."""
        return "accuracy"

    @abstractmethod
    def batches(self, settings: Settings, place: Place) -> Any:
        """Return the training batches: `len(batches)` steps in an epoch, `batches.epoch(e, start=s)` to iterate."""

    @abstractmethod
    def loss(self, model: Callable[..., Any], batch: Any) -> Any:
        """Return the scalar loss of a batch; `model` may be wrapped for parallel training."""

    @abstractmethod
    def parts(self, batch: Any, count: int) -> list[Any]:
        """Split a batch into `count` parts, for gradient accumulation; each has a `weight` tensor."""

    @abstractmethod
    def refresh(self, model: Model, place: Place) -> None:
        """Pass over the training set at the end of an epoch, for objectives that need it."""

    @abstractmethod
    def evaluate(self, model: Model, part: str, place: Place) -> Evaluation:
        """Evaluate the model on a part of the data ("val", "test"); the result is the same on every process."""

    def calibrate(self, model: Model, tested: Evaluation, evaluate: Callable[[str], Evaluation]) -> Evaluation:
        """Calibrate the trained model on held-out data, and add the calibrated decisions to its evaluation on the test set.

        Args:
            model: The trained model.
            tested: Its evaluation on the test set.
            evaluate: Evaluates the model on a part of the data.

        Returns:
            The evaluation with more metrics and outputs; by default unchanged.
        """
        return tested

    def final_metrics(self, model: Model, tested: Evaluation) -> dict[str, float]:
        """Return the final metrics of the trained model from its evaluation on the test set, as `calibrate` returned it."""
        return tested.metrics

    @property
    @abstractmethod
    def parts_evaluated(self) -> tuple[str, ...]:
        """The parts to evaluate after every epoch; "val", if present, selects the best epoch."""


class Classify(Task):
    """Train a classifier on a `Dataset`.

    Args:
        dataset: The data set.
        taxonomy: The tree for hierarchical metrics; by default the data set's own, if it has one.
        costs: (K, K) costs by true class (row) and answer (column) that the test samples are decided by; by default the
            distances in the tree.

    Example:
        >>> from labelkin import data
        >>> Classify(data.load("digits")).parts_evaluated
        ('test',)
    """

    def __init__(self, dataset: Dataset, taxonomy: Taxonomy | None = None, *, costs: Tensor | None = None) -> None:
        self.dataset, self.costs = dataset, costs
        self.taxonomy = dataset.taxonomy if taxonomy is None else taxonomy.reorder(dataset.classes)
        self._evaluated: dict[tuple[str, bool], Batches] = {}

    @property
    def parts_evaluated(self) -> tuple[str, ...]:
        """The test set, and the validation set if there is one."""
        return ("test",) if self.dataset.val is None else ("val", "test")

    @property
    def trained(self) -> Split:
        """The samples to train on."""
        return self.dataset.train

    def batches(self, settings: Settings, place: Place) -> Batches:
        """Return shuffled, augmented and normalized batches of the training set."""
        chosen = augmentations(settings.augment)
        split = self.trained
        return Batches(
            split,
            batch_size=min(settings.batch_size, len(split)),
            shuffle=True,
            seed=settings.seed,
            device=place.device,
            augment=chosen.steps,
            mix=chosen.mix,
            classes=len(self.dataset.classes),
            normalize=self.dataset.normalize,
            balanced=settings.balanced,
            sampler=settings.sampler,
            rank=place.rank,
            world=place.world,
            workers=settings.workers,
        )

    def loss(self, model: Callable[..., Any], batch: Minibatch) -> Any:
        """Return the loss of a batch; without weights if all are 1, since weights make the loss mask its outputs."""
        weight = batch.weight if batch.weighted else None
        return model(batch.inputs, batch.targets, index=batch.index, weight=weight)

    def weighed(self, batch: Minibatch) -> Minibatch:
        """Return a training batch with sample weights; override this for samples that have weights."""
        return batch

    def parts(self, batch: Minibatch, count: int) -> list[Minibatch]:
        """Apply the sample weights and split a batch into `count` parts."""
        weighed = self.weighed(batch)
        kind = type(batch) if weighed.weight is batch.weight else Minibatch  # Minibatch is marked as weighted
        if count == 1:
            return [kind(*weighed)]
        return [kind(*part) for part in zip(*(torch.chunk(field, count) for field in weighed), strict=True)]

    def refresh(self, model: Model, place: Place) -> None:
        """Give the objective the outputs of all training samples."""
        batches = map(self.weighed, self._to_evaluate("train", place, mixed=False))
        model.objective.refresh((_outputs(model, batch), batch.targets, batch.weight) for batch in batches)

    def _to_evaluate(self, part: str, place: Place, *, mixed: bool) -> Iterator[Minibatch]:
        """Iterate over the samples of a part, in their order or mixed; they are moved to the device once."""
        if (part, mixed) not in self._evaluated:
            split = self.dataset.splits[part]
            self._evaluated[part, mixed] = Batches(
                split,
                batch_size=min(samples_at_once(split.shape, EVALUATION_BATCH) * place.world, len(split)),
                shuffle=mixed,
                device=place.device,
                normalize=self.dataset.normalize,
                rank=place.rank,
                world=place.world,
            )
        return self._evaluated[part, mixed].epoch(0)

    def evaluate(self, model: Model, part: str, place: Place) -> Evaluation:
        """Compute the scores of all samples of a part and their summary metrics.

        If the backbone is in training mode, batches are mixed: with the statistics of a batch of one class, as in a test set
        that is sorted by class, batch normalization would remove what tells this class from others.
        """

        def score(batch: Minibatch) -> Tensor:
            return model.objective.scores(_outputs(model, batch))

        return self._evaluation(*self._scored(score, part, place, mixed=model.backbone.training))

    def evaluate_members(self, fleet: FleetModel, part: str, place: Place) -> list[Evaluation]:
        """Evaluate all members of a fleet at once; the result is one evaluation for each."""
        dtype = next(fleet.parameters()).dtype
        scores, target = self._scored(lambda batch: fleet.scores(batch.inputs.to(dtype)), part, place)
        return [self._evaluation(own.contiguous(), target) for own in scores.unbind(1)]

    def _evaluation(self, scores: Tensor, target: Tensor) -> Evaluation:
        return Evaluation(metrics.summary(scores, target, self.taxonomy), {"scores": scores, "target": target})

    def _scored(
        self, score: Callable[[Minibatch], Tensor], part: str, place: Place, *, mixed: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the scores (n, ...) of all samples of a part in their order, and their targets, on the CPU."""
        moved: list[list[Tensor]] = []
        waiting: list[list[Tensor]] = []  # on the device, so that batches do not wait for each other
        for batch in self._to_evaluate(part, place, mixed=mixed):
            fields = (score(batch), batch.targets, batch.index, batch.weight)
            waiting.append([place.gather(field).flatten(0, 1) for field in fields])
            if sum(fields[0].numel() for fields in waiting) > MOST_WAITING:
                moved.append(_real_rows(waiting))
                waiting = []
        moved += [_real_rows(waiting)] if waiting else []
        scores, target, index = (torch.cat(field) for field in zip(*moved, strict=True))
        order = index.argsort()
        return scores[order].float(), target[order]

    def calibrate(self, model: Model, tested: Evaluation, evaluate: Callable[[str], Evaluation]) -> Evaluation:
        """Fit a temperature on the validation split, or on the samples held out for it, and decide the test samples."""
        part = "calibration" if self.dataset.val is None else "val"
        held = evaluate(part).outputs if part in self.dataset.splits else {}
        calibration = fit_calibration(model.objective, held.get("scores"), held.get("target"))
        scores, target = tested.outputs["scores"], tested.outputs["target"]
        decided = decide_test(scores, target, self.taxonomy, calibration, self.costs)
        kept = {f"calibration_{name}": held[name] for name in held}
        return Evaluation({**tested.metrics, **decided.metrics}, {**tested.outputs, **kept, **decided.outputs})

    def final_metrics(self, model: Model, tested: Evaluation) -> dict[str, float]:
        """Return the metrics of `training.final_metrics` and those of the calibrated decisions."""
        scores, target = tested.outputs["scores"], tested.outputs["target"]
        return {**final_metrics(model.objective, scores, target, self.taxonomy), **tested.metrics}


def _real_rows(gathered: list[list[Tensor]]) -> list[Tensor]:
    """Return scores, targets and positions of gathered batches on the CPU, without padding."""
    *fields, weight = (torch.cat(field) for field in zip(*gathered, strict=True))
    return [field[weight > 0].cpu() for field in fields]


def _outputs(model: Model, batch: Minibatch) -> Any:
    """Return the model's outputs for a batch, with inputs in the precision of its weights."""
    return model(batch.inputs.to(next(model.parameters()).dtype))
