"""Compare a batched model with its members, so that a model which cannot be batched is noticed before any training."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor, nn

from labelkin.data import ArraySplit, Chain, Dataset, Minibatch
from labelkin.training._fleet_convolution import fastest_way
from labelkin.training._fleet_model import FleetModel
from labelkin.training._model import Model
from labelkin.training._settings import Settings, augmentations
from labelkin.training._steps import plain_attributes
from labelkin.training._task import Classify

# The largest relative difference between a step in a fleet and alone, by the precision of the products. Fabric returns losses
# of float64 as float32. A GPU computes convolutions of float32 in TF32, whose rounding differs by kernel. Mixed-up members or
# state differ by about 1.
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}
COARSE = 5e-2
MIXED = 0.6  # bfloat16 alone changes gradients of the first layers by 4 % in a small network and by 25 % in a deep one
LEAST = 1e-2  # of the norm of all gradients: rounding of smaller gradients is not compared


class NotBatched(Exception):
    """Runs cannot be trained as one batched model.

    Args:
        reason: Why not.
        rows: The members to which this applies; None for all of them.
    """

    def __init__(self, reason: str, rows: Sequence[int] | None = None) -> None:
        super().__init__(reason)
        self.rows = rows


def reason_against(settings: Settings, dataset: Dataset) -> str | None:
    """Return why runs with these settings and data cannot be members of a fleet, or None."""
    if settings.devices > 1 or settings.strategy != "auto":
        return "they use several devices or a strategy"
    if settings.accumulate > 1:
        return "gradients are accumulated"
    if settings.compile:
        return "they are compiled" if settings.compile is True else "they may be compiled"
    if not isinstance(dataset.train, ArraySplit):
        return "images are read from files"
    usual = Settings()
    for name in ("freeze", "backbone_lr", "unfreeze_after", "ema", "patience", "dropout"):
        if getattr(settings, name) != getattr(usual, name):
            return f"they set {name}"
    chosen = augmentations(settings.augment)
    if chosen.mix is not None or Chain(tuple(chosen.steps)).on_host:
        return "an augmentation works on the whole batch of a run"
    if dataset.partial is not None:
        return "some labels are inner nodes of the taxonomy"
    if settings.logit_adjustment:
        return "logits are adjusted"
    if settings.sampler != "random":
        return "classes are sampled equally often"
    return None


def check_step(
    fleet: FleetModel, forward: Callable[..., Tensor], task: Classify, fabric: Any, batch: Minibatch
) -> None:
    """Compute a step in a fleet and with each member alone, and raise `NotBatched` if losses or gradients differ.

    The fastest way to compute convolutions is chosen first. Nothing else is changed: buffers are restored, and gradients are
    removed.

    Args:
        fleet: The batched model.
        forward: The batched model as Fabric wraps it.
        task: The task.
        fabric: The Fabric.
        batch: A batch with the members on the first axis.
    """
    before = [buffer.clone() for buffer in fleet.buffers()]

    def step() -> None:
        fabric.backward(task.loss(forward, batch).sum())

    fleet.backbone.way = fastest_way(fleet.backbone, step, batch.inputs.device)
    _reset(fleet, before)
    alone = [deepcopy(model) for model in fleet.models]
    tolerance = _tolerance(alone[0], fabric)
    try:
        losses = task.loss(forward, batch)
        fabric.backward(losses.sum())
        found = [_gradients(fleet, row) for row in range(len(alone))]
    except (
        RuntimeError
    ) as error:  # the model draws random numbers, reads values, or has an operation without a batched form
        raise NotBatched(_first_sentence(error), _failing_rows(fleet, batch)) from error
    for row, (model, gradients) in enumerate(zip(alone, found, strict=True)):
        before_step = plain_attributes(model)
        with fabric.autocast():
            loss = _alone(model, Minibatch(*(field[row] for field in batch)), weighted=batch.weighted)
        loss.backward()  # type: ignore[no-untyped-call]
        if plain_attributes(model) != before_step:
            raise NotBatched("the model stores part of its state outside of tensors", fleet.kind_rows(row))
        expected = [_gradient(parameter) for parameter in model.parameters()]
        if not _close(losses[row].detach(), loss.detach(), tolerance):
            raise NotBatched(
                "the losses of the batched model differ from those of a single model", fleet.kind_rows(row)
            )
        if not _all_close(gradients, expected, tolerance):
            raise NotBatched(
                "the gradients of the batched model differ from those of a single model", fleet.kind_rows(row)
            )
        for (_, own), other in zip(fleet.models[row].named_buffers(), model.buffers(), strict=True):
            if not _close(own, other, tolerance):
                raise NotBatched(
                    "the state of the batched model differs from that of a single model", fleet.kind_rows(row)
                )
    _reset(fleet, before)


def _reset(fleet: FleetModel, buffers: list[Tensor]) -> None:
    """Restore buffers, and remove gradients."""
    for buffer, value in zip(fleet.buffers(), buffers, strict=True):
        buffer.copy_(value)
    fleet.zero_grad(set_to_none=True)


def check_scores(fleet: FleetModel, fabric: Any, batch: Minibatch) -> bool:
    """Return whether the batched scores in evaluation mode are those of the members; models are left in training mode."""
    inputs = batch.inputs[0]
    for model in fleet.models:
        model.eval()
    try:
        with torch.no_grad(), fabric.autocast():
            inputs = inputs.to(next(fleet.parameters()).dtype)
            together = fleet.scores(inputs)
            return all(
                _close(together[:, row], model.objective.scores(model(inputs)), _tolerance(model, fabric))
                for row, model in enumerate(fleet.models)
            )
    except RuntimeError:  # an operation has no batched form; members are evaluated one by one
        return False
    finally:
        for model in fleet.models:
            model.train()


def _alone(model: Model, batch: Minibatch, *, weighted: bool) -> Tensor:
    """Return the loss of one member."""
    inputs = batch.inputs.to(next(model.parameters()).dtype)
    loss: Tensor = model(inputs, batch.targets, index=batch.index, weight=batch.weight if weighted else None)
    return loss


def _gradients(fleet: FleetModel, row: int) -> list[Tensor]:
    own = {id(part.own): part for part in fleet.parts_of(row)}
    parts = [own[id(parameter)] for parameter in fleet.models[row].parameters()]
    return [_gradient(part.stacked)[part.row].clone() for part in parts]


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _all_close(found: list[Tensor], expected: list[Tensor], tolerance: float) -> bool:
    """Return whether the gradients of all parameters are close."""
    whole = torch.stack([gradient.norm() for gradient in expected]).norm()
    return all(
        bool((ours - theirs).norm() <= tolerance * (theirs.norm() + LEAST * whole))
        for ours, theirs in zip(found, expected, strict=True)
    )


def _close(found: Tensor, expected: Tensor, tolerance: float) -> bool:
    if not expected.numel() or torch.equal(found, expected):
        return True
    scale = expected.double().norm() + 1e-12
    return bool((found.double() - expected.double()).norm() <= tolerance * scale)


def _tolerance(model: Model, fabric: Any) -> float:
    parameter = next(model.parameters())
    with fabric.autocast():
        mixed = torch.is_autocast_enabled(parameter.device.type)
    if mixed:
        return MIXED
    if parameter.dtype == torch.float32 and parameter.is_cuda:
        return COARSE
    return TOLERANCE[parameter.dtype]


def _first_sentence(error: Exception) -> str:
    """Return the first sentence of an error of `vmap`, whose messages are long."""
    return shorten(str(error).strip().partition("\n")[0].partition(". ")[0].rstrip("."), 120, placeholder=" ...")


def _failing_rows(fleet: FleetModel, batch: Minibatch) -> list[int] | None:
    """Return the members whose objectives cannot be batched, or None if it is the backbone."""
    try:
        features = fleet.backbone(batch.inputs.to(next(fleet.parameters()).dtype)).detach()
    except RuntimeError:
        return None
    rows: list[int] = []
    for span, head in zip(fleet.spans, fleet.heads, strict=True):
        try:
            head(features[span], batch.targets[span], index=batch.index[span])
        except RuntimeError:
            rows += range(span.start, span.stop)
    return rows or None
