"""Real digits for tests: scikit-learn's 1,797 images of 8 x 8."""

from functools import cache
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from labelkin import OBJECTIVES, Context, Objective

DIGITS = tuple("0123456789")


@cache
def digits() -> tuple[Tensor, Tensor]:
    """(1797, 64) pixels from 0 to 1 and the digits they show."""
    found = load_digits()
    return torch.from_numpy(found.data).float() / 16, torch.from_numpy(found.target).long()


def digits_context(count: int | None = None) -> Context:
    inputs, targets = digits()
    return Context(classes=DIGITS, features=64, inputs=inputs[:count], targets=targets[:count])


def build_on_digits(name: str, count: int | None = None, **options: Any) -> Objective:
    """The objective as `build` makes it with the first `count` images at hand."""
    torch.manual_seed(0)
    return OBJECTIVES[name].build(digits_context(count), **options)
