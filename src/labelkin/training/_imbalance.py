"""Class weights and logit adjustment from the numbers of training samples, as training settings name them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from labelkin._checks import InputError, near
from labelkin.objectives import Objective
from labelkin.relations import balanced_weights, effective_weights, log_priors
from labelkin.training._class_table import numbers_by_class

CLASS_WEIGHTS: dict[str, Callable[[Any], Tensor]] = {"balanced": balanced_weights, "effective": effective_weights}


def class_weights(choice: str, counts: Tensor, classes: Sequence[str]) -> Tensor:
    """Return the (K,) weights of the classes.

    Args:
        choice: "balanced", "effective", or a file of weights by class name: a .json object, or a .csv file with a name and a
            weight in each line, with or without a heading.
        counts: (K,) numbers of training samples.
        classes: The names of the classes.
    """
    if choice in CLASS_WEIGHTS:
        return CLASS_WEIGHTS[choice](counts)
    path = Path(choice).expanduser()
    if not path.is_file():
        raise InputError(
            f"class_weight: expected {', '.join(CLASS_WEIGHTS)}, or a .csv or .json file of weights by class name, got "
            f"{choice!r}, which is not a file.{near(choice, CLASS_WEIGHTS)}"
        )
    return numbers_by_class("class_weight", "weight", path, classes)


def logit_offset(tau: float, counts: Tensor) -> Tensor | None:
    """Return the (K,) numbers that logit adjustment adds to the logits in training; None at 0."""
    return tau * log_priors(counts) if tau else None


def check_logit_adjustment(objective: type[Objective], name: str, tau: float) -> None:
    """Refuse logit adjustment of an objective whose outputs are not the logits of a softmax over the classes."""
    if tau and not objective.softmax_logits:
        raise InputError(
            f"logit_adjustment: expected 0 for {name!r}, whose outputs are not the logits of a softmax over the classes, got "
            f"{tau}; use class_weight or sampler instead, or another objective."
        )
