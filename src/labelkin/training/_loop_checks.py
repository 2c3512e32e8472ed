"""Checks before a training loop begins: of settings against the objective and the data, and of a saved state to resume.

A damaged state would fail much later, or not at all.
"""

from collections.abc import Mapping
from math import isnan
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer

from labelkin._checks import InputError, brief, counted, is_finite
from labelkin.objectives import Objective
from labelkin.training._settings import Settings, is_mixing
from labelkin.training._task import Task

MOST_STEPS = 2**53  # above it, a float does not hold every whole number
REMEDY = "delete the files state* in the folder of the run to train it from the start"


def check_accumulation(objective: Objective | type[Objective], settings: Settings) -> None:
    """Raise `InputError` if the settings accumulate gradients and the objective's loss needs the whole batch."""
    if settings.accumulate > 1 and not objective.accumulates:
        kind = objective if isinstance(objective, type) else type(objective)
        raise InputError(
            f"accumulate: expected 1 for {kind.__name__}, whose loss is computed over the whole batch, "
            f"got {settings.accumulate}."
        )


def check_mixing(objective: type[Objective], settings: Settings) -> None:
    """Raise `InputError` if the settings mix samples and the objective does not take class probabilities as targets."""
    mixing = [name for name in settings.augment if is_mixing(name)]
    if mixing and not objective.linear_in_target:
        raise InputError(
            f"augment: {mixing[0]} turns targets into class probabilities, which {objective.__name__} does not accept, because "
            "its loss is not linear in the target; leave it out, or train another objective."
        )


def check_patience(task: Task, settings: Settings) -> None:
    """Raise `InputError` if the settings stop early and the task has no validation split to decide on."""
    if settings.patience is not None and "val" not in task.parts_evaluated:
        raise InputError(
            f"patience: {settings.patience} needs a validation split, and the data have none; create one with --validation 0.1 "
            "(in Python: validation_fraction=0.1), or leave patience out."
        )


def check_mean(objective: Objective, settings: Settings) -> None:
    """Raise `InputError` if the loss is not a mean, or not the weighted mean of the losses of a batch's parts."""
    if objective.reduction != "mean":
        raise InputError(f"reduction: the training loop expects 'mean', got {objective.reduction!r}.")
    weighted = objective.class_weight is not None and objective.class_weight_divisor == "weights"
    if settings.accumulate > 1 and weighted:
        raise InputError(
            "accumulate: a mean that is divided by class weights is not the mean of its parts; set accumulate to 1, or "
            "class_weight_divisor to 'samples'."
        )


def check_progress(progress: Mapping[str, Any], *, epochs: int, steps: int, processes: int) -> None:
    """Raise `InputError` unless epoch, step, history, seconds and losses fit a run of this length.

    Args:
        progress: The JSON part of a state.
        epochs: The number of epochs of the run.
        steps: The number of steps of an epoch.
        processes: The number of processes that train the run.
    """
    epoch, step, history = progress.get("epoch"), progress.get("step"), progress.get("history")
    if not _is_count(epoch, epochs) or not _is_count(step, steps):
        raise _damaged(f"it is at step {step!r:.40} of epoch {epoch!r:.40}, expected at most {steps} of {epochs}")
    rows: list[Any] = history if isinstance(history, list) else [None]
    if len(rows) != epoch or not all(isinstance(row, dict) and all(map(_is_number, row.values())) for row in rows):
        raise _damaged(f"its history has no row of numbers for every epoch, {epoch} in all")
    if len({tuple(row) for row in rows}) > 1:
        raise _damaged("the rows of its history have different columns")
    if not _is_number(progress.get("seconds", 0)):
        raise _damaged(f"its seconds are {progress['seconds']!r:.40}")
    losses = progress["losses"] if "losses" in progress else [[progress.get("loss_sum")]] * processes
    pairs = isinstance(losses, list) and all(isinstance(own, (list, tuple)) and len(own) in (1, 2) for own in losses)
    if not pairs or len(losses) < processes or not all(_is_number(part) for own in losses for part in own):
        raise _damaged(
            f"its losses are {losses!r:.40}, expected a sum for each of {counted(processes, 'process', 'processes')}"
        )


def load_optimizer(optimizer: Any, saved: Mapping[str, Any]) -> None:
    """Load the state of an optimizer; raise `InputError` if it was not saved by an optimizer of the same settings."""
    groups = [dict(group) for group in optimizer.param_groups]
    for own, other in zip(groups, saved["param_groups"], strict=True):
        for name in own.keys() & other.keys() - {"params", "lr"}:  # versions of torch may add names
            if own[name] != other[name] or type(own[name]) is not type(other[name]):
                raise _damaged(f"its optimizer has {name} {brief(other[name], 40)}, expected {brief(own[name], 40)}")
    optimizer.load_state_dict(saved)
    for own, loaded in zip(groups, optimizer.param_groups, strict=True):
        if missing := sorted(own.keys() - loaded.keys()):  # torch has filled in the names that its versions added
            raise _damaged(f"its optimizer has no {missing[0]}")
    _check_state(optimizer)


def _check_state(optimizer: Optimizer) -> None:
    """Raise `InputError` unless the state of every parameter has the entries and shapes that the optimizer would create."""
    expected = {"momentum_buffer"} if isinstance(optimizer, SGD) else {"step", "exp_avg", "exp_avg_sq"}
    may_be_empty = isinstance(optimizer, SGD) and not optimizer.defaults["momentum"]
    for state in optimizer.state.values():
        if state.keys() != expected and not (may_be_empty and not state):
            raise _damaged(f"its optimizer keeps {brief(sorted(state), 100)}, expected {sorted(expected)}")
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if value is None and name == "momentum_buffer":  # a parameter that has had no gradient
                continue
            shape = () if name == "step" else parameter.shape
            if not (isinstance(value, Tensor) and value.is_floating_point() and value.shape == shape):
                raise _damaged(f"{name} of its optimizer does not fit a parameter of shape {tuple(parameter.shape)}")
            if name == "step" and not (0 <= value.item() < MOST_STEPS and value.item() % 1 == 0):
                raise _damaged(f"its optimizer is at step {value.item()}, expected a whole number from 0")


def load_weights(model: torch.nn.Module, saved: Any) -> None:
    """Load the state of a model, also of an earlier version; raise an error if shapes or types differ."""
    for name, value in model.state_dict().items():
        there = saved.get(name)  # earlier versions have other names, which the model translates
        if not isinstance(value, Tensor) or there is None:
            continue
        if not isinstance(there, Tensor) or there.shape != value.shape or there.dtype != value.dtype:
            raise _damaged(f"{name} does not fit the model")
    model.load_state_dict(saved)


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_number(value: Any) -> bool:
    return is_finite(value) or (isinstance(value, float) and isnan(value))


def _damaged(reason: str) -> InputError:
    return InputError(f"the saved training state is damaged ({reason}); {REMEDY}.")
