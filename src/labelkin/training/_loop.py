"""The training loop: Lightning Fabric, an evaluation after each epoch, and checkpoints that survive a kill at any time."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._checks import refuse_damaged
from labelkin.training._averages import WeightAverages
from labelkin.training._captured_steps import make_steps
from labelkin.training._checkpoint import Checkpoint, Pace, State
from labelkin.training._fabric import make_fabric, place_of, without_advice
from labelkin.training._interrupt import Diverged, Interrupted, StopAfterStep
from labelkin.training._loop_checks import (
    REMEDY,
    check_accumulation,
    check_mean,
    check_mixing,
    check_patience,
    check_progress,
    load_optimizer,
    load_weights,
)
from labelkin.training._model import Model
from labelkin.training._optimizer import make_optimizer, match_memory_format
from labelkin.training._packing import state_of
from labelkin.training._progress import Progress, Silent
from labelkin.training._settings import Settings
from labelkin.training._steps import LossSum, Workbench
from labelkin.training._task import Evaluation, Task, batch_statistics


class Trained(NamedTuple):
    """The result of `Trainer.fit`.

    Attributes:
        model: The trained model, with the weights of the reported epoch.
        history: One row of metrics for each epoch.
        epoch: The reported epoch, counted from 1: the best one on validation data, or the last one.
        metrics: The final metrics on the test set; empty if the task does not evaluate one.
        outputs: The model's outputs on the test set, such as "scores" and "target".
        seconds: The time spent training, without evaluation.

    Example:
        >>> from labelkin import Model, OneHot
        >>> from labelkin.training import Trained
        >>> model = Model(torch.nn.Identity(), OneHot(2))
        >>> Trained(model, [{"epoch": 1, "loss": 0.3}], 1, {"accuracy": 0.9}, {}, 1.5).metrics["accuracy"]
        0.9
    """

    model: Model
    history: list[dict[str, float]]
    epoch: int
    metrics: dict[str, float]
    outputs: dict[str, Tensor]
    seconds: float


class Trainer:
    """Train a model on a task.

    Training stops with `Diverged` if the loss becomes NaN or infinite. This is checked at the end of each epoch: a step
    reads nothing from the device, so the host never waits for a GPU.

    Args:
        model: A backbone and an objective.
        task: The data, the loss and the evaluation, such as `Classify(dataset)`.
        settings: Epochs, optimizer, learning rate and so on.
        checkpoint: Where to save the run, such as a `RunFolder`. By default nothing is saved.
        progress: Called with the number of steps in an epoch; returns what displays the progress.
        log: Called with the metrics of each epoch.

    Example:
        >>> from labelkin import data, models, objectives
        >>> from labelkin.training import Classify
        >>> digits = data.load("digits", subset=0.2)
        >>> net = models.build("tiny-cnn", digits.shape)
        >>> model = Model(net, objectives.OneHot(classes=digits.classes, features=net.features))
        >>> trained = Trainer(model, Classify(digits), Settings(epochs=1)).fit()
        >>> len(trained.history), trained.outputs["scores"].shape
        (1, torch.Size([359, 10]))
    """

    def __init__(
        self,
        model: Model,
        task: Task,
        settings: Settings,
        *,
        checkpoint: Checkpoint | None = None,
        progress: Callable[[int], Progress] = lambda steps: Silent(),
        log: Callable[[Mapping[str, float]], None] = lambda row: None,
    ) -> None:
        check_accumulation(model.objective, settings)
        check_mixing(type(model.objective), settings)
        check_mean(model.objective, settings)
        check_patience(task, settings)
        self.model, self.task, self.settings, self.checkpoint = model, task, settings, checkpoint
        self.progress, self.log = progress, log
        self.epoch, self.step = 0, 0  # the next ones to train
        self.loss_sum = LossSum(torch.device("cpu"))  # of the current epoch
        self.history: list[dict[str, float]] = []
        self.seconds = 0.0
        self.noted = False  # whether the user was told why steps are not captured
        self.pace = Pace()
        self.best: dict[str, Any] | None = None  # the weights of the best epoch so far
        self.averages: WeightAverages | None = None
        self._trainable = [parameter for parameter in model.backbone.parameters() if parameter.requires_grad]

    def fit(self, *, resume: bool = False) -> Trained:
        """Train to the end.

        On Ctrl-C the current step is finished and saved, and `Interrupted` is raised.

        Args:
            resume: Whether to continue from the checkpoint's state, if it has one.

        Returns:
            The trained model with its history and metrics.
        """
        threads = torch.get_num_threads()
        torch.set_num_threads(self.settings.threads)
        try:
            self._prepare(resume)
            with self.progress(len(self.batches)) as progress, StopAfterStep() as stop:
                for epoch in range(self.epoch, self.settings.epochs):
                    if self._out_of_patience():
                        break
                    self._train_epoch(epoch, progress, stop)
                    self._end_epoch(epoch, progress, stop)
            return self._result()
        finally:
            torch.set_num_threads(threads)

    def _prepare(self, resume: bool) -> None:
        """Place model, optimizer and data on the device, and restore the saved state if requested."""
        self.fabric = make_fabric(self.settings)
        with without_advice():
            self.fabric.launch()
        torch.manual_seed(self.settings.seed)
        self.place = place_of(self.fabric)
        self.model.to(self.place.device)
        if self.place.device.type == "cuda":
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster convolutions
        optimizer = make_optimizer(self.model, self.settings)
        self.batches = self.task.batches(self.settings, self.place)
        self.forward, self.optimizer = self.fabric.setup(self._maybe_compiled(), optimizer)
        self.loss_sum = LossSum(self.place.device)
        self.averages = WeightAverages(self.model, self.settings.ema) if self.settings.ema else None
        if resume:
            self._restore()
        bench = Workbench(
            self.fabric,
            self.forward,
            self.optimizer,
            self.task,
            self.batches,
            self.settings,
            self.place,
            self.loss_sum,
            self._clip,
        )
        self.steps = make_steps(bench, self.model.objective)

    def _clip(self, most: float) -> Tensor:
        """Clip the gradients to a norm and return the norm before; Fabric's own check would wait for the device."""
        norm: Tensor = self.fabric.clip_gradients(self.forward, self.optimizer, max_norm=most, error_if_nonfinite=False)
        return norm

    def _maybe_compiled(self) -> Any:
        """Return the model, compiled if the settings request it."""
        if not self.settings.compiles(len(self.batches), self.place.device.type):
            return self.model
        torch._dynamo.reset()  # earlier runs in this process count toward the recompilation limit
        return torch.compile(self.model)

    def _train_epoch(self, epoch: int, progress: Progress, stop: StopAfterStep) -> None:
        """Train the remaining steps of an epoch; on Ctrl-C save the state and raise `Interrupted`."""
        self.model.train()
        if self.settings.unfreeze_after:
            frozen = epoch < self.settings.unfreeze_after
            self.model.backbone.train(not frozen)  # frozen, batch normalization keeps its statistics
            for parameter in self._trainable:
                parameter.requires_grad_(not frozen)
        if self.step == 0:
            self.loss_sum.reset()
            self.model.objective.begin_epoch(epoch, self.settings.epochs)
        begun = perf_counter()
        for loss in self.steps.epoch(epoch, start=self.step):
            self.step += 1
            if self.averages is not None:
                self.averages.update()
            progress.step(epoch, self.step, loss)
            if self.step < len(self.batches) and stop.agreed(self.place.device):
                self.seconds += perf_counter() - begun
                self._save()
                raise Interrupted
        if self.place.device.type == "cuda":
            torch.cuda.synchronize(self.place.device)  # or the time would not include the last steps
        self.seconds += perf_counter() - begun
        if self.steps.not_captured is not None and not self.noted:
            progress.note(f"steps are not captured as CUDA graphs: {self.steps.not_captured}")
            self.noted = True

    @torch.no_grad()
    def _end_epoch(self, epoch: int, progress: Progress, stop: StopAfterStep) -> None:
        """Evaluate, record the epoch's metrics and save."""
        self.model.eval()
        self._refresh()
        mean_loss = self.loss_sum.mean(len(self.batches), self.place.gather)
        if not isfinite(mean_loss):
            raise Diverged(
                f"Loss became NaN or infinite in epoch {epoch + 1}; training stopped. Lower lr, or clip gradients (clip)."
            )
        last_rate = self.steps.rate(epoch, len(self.batches) - 1)
        row = {"epoch": epoch + 1, "lr": last_rate, "loss": mean_loss}
        row |= self.model.objective._figures()
        with nullcontext() if self.averages is None else self.averages.applied():
            for part in self.task.parts_evaluated:
                row |= {f"{part}_{name}": value for name, value in self._evaluate(part).metrics.items()}
            self.history.append(row)
            if self._selection_part is not None and self._reported_epoch() == epoch + 1:
                self.best = state_of(self.model)
        self.epoch, self.step = epoch + 1, 0
        ended = self.epoch == self.settings.epochs or self._out_of_patience()
        stopped = not ended and stop.agreed(self.place.device, now=True)
        self._save(needed=ended or stopped)
        progress.epoch(epoch, row)
        self.log(row)
        if stopped:
            raise Interrupted

    def _refresh(self) -> None:
        """Let the objective pass over the training set, if it needs to."""
        if "refresh" in self.model.objective.needs:
            with self.fabric.autocast():
                self.task.refresh(self.model, self.place)

    def _evaluate(self, part: str) -> Evaluation:
        """Evaluate a part of the data, in the mode that the settings name."""
        as_trained = self.settings.evaluation == "batch-statistics"
        with self.fabric.autocast(), batch_statistics(self.model.backbone) if as_trained else nullcontext():
            return self.task.evaluate(self.model, part, self.place)

    def _out_of_patience(self) -> bool:
        """Return whether the validation split had no better result for as many epochs as the settings allow."""
        if self.settings.patience is None:
            return False
        values = [row[f"val_{self.task.chosen_by}"] for row in self.history]
        return len(values) - 1 - values.index(max(values)) >= self.settings.patience if values else False

    def _reported_epoch(self) -> int:
        """Return the epoch to report: the best one so far (of equals the latest) if one is selected, else the last."""
        if self._selection_part is None:
            return len(self.history)
        return max(
            range(1, len(self.history) + 1),
            key=lambda e: (self.history[e - 1][f"{self._selection_part}_{self.task.chosen_by}"], e),
        )

    @property
    def _selection_part(self) -> str | None:
        """The part of the data on which the best epoch is selected; None to report the last epoch."""
        if self.settings.report == "best-test":
            return "test"
        return "val" if "val" in self.task.parts_evaluated and self.settings.report == "auto" else None

    @torch.no_grad()
    def _result(self) -> Trained:
        """Restore the weights of the reported epoch, evaluate them on the test set and save the results."""
        if self.best is not None:
            self.model.load_state_dict(self.best)
        elif self.averages is not None:
            self.averages.apply()
        self.model.eval()
        tested = self._evaluate("test") if "test" in self.task.parts_evaluated else Evaluation({}, {})
        tested = self.task.calibrate(self.model, tested, self._evaluate) if tested.outputs else tested
        metrics = self.task.final_metrics(self.model, tested) if tested.outputs else {}
        if self.checkpoint is not None and self.place.rank == 0:
            final = {"epoch": self._reported_epoch(), **metrics}
            self.checkpoint.finish(state_of(self.model), final, tested.outputs, seconds=self.seconds)
        return Trained(self.model, self.history, self._reported_epoch(), metrics, tested.outputs, self.seconds)

    def _save(self, *, needed: bool = True) -> None:
        """Save the state if it is needed or due; record the history in any case. Every process calls this."""
        self.model.objective.synchronize()
        losses = self.loss_sum.parts(self.place.gather)
        if self.checkpoint is None or self.place.rank != 0:
            return
        if not needed and not self.pace.due():
            self.checkpoint.record(self.history)
            return
        progress = {
            "epoch": self.epoch,
            "step": self.step,
            "losses": losses,  # of the current epoch, one entry for each process
            "history": self.history,
            "seconds": self.seconds,
        }
        tensors = {
            "model": state_of(self.model),
            "optimizer": self._optimizer_state(),
            "best": self.best,
            "averages": None if self.averages is None else self.averages.state(),
            "random": {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()},
        }
        with self.pace.saving():
            self.checkpoint.save(State(progress, tensors))

    def _optimizer_state(self) -> dict[str, Any]:
        return self.steps.optimizer_state()

    def _restore(self) -> None:
        """Continue from the checkpoint's state, if it has one."""
        found = None if self.checkpoint is None else self.checkpoint.load(clean=self.place.rank == 0)
        if found is None:
            return
        progress, tensors = found
        with refuse_damaged("the saved training state", REMEDY):
            if tensors.get("best") is not None:
                load_weights(self.model, tensors["best"])  # now, because they are used only at the end
            load_weights(self.model, tensors["model"])
            if "optimizer" in tensors:  # a finished run has none
                check_progress(
                    progress, epochs=self.settings.epochs, steps=len(self.batches), processes=self.place.world
                )
                self._restore_progress(progress, tensors)
            self.epoch, self.step = progress["epoch"], progress["step"]
            self.history, self.seconds = list(progress["history"]), progress["seconds"]

    def _restore_progress(self, progress: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        """Restore what only an unfinished run has: losses, optimizer, best weights and random state."""
        if "losses" in progress:
            self.loss_sum.restore(*progress["losses"][self.place.rank])
        else:  # older states have one sum for all processes
            self.loss_sum.restore(progress["loss_sum"])
        load_optimizer(self.optimizer, tensors["optimizer"])
        match_memory_format(self.optimizer)
        self.best = tensors["best"]
        if self.averages is not None:
            self.averages.restore(tensors["averages"])
        torch.set_rng_state(tensors["random"]["cpu"])
        torch.cuda.set_rng_state_all(tensors["random"]["cuda"])
