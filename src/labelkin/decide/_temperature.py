"""Temperature scaling (Guo et al., On Calibration of Modern Neural Networks, 2017): one number that makes logits honest."""

import warnings
from dataclasses import dataclass
from math import exp, log
from typing import Self

import torch
from scipy.optimize import brentq
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.decide._validation import check_logits, check_target

COLDEST, HOTTEST = 1e-3, 1e3


@dataclass
class Temperature:
    """Divides logits by `value`, which `fit` finds on a validation split: above 1 for a model that is too sure of itself.

        calibrate = Temperature().fit(validation_logits, validation_target)
        probs = calibrate.apply(test_logits).softmax(-1)

    No class order changes, so neither does `argmax`; what `least_cost` and `fallback` decide does.
    """

    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            check_number("value", self.value, low=0, open_low=True)

    def fit(self, logits: Tensor, target: Tensor) -> Self:
        """Find the `value` of least mean negative log-likelihood on `logits` (n, K) and classes `target` (n,).

        The loss is convex in `1 / value`, so there is one minimum and it is never worse than leaving the logits alone. It
        is sought from 0.001 to 1000. Where it lies beyond (every sample right: the colder the better; logits that say
        nothing about the classes: the hotter the better), the end is taken, with a warning.
        """
        check_logits("logits", logits)
        check_target("target", target, len(logits), logits.shape[-1])
        values = logits.detach().double()
        true = values.gather(-1, target.long().unsqueeze(-1)).mean()

        def slope(log_sharpness: float) -> float:
            """Of the loss in `1 / value`: by how much the logit expected exceeds that of the true class."""
            sharper = torch.softmax(values * exp(log_sharpness), -1)
            return float((sharper * values).sum(-1).mean() - true)

        low, high = -log(HOTTEST), -log(COLDEST)
        if slope(low) >= 0:
            self.value = self._at_the_end(HOTTEST, "say nothing about the classes, or are huge")
        elif slope(high) <= 0:
            self.value = self._at_the_end(COLDEST, "are highest for the true class in every sample, or tiny")
        else:
            self.value = exp(-float(brentq(slope, low, high, xtol=1e-12)))
        return self

    def apply(self, logits: Tensor) -> Tensor:
        """`logits / value`, still logits."""
        if self.value is None:
            raise InputError(
                "Temperature: there is no value yet; call fit(logits, target) on a validation split first."
            )
        check_logits("logits", logits)
        return logits / self.value

    @staticmethod
    def _at_the_end(value: float, reason: str) -> float:
        warnings.warn(
            f"Temperature: the best value lies beyond {value:g}, which is taken; the logits {reason}.", stacklevel=3
        )
        return value
