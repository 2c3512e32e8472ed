"""Small networks on few digits, which train in a fraction of a second, so that a benchmark can run hundreds."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin import Model, Taxonomy, data, models
from labelkin.objectives import Objective, OneHot

CLASSES = tuple("0123456789")
TRAINED, STEPS, RATE, TARGET_RATE = 120, 60, 5e-3, 0.1  # few samples, so that there are enough mistakes


class Case(NamedTuple):
    """A tree, an objective to diagnose, and the share of the images that show the group of their class."""

    tree: Taxonomy
    build: Callable[[int], Objective]
    cue: float = 0.0


@cache
def digits() -> tuple[Tensor, Tensor]:
    found = data.load("digits")
    inputs = torch.cat([found.train.inputs, found.test.inputs]).float() / 240
    return inputs, torch.cat([found.train.targets, found.test.targets])


class Parts(NamedTuple):
    train: tuple[Tensor, Tensor]
    held_out: tuple[Tensor, Tensor]


def parts(case: Case, seed: int) -> Parts:
    inputs, targets = digits()
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(targets)))
    shown = with_cue(inputs, targets, case, seed)
    first, rest = order[:TRAINED], order[TRAINED:]
    return Parts((shown[first], targets[first]), (shown[rest], targets[rest]))


def with_cue(inputs: Tensor, targets: Tensor, case: Case, seed: int) -> Tensor:
    """Return images with a bright spot that shows the group of their class, so that no model confuses groups."""
    _, group = np.unique(case.tree.level(1), return_inverse=True)
    chosen = torch.from_numpy(np.random.default_rng(seed).random(len(targets)) < case.cue).nonzero().squeeze(-1)
    place = torch.from_numpy(group)[targets[chosen]]
    shown = inputs.clone()
    shown[chosen, 0, place, 0] = shown[chosen, 0, place, -1] = 2.0
    return shown


def trained(build: Callable[[int], Objective], part: Parts, seed: int) -> tuple[Objective, Tensor]:
    """Return the objective and its log-probabilities on the held-out samples."""
    torch.manual_seed(seed)
    net = models.build("mlp", (1, 8, 8), hidden=(64,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Model(net, build(net.features))
    own = [p for name, p in model.named_parameters() if name.startswith("objective.targets.")]
    rest = [p for name, p in model.named_parameters() if not name.startswith("objective.targets.")]
    optimizer = torch.optim.Adam([{"params": rest}, {"params": own, "lr": TARGET_RATE}], lr=RATE)
    inputs, targets = part.train
    for _ in range(STEPS):
        optimizer.zero_grad()
        model.objective.loss(model(inputs), targets).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return model.objective, model.objective.log_probs(model(part.held_out[0]))


def plain(features: int) -> Objective:
    return OneHot(classes=CLASSES, features=features)
