"""Class weights and logit adjustment from the numbers of training samples, as training settings name them."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number, listed, near, reads_as_number
from labelkin.objectives import Objective
from labelkin.relations import balanced_weights, effective_weights, log_priors

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
    readers = {".json": _read_json, ".csv": _read_csv}
    if not path.is_file():
        raise InputError(
            f"class_weight: expected {', '.join(CLASS_WEIGHTS)}, or a .csv or .json file of weights by class name, got "
            f"{choice!r}, which is not a file.{near(choice, CLASS_WEIGHTS)}"
        )
    if path.suffix.lower() not in readers:
        raise InputError(f"class_weight: expected a .csv or .json file, got {choice!r}.")
    try:
        by_name = readers[path.suffix.lower()](path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InputError(f"class_weight: {path} is not a file of weights by class name ({error}).") from error
    return _in_order(by_name, classes, path)


def _read_json(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, Mapping):
        raise ValueError("expected an object such as {'cat': 1, 'dog': 2.5}")
    return dict(found)


def _read_csv(text: str) -> dict[str, Any]:
    lines = [[cell.strip() for cell in line] for line in csv.reader(text.splitlines()) if line]
    if any(len(line) != 2 for line in lines):
        raise ValueError("expected a class and a weight in each line")
    if lines and not reads_as_number(lines[0][1]):
        lines = lines[1:]  # a heading
    if len({name for name, _ in lines}) < len(lines):
        raise ValueError("a class occurs twice")
    return {name: float(value) for name, value in lines}


def _in_order(by_name: Mapping[str, Any], classes: Sequence[str], path: Path) -> Tensor:
    missing = [name for name in classes if name not in by_name]
    if missing:
        raise InputError(f"class_weight: {path} has no weight of {listed(missing)}; add one for every class.")
    unknown = [name for name in by_name if name not in set(classes)]
    if unknown:
        raise InputError(
            f"class_weight: {path} has a weight of {listed(unknown)}, which is not a class of the data."
            f"{near(unknown[0], classes)}"
        )
    for name in classes:
        check_number(f"class_weight: the weight of {name!r} in {path}", by_name[name], low=0)
    weights = torch.tensor([float(by_name[name]) for name in classes], dtype=torch.float64)
    if not weights.any():
        raise InputError(f"class_weight: expected at least one weight above 0 in {path}, got only zeros.")
    return weights


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
