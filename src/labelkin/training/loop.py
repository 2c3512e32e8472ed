"""The training loop: epochs of steps on Lightning Fabric, measured after each, saved so that nothing is ever lost."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labelkin._checks import InputError
from labelkin.functional import sum_over_processes
from labelkin.objectives import Objective
from labelkin.training.fabric import make_fabric, place_of
from labelkin.training.folder import RunFolder
from labelkin.training.interrupt import Diverged, Interrupted, StopAfterStep
from labelkin.training.loss_sum import LossSum
from labelkin.training.model import Model
from labelkin.training.modes import batch_statistics
from labelkin.training.optimizer import lay_out_as_parameters, learning_rate, make_optimizer
from labelkin.training.pace import Pace
from labelkin.training.packing import state_of
from labelkin.training.progress import Progress, Silent
from labelkin.training.settings import Settings
from labelkin.training.task import Evaluation, Task


class Trained(NamedTuple):
    model: Model
    history: list[dict[str, float]]  # a row an epoch
    epoch: int  # the epoch that counts, from 1: the best on validation data, or the last
    metrics: dict[str, float]  # on the test set; empty where the task measures none
    outputs: dict[str, Tensor]  # "scores" and "target" on the test set
    seconds: float  # spent training, without measuring


class Trainer:
    """One run: a model, a task, settings, and the folder that keeps it, if any.

    `progress` is called with the number of steps an epoch and gives what shows them; `log` gets each epoch's row.
    """

    def __init__(
        self,
        model: Model,
        task: Task,
        settings: Settings,
        *,
        folder: RunFolder | None = None,
        progress: Callable[[int], Progress] = lambda steps: Silent(),
        log: Callable[[Mapping[str, float]], None] = lambda row: None,
    ) -> None:
        check_accumulation(type(model.objective), settings)
        _check_mean(model.objective, settings)
        self.model, self.task, self.settings, self.folder = model, task, settings, folder
        self.progress, self.log = progress, log
        self.epoch, self.step = 0, 0  # where to go on
        self.loss_sum = LossSum(torch.device("cpu"))  # of this epoch so far
        self.history: list[dict[str, float]] = []
        self.seconds = 0.0
        self.pace = Pace()
        self.best: dict[str, Any] | None = None  # the weights of the best epoch on validation data

    def fit(self, *, resume: bool = False) -> Trained:
        """Train to the end, or raise `Interrupted` once the step in hand is saved; `resume` goes on from the folder."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self.settings.threads)
        try:
            self._prepare(resume)
            with self.progress(len(self.batches)) as progress, StopAfterStep() as stop:
                for epoch in range(self.epoch, self.settings.epochs):
                    self._train_epoch(epoch, progress, stop)
                    self._end_epoch(epoch, progress, stop)
            return self._result()
        finally:
            torch.set_num_threads(threads)

    def _prepare(self, resume: bool) -> None:
        self.fabric = make_fabric(self.settings)
        self.fabric.launch()
        torch.manual_seed(self.settings.seed)
        self.place = place_of(self.fabric)
        self.model.to(self.place.device)
        if self.place.device.type == "cuda":
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # how its convolutions are fastest
        optimizer = make_optimizer(self.model, self.settings)
        self.forward, self.optimizer = self.fabric.setup(self._maybe_compiled(), optimizer)
        self.batches = self.task.batches(self.settings, self.place)
        if resume:
            self._restore()

    def _maybe_compiled(self) -> Any:
        if not self.settings.compile:
            return self.model
        torch._dynamo.reset()  # runs before this one must not use up its recompilations
        return torch.compile(self.model)

    def _train_epoch(self, epoch: int, progress: Progress, stop: StopAfterStep) -> None:
        self.model.train()
        if self.step == 0:
            self.loss_sum = LossSum(self.place.device)
            self.model.objective.begin_epoch(epoch, self.settings.epochs)
        begun = perf_counter()
        for batch in self.batches.epoch(epoch, start=self.step):
            loss = self._take_step(batch, epoch * len(self.batches) + self.step)
            self.loss_sum.add(loss)
            self.step += 1
            progress.step(epoch, self.step, loss)
            if self.step < len(self.batches) and stop.agreed(self.place.device):
                self.seconds += perf_counter() - begun
                self._save()
                raise Interrupted
        self.seconds += perf_counter() - begun

    def _take_step(self, batch: Any, step: int) -> Tensor:
        """One update, from the parts of the batch where it is computed in parts, each with its share of the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.settings, step, len(self.batches))
        self.optimizer.zero_grad(set_to_none=True)
        parts = self.task.parts(batch, self.settings.accumulate)
        total = torch.zeros((), device=self.place.device)
        for place, (part, share) in enumerate(zip(parts, _shares(parts), strict=True)):
            with self.fabric.no_backward_sync(self.forward, enabled=place < len(parts) - 1):
                loss = self.task.loss(self.forward, part) * share
                self.fabric.backward(loss)
            total += loss.detach()
        if self.settings.clip is not None:
            norm = self.fabric.clip_gradients(
                self.forward, self.optimizer, max_norm=self.settings.clip, error_if_nonfinite=False
            )  # whose own check would wait for the device
            total = torch.where(norm.isfinite(), total, norm.to(total.dtype))  # the epoch's end sees it
        self.optimizer.step()
        return total

    @torch.no_grad()
    def _end_epoch(self, epoch: int, progress: Progress, stop: StopAfterStep) -> None:
        self.model.eval()
        if "refresh" in self.model.objective.needs:
            with self.fabric.autocast():
                self.task.refresh(self.model, self.place)
        mean_loss = self.loss_sum.mean(len(self.batches), self.place.gather)
        if not isfinite(mean_loss):
            raise Diverged(
                f"Loss became NaN or infinite in epoch {epoch + 1}; training stopped. Lower lr, or clip gradients (clip)."
            )
        row = {"epoch": epoch + 1, "lr": self.optimizer.param_groups[0]["lr"], "loss": mean_loss}
        row |= self.model.objective._figures()
        for part in self.task.parts_evaluated:
            row |= {f"{part}_{name}": value for name, value in self._evaluate(part).metrics.items()}
        self.history.append(row)
        if self._chosen_on is not None and self._best_epoch() == epoch + 1:
            self.best = state_of(self.model)
        self.epoch, self.step = epoch + 1, 0
        ended = self.epoch == self.settings.epochs
        stopped = not ended and stop.agreed(self.place.device, now=True)
        self._save(needed=ended or stopped)
        progress.epoch(epoch, row)
        self.log(row)
        if stopped:
            raise Interrupted

    def _evaluate(self, part: str) -> Evaluation:
        as_trained = self.settings.evaluation == "batch-statistics"
        with self.fabric.autocast(), batch_statistics(self.model.backbone) if as_trained else nullcontext():
            return self.task.evaluate(self.model, part, self.place)

    def _best_epoch(self) -> int:
        """The epoch that counts: the latest of the best where one is chosen, else the last."""
        if self._chosen_on is None:
            return len(self.history)
        return max(
            range(1, len(self.history) + 1),
            key=lambda e: (self.history[e - 1][f"{self._chosen_on}_{self.task.chosen_by}"], e),
        )

    @property
    def _chosen_on(self) -> str | None:
        """The part of the data that chooses the epoch, if any."""
        if self.settings.report == "best-test":
            return "test"
        return "val" if "val" in self.task.parts_evaluated and self.settings.report == "auto" else None

    @torch.no_grad()
    def _result(self) -> Trained:
        if self.best is not None:
            self.model.load_state_dict(self.best)
        self.model.eval()
        tested = self._evaluate("test") if "test" in self.task.parts_evaluated else Evaluation({}, {})
        concluded = self.task.conclude(self.model, tested) if tested.outputs else {}
        if self.folder is not None and self.place.rank == 0:
            final = {"epoch": self._best_epoch(), **concluded}
            self.folder.finish(state_of(self.model), final, tested.outputs, seconds=self.seconds)
        return Trained(self.model, self.history, self._best_epoch(), concluded, tested.outputs, self.seconds)

    def _save(self, *, needed: bool = True) -> None:
        """Save the state where it is needed or due; the history in any case."""
        self.model.objective.synchronize()
        losses = self.loss_sum.parts(self.place.gather)
        if self.folder is None or self.place.rank != 0:
            return
        if not needed and not self.pace.due():
            self.folder.write_metrics(self.history)
            return
        progress = {
            "epoch": self.epoch,
            "step": self.step,
            "losses": losses,  # of this epoch so far, one entry a process
            "history": self.history,
            "seconds": self.seconds,
        }
        tensors = {
            "model": state_of(self.model),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "random": {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()},
        }
        with self.pace.saving():
            self.folder.save_state(progress, tensors)

    def _restore(self) -> None:
        found = None if self.folder is None else self.folder.load_state(tidy=self.place.rank == 0)
        if found is None:
            return
        progress, tensors = found
        self.epoch, self.step = progress["epoch"], progress["step"]
        self.loss_sum = LossSum(self.place.device)
        if "losses" in progress:
            self.loss_sum.restore(*progress["losses"][self.place.rank])
        else:  # saved by version 0.1
            self.loss_sum.restore(progress["loss_sum"])
        self.history, self.seconds = progress["history"], progress["seconds"]
        self.model.load_state_dict(tensors["model"])
        self.optimizer.load_state_dict(tensors["optimizer"])
        lay_out_as_parameters(self.optimizer)
        self.best = tensors["best"]
        torch.set_rng_state(tensors["random"]["cpu"])
        torch.cuda.set_rng_state_all(tensors["random"]["cuda"])


def check_accumulation(objective: type[Objective], settings: Settings) -> None:
    if settings.accumulate > 1 and not objective.accumulates:
        raise InputError(
            f"accumulate: {objective.__name__} takes its loss over the whole batch, so parts of a batch would be another "
            "objective; set accumulate to 1."
        )


def _check_mean(objective: Objective, settings: Settings) -> None:
    """The loop trains with mean losses, and adds up those of a batch's parts by the weight of their samples."""
    if objective.reduction != "mean":
        raise InputError(f"reduction: the training loop expects 'mean', got {objective.reduction!r}.")
    weighted = objective.class_weight is not None and objective.class_weight_divisor == "weights"
    if settings.accumulate > 1 and weighted:
        raise InputError(
            "accumulate: a mean that is divided by class weights is not the mean of its parts; set accumulate to 1, or "
            "class_weight_divisor to 'samples'."
        )


def _shares(parts: Sequence[Any]) -> Sequence[Tensor | float]:
    """What each part's mean loss counts for in the batch's: its share of the samples' weight, over all processes."""
    if len(parts) == 1:
        return [1.0]
    weights = sum_over_processes(torch.stack([part.weight.sum() for part in parts]))
    return (weights / weights.sum()).unbind()
