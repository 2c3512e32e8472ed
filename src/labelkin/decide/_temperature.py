"""Temperature scaling (Guo et al., On Calibration of Modern Neural Networks, 2017)."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import exp, inf, log
from typing import Self

import torch
from scipy.optimize import brentq
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.decide._validation import check_logits, check_target

COLDEST, HOTTEST = 1e-3, 1e3
# Newton's method on blocks: steps at most, how far from its start, and the step after which the error is below 1e-12, because
# it is squared with every step.
MOST_STEPS, FARTHEST, CLOSE = 6, 0.5, 1e-7


@dataclass
class Temperature:
    """Calibrate logits by dividing them by one number, which `fit` finds on a validation split.

    The order of the classes does not change, so neither does `argmax`; the decisions of `least_cost` and `fallback` do.

    Args:
        value: The temperature, above 0: more than 1 for an overconfident model. None means that `fit` will find it.

    Example:
        >>> import torch
        >>> from labelkin.decide import Temperature
        >>> logits, target = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0]]), torch.tensor([0, 0, 1])
        >>> temperature = Temperature().fit(logits, target)
        >>> temperature.apply(logits).softmax(-1)[0]  # two of three are right
        tensor([0.6667, 0.3333])
    """

    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            check_number("value", self.value, low=0, open_low=True)

    def fit(self, logits: Tensor, target: Tensor, *, weight: Tensor | None = None, prior: float | None = None) -> Self:
        """Find the temperature with the least mean negative log-likelihood.

        The loss is convex in `1 / value`, so there is one minimum, and it is never worse than the original logits. It is
        searched from 0.001 to 1000. If it is outside (all samples are right, or the logits are independent of the classes),
        the nearest end is used, with a warning.

        Args:
            logits: (n, K) logits of a validation split.
            target: (n,) true class positions.
            weight: (n,) weights of the samples, at least 0; a sample of weight 2 counts as two. All 1 by default.
            prior: The standard deviation of a normal prior of the temperature's logarithm around 0, for few samples: the fit
                then finds the most probable temperature, which is near 1 if the samples say little, and moderate even if
                all of them are right. None for no prior.

        Returns:
            The object itself.
        """
        check_logits("logits", logits)
        check_target("target", target, len(logits), logits.shape[-1])
        if prior is not None:
            check_number("prior", prior, low=0, open_low=True)
        values = logits.detach().double()
        counts = torch.ones_like(values[:, 0]) if weight is None else _checked_weight(weight, values)
        weakness = inf if prior is None else float(counts.sum()) * prior**2
        part = (_over_the_true(values, target), counts / counts.sum())
        return self._search(lambda: iter([part]), weakness)

    def fit_blocks(self, blocks: Callable[[], Iterable[tuple[Tensor, Tensor]]]) -> Self:
        """Find the temperature as `fit` does, on samples that do not fit in memory.

        Args:
            blocks: Returns an iterator over all samples, some at a time: (m, K) logits and (m,) true class positions. It is
                called for each temperature that is tried: about five times, or twenty if the first samples differ much from
                the others.

        Returns:
            The object itself.

        Example:
            >>> import torch
            >>> from labelkin.decide import Temperature
            >>> logits, target = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0]]), torch.tensor([0, 0, 1])
            >>> in_two = lambda: zip(logits.split(2), target.split(2))
            >>> found = Temperature().fit_blocks(in_two).value
            >>> abs(found - Temperature().fit(logits, target).value) < 1e-9
            True
        """
        count = 0
        start: float | None = None
        for logits, target in blocks():
            check_logits("logits", logits)
            check_target("target", target, len(logits), logits.shape[-1])
            start = start if count else _log_sharpness(logits, target)
            count += len(logits)
        if not count:
            raise InputError("blocks: expected at least one sample, got none.")

        def shares() -> Iterator[tuple[Tensor, Tensor]]:
            for logits, target in blocks():
                yield (
                    _over_the_true(logits.detach().double(), target),
                    torch.full((len(logits),), 1 / count, dtype=torch.float64, device=logits.device),
                )

        found = None if start is None else _newton(shares, start)
        if found is None:
            return self._search(shares, inf)
        self.value = exp(-found)
        return self

    def _search(self, blocks: Callable[[], Iterator[tuple[Tensor, Tensor]]], weakness: float) -> Self:
        """Find the temperature from blocks of logits, less that of the true class, with the share of each sample."""

        def slope(log_sharpness: float) -> float:
            """Return the slope in `1 / value` of the loss: the expected logit minus that of the true class.

            If all samples are right, no term is above 0, so that rounding cannot make a root where there is none. The prior
            adds `log(value) ** 2 / (2 * weakness)` to the mean loss.
            """
            expected = 0.0
            for values, share in blocks():
                sharper = torch.softmax(values * exp(log_sharpness), -1)
                expected += float(share @ (sharper * values).sum(-1))
            return expected + log_sharpness * exp(-log_sharpness) / weakness

        low, high = -log(HOTTEST), -log(COLDEST)
        if slope(low) >= 0:
            self.value = self._at_the_end(HOTTEST, "are independent of the classes, or huge")
        elif slope(high) <= 0:
            self.value = self._at_the_end(COLDEST, "are highest for the true class in every sample, or tiny")
        else:
            self.value = exp(-float(brentq(slope, low, high, xtol=1e-12)))
        return self

    def apply(self, logits: Tensor) -> Tensor:
        """Return `logits / value`, which are logits as well.

        Args:
            logits: (n, K) logits.

        Returns:
            (n, K) calibrated logits.
        """
        if self.value is None:
            raise InputError("Temperature: it has no value yet; call fit(logits, target) on a validation split first.")
        check_logits("logits", logits)
        return logits / self.value

    @staticmethod
    def _at_the_end(value: float, reason: str) -> float:
        warnings.warn(
            f"Temperature: the best value is beyond the limit {value:g}, which is used; the logits {reason}.",
            stacklevel=4,
        )
        return value


def _over_the_true(logits: Tensor, target: Tensor) -> Tensor:
    """Return logits (n, K) minus that of the true class of each sample, which leaves the softmax as it is."""
    return logits - logits.gather(-1, target.long().unsqueeze(-1))


def _log_sharpness(logits: Tensor, target: Tensor) -> float | None:
    """Return the negative logarithm of the temperature of some samples; None if it is at a limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other samples may decide
        value = Temperature().fit(logits, target).value
    return None if value in (None, COLDEST, HOTTEST) else -log(value)


def _newton(blocks: Callable[[], Iterator[tuple[Tensor, Tensor]]], start: float) -> float | None:
    """Find the logarithm of the sharpness by Newton's method from a good guess; None if it does not converge at once.

    The slope of the loss is the expected logit minus that of the true class, which `blocks` subtracted. It rises by the
    variance of the logits times the sharpness, and crosses 0 once.
    """
    at = start
    for _ in range(MOST_STEPS):
        expected, rise = 0.0, 0.0
        for values, share in blocks():
            sharper = torch.softmax(values * exp(at), -1)
            mean = (sharper * values).sum(-1, keepdim=True)
            expected += float(share @ mean.squeeze(-1))
            rise += float(share @ (sharper * (values - mean).square()).sum(-1)) * exp(at)
        step = expected / rise if rise > 0 else inf
        at -= step
        if not abs(at - start) < FARTHEST:
            return None
        if abs(step) < CLOSE:
            return at
    return None


def _checked_weight(weight: Tensor, values: Tensor) -> Tensor:
    """Return the weights of the samples in the precision of their values."""
    given = weight.detach().to(values)
    if given.shape != values.shape[:1] or not bool(torch.isfinite(given).all()) or bool((given < 0).any()):
        got = f"shape {tuple(given.shape)}" if given.shape != values.shape[:1] else "negative, NaN or infinite numbers"
        raise InputError(f"weight: expected {len(values)} finite numbers of at least 0, got {got}.")
    if not bool(given.any()):
        raise InputError("weight: expected at least one weight above 0, got only zeros.")
    return given
