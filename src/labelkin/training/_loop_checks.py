"""Checks of settings against the objective and the data, before a training loop begins."""

from labelkin._checks import InputError
from labelkin.objectives import Objective
from labelkin.training._augmentations import is_mixing
from labelkin.training._settings import Settings
from labelkin.training._task import Task


def check_accumulation(objective: type[Objective], settings: Settings) -> None:
    """Raise `InputError` if the settings accumulate gradients and the objective's loss needs the whole batch."""
    if settings.accumulate > 1 and not objective.accumulates:
        raise InputError(
            f"accumulate: expected 1 for {objective.__name__}, whose loss is computed over the whole batch, "
            f"got {settings.accumulate}."
        )


def check_mixing(objective: type[Objective], settings: Settings) -> None:
    """Raise `InputError` if the settings mix samples and the objective does not take class probabilities as targets."""
    mixing = [name for name in settings.augment if is_mixing(name)]
    if mixing and not objective.linear_in_target:
        raise InputError(
            f"augment: {mixing[0]} makes targets of class probabilities, which have no meaning for {objective.__name__}, whose "
            "loss is not linear in the target; leave it out, or train another objective."
        )


def check_patience(task: Task, settings: Settings) -> None:
    """Raise `InputError` if the settings stop early and the task has no validation split to decide on."""
    if settings.patience is not None and "val" not in task.parts_evaluated:
        raise InputError(
            f"patience: {settings.patience} needs a validation split, and the data have none; make one with --validation 0.1 "
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
