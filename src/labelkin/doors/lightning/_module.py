"""A `LightningModule` around a backbone and an objective."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from labelkin._checks import InputError
from labelkin._extras import MissingExtra, require
from labelkin.doors._epochs import check_trainable, end_epoch
from labelkin.doors.lightning._batch import Given, given, metrics_for, update_metrics
from labelkin.objectives import Objective
from labelkin.structure import Taxonomy
from labelkin.training import Model, parameter_groups

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule
else:
    try:
        LightningModule = require("lightning.pytorch", extra="lightning", use="KinModule").LightningModule
    except MissingExtra:
        LightningModule = require("pytorch_lightning", extra="lightning", use="KinModule").LightningModule


class KinModule(LightningModule):
    """A `LightningModule` that trains a backbone with an objective.

    It calls the objective's `begin_epoch`, `refresh` and `synchronize` at the right times, on one process or many, and
    logs the loss and the metrics of `labelkin.metrics`. Batches are (inputs, target), (inputs, target, index), a mapping
    with "inputs", "target" and any of "node", "weight" and "index", or a `labelkin.data.Minibatch`. A sample of weight 0
    is padding. Give the Trainer `max_epochs`, because some objectives depend on the number of epochs.

    Args:
        backbone: A module that turns inputs into features (B, F).
        objective: An objective with `features=F`.
        taxonomy: The tree of the classes, for severity, cost and hierarchical F1. If the objective knows only the number of
            classes, the tree must have their order.
        optimizer: Called with parameter groups, returns the optimizer; AdamW with its defaults if left out. Parameters
            that the objective excludes from weight decay are in a separate group.
        scheduler: Called with the optimizer, returns a scheduler that is stepped after each epoch.
        refresh_batches: Called after each epoch, returns the training batches for objectives that need a pass over the
            training set, such as a loader without augmentation. By default the training loader is iterated once more.

    Example:
        >>> import torch
        >>> from lightning.pytorch import Trainer
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> from labelkin import OneHot
        >>> from labelkin.doors.lightning import KinModule
        >>> samples = TensorDataset(torch.randn(8, 4), torch.arange(8) % 3)
        >>> module = KinModule(torch.nn.Linear(4, 5), OneHot(3, features=5))
        >>> quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        >>> trainer = Trainer(max_epochs=1, accelerator="cpu", enable_model_summary=False, **quiet)
        >>> trainer.fit(module, DataLoader(samples, batch_size=4))
        >>> sorted(trainer.logged_metrics)
        ['train_loss']
    """

    def __init__(
        self,
        backbone: nn.Module,
        objective: Objective,
        *,
        taxonomy: Taxonomy | None = None,
        optimizer: Callable[[list[dict[str, Any]]], Optimizer] = AdamW,
        scheduler: Callable[[Optimizer], Any] | None = None,
        refresh_batches: Callable[[], Iterable[Any]] | None = None,
    ) -> None:
        super().__init__()
        self.model = Model(backbone, objective)
        self.make_optimizer, self.make_scheduler = optimizer, scheduler
        self.refresh_batches = refresh_batches
        self.val_metrics = metrics_for(objective, taxonomy)
        self.test_metrics = metrics_for(objective, taxonomy)
        self.further_metrics = nn.ModuleDict()  # those of further validation and test loaders
        self._ended = True  # whether the objective has seen the end of the current epoch

    @property
    def objective(self) -> Objective:
        """The objective."""
        return self.model.objective

    def forward(self, inputs: Any) -> Any:
        """Return the objective's outputs for inputs."""
        return self.model(inputs)

    def configure_optimizers(self) -> Any:
        """Return the optimizer, and the scheduler if there is one."""
        optimizer = self.make_optimizer(parameter_groups(self.model))
        if self.make_scheduler is None:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": self.make_scheduler(optimizer)}

    def on_fit_start(self) -> None:
        """Refuse settings that would change the loss of the objective."""
        check_trainable(self.objective, self.trainer.accumulate_grad_batches)
        if (self.trainer.max_epochs or 0) < 1:
            raise InputError(
                f"max_epochs: expected the number of epochs, which objectives may depend on, got {self.trainer.max_epochs}; "
                "pass it to the Trainer."
            )

    def on_train_epoch_start(self) -> None:
        """Prepare the objective for the epoch."""
        self.objective.begin_epoch(self.current_epoch, self.trainer.max_epochs)
        self._ended = False

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Return the loss of a batch."""
        parts = given(batch)
        loss: Tensor = self.model(parts.inputs, parts.target, **parts.others)
        self.log(
            "train_loss", loss.detach(), on_step=False, on_epoch=True, batch_size=len(parts.target), sync_dist=True
        )
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """End the epoch for the objective after its last step, before it is validated and saved."""
        if self.trainer.is_last_batch:
            self._end_epoch()

    def on_train_epoch_end(self) -> None:
        """End the epoch for the objective if training stopped before its last step."""
        self._end_epoch()

    def _end_epoch(self) -> None:
        if not self._ended:
            end_epoch(self.model, self.objective, self._training_outputs)
            self._ended = True

    def _training_outputs(self) -> Iterator[tuple[Any, ...]]:
        batches = self.trainer.train_dataloader if self.refresh_batches is None else self.refresh_batches()
        for batch in batches:
            precision = self.trainer.precision_plugin
            parts = given(self.transfer_batch_to_device(precision.convert_input(batch), self.device, 0))
            with precision.forward_context():
                outputs = self.model(parts.inputs)
            weight = parts.others.get("weight")
            yield (outputs, parts.target) if weight is None else (outputs, parts.target, weight)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Synchronize the objective's state between processes, and save the result; every process calls this."""
        self.objective.synchronize()
        if checkpoint["state_dict"]:
            checkpoint["state_dict"].update(self.objective.state_dict(prefix="model.objective."))

    def on_validation_start(self) -> None:
        """Prepare metrics for each validation loader."""
        self._add_metrics("val", self.val_metrics, len(self.trainer.num_val_batches))

    def on_test_start(self) -> None:
        """Prepare metrics for each test loader."""
        self._add_metrics("test", self.test_metrics, len(self.trainer.num_test_batches))

    def _add_metrics(self, part: str, first: nn.ModuleDict, loaders: int) -> None:
        for place in range(1, loaders):
            if f"{part}_{place}" not in self.further_metrics:
                added = copy.deepcopy(first)
                for metric in added.values():
                    metric.reset()  # type: ignore[operator]
                self.further_metrics[f"{part}_{place}"] = added
                self._metric_attributes = None  # Lightning lists the metrics of a module once

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Log the loss and the metrics of a validation batch; of several loaders, Lightning logs each by its place."""
        self._evaluate("val", self.val_metrics, given(batch), dataloader_idx)

    def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Log the loss and the metrics of a test batch; of several loaders, Lightning logs each by its place."""
        self._evaluate("test", self.test_metrics, given(batch), dataloader_idx)

    def _evaluate(self, part: str, first: nn.ModuleDict, batch: Given, loader: int) -> None:
        metrics = self.further_metrics[f"{part}_{loader}"] if loader else first
        assert isinstance(metrics, nn.ModuleDict)
        outputs, size = self.model(batch.inputs), batch.size(self.objective.ignore_index)
        others = {name: value for name, value in batch.others.items() if name != "index"}
        loss = self.objective.loss(outputs, batch.target, **others)
        update_metrics(metrics, self.objective, outputs, batch)
        self.log(f"{part}_loss", loss, on_step=False, on_epoch=True, batch_size=size, sync_dist=True)
        for name, metric in metrics.items():
            self.log(f"{part}_{name}", metric, on_step=False, on_epoch=True, batch_size=size)

    @torch.no_grad()
    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Tensor:
        """Return (B, K) probabilities of the classes, or scores if the objective defines no probabilities."""
        inputs = batch if isinstance(batch, Tensor) else given(batch).inputs
        outputs = self.model(inputs)
        return self.objective.probs(outputs) if self.objective.has_probabilities else self.objective.scores(outputs)
