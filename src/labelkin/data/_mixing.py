"""Mixtures of samples and of their classes: mixup and cutmix, as pure functions of a batch and of random numbers."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from scipy.special import betaincinv
from torch import Tensor

from labelkin._checks import check_number

POINTS = 4096  # at which quantiles of the Beta distribution are tabulated


class Mixture(NamedTuple):
    """Mixed samples with the shares of the samples that they are mixed from.

    Attributes:
        inputs: (n, ...) the mixed samples.
        partner: (n,) the sample that each one is mixed with.
        share: (n,) the share of the sample itself; its partner has the rest.
    """

    inputs: Tensor
    partner: Tensor
    share: Tensor

    def targets(self, classes: Tensor, count: int) -> Tensor:
        """Return (n, count) class probabilities from the classes (n,) of the samples."""
        probs = torch.nn.functional.one_hot(classes, count).to(self.share.dtype)
        share = self.share[:, None]
        return share * probs + (1 - share) * probs[self.partner]


class Mixing(Protocol):
    """Interface of a mixture of samples."""

    @property
    def numbers(self) -> int:
        """Number of random numbers that one sample needs."""

    def __call__(self, inputs: Tensor, weight: Tensor, uniform: Tensor) -> Mixture:
        """Return the mixed samples.

        Args:
            inputs: (n, ...) samples, as float.
            weight: (n,) 0 for rows that are padding, which are mixed with nothing.
            uniform: (n, numbers) random numbers in [0, 1).
        """


class _Shares:
    """Random shares from a symmetric Beta distribution, by the inverse of its distribution function."""

    alpha: float

    @cached_property
    def _tables(self) -> dict[torch.device, Tensor]:
        return {}

    def _share(self, uniform: Tensor) -> Tensor:
        if uniform.device not in self._tables:
            quantiles = betaincinv(self.alpha, self.alpha, np.linspace(0, 1, POINTS + 1))
            self._tables[uniform.device] = torch.tensor(quantiles, dtype=torch.float32, device=uniform.device)
        table, place = self._tables[uniform.device], uniform * POINTS
        below = place.long().clamp(max=POINTS - 1)
        return torch.lerp(table[below], table[below + 1], place - below)


def _partners(uniform: Tensor, weight: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Return a random partner of each sample; padding, and samples whose partner is padding, keep a share of 1."""
    partner = uniform.argsort(stable=True)
    return partner, torch.where((weight > 0) & (weight[partner] > 0), share, 1.0)


@dataclass(frozen=True)
class Mixup(_Shares):
    """Mix each sample with a random other one of its batch (Zhang et al. 2018).

    The result is `s x + (1 - s) x'`, with a share s for each sample from Beta(alpha, alpha); the target has the same shares of
    both classes. In data-parallel training, samples are mixed within a process.

    Args:
        alpha: Parameter of the Beta distribution.

    Example:
        >>> import torch
        >>> from labelkin.data import Mixup
        >>> inputs, uniform = torch.eye(2), torch.tensor([[0.9, 0.5], [0.1, 0.5]])
        >>> mixed = Mixup(1.0)(inputs, torch.ones(2), uniform)
        >>> mixed.inputs.tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        >>> mixed.targets(torch.tensor([0, 2]), 3)[0].tolist()
        [0.5, 0.0, 0.5]
    """

    alpha: float = 0.2
    numbers: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, low=0, open_low=True)

    def __call__(self, inputs: Tensor, weight: Tensor, uniform: Tensor) -> Mixture:
        partner, share = _partners(uniform[:, 0], weight, self._share(uniform[:, 1]))
        own = share.view(-1, *[1] * (inputs.ndim - 1)).to(inputs.dtype)
        return Mixture(own * inputs + (1 - own) * inputs[partner], partner, share)


@dataclass(frozen=True)
class CutMix(_Shares):
    """Replace a random rectangle of each image by that of another image of its batch (Yun et al. 2019).

    The rectangle has the shape of the image and an area of `1 - s` before it is cut off at the border, with s from
    Beta(alpha, alpha); the target has the shares of the pixels. In data-parallel training, images are mixed within a process.

    Args:
        alpha: Parameter of the Beta distribution.

    Example:
        >>> import torch
        >>> from labelkin.data import CutMix
        >>> images, uniform = torch.zeros(2, 1, 4, 4), torch.tensor([[0.9, 0.75, 0.5, 0.5], [0.1, 0.75, 0.5, 0.5]])
        >>> CutMix(1.0)(images, torch.ones(2), uniform).share.tolist()
        [0.75, 0.75]
    """

    alpha: float = 1.0
    numbers: ClassVar[int] = 4

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, low=0, open_low=True)

    def __call__(self, inputs: Tensor, weight: Tensor, uniform: Tensor) -> Mixture:
        partner, share = _partners(uniform[:, 0], weight, self._share(uniform[:, 1]))
        inside = torch.ones(len(inputs), 1, 1, dtype=torch.bool, device=inputs.device)
        for dim, center in ((-2, uniform[:, 2]), (-1, uniform[:, 3])):
            size = inputs.shape[dim]
            cut = ((1 - share).sqrt() * size).round()
            first = (center * size - cut / 2).round()
            along = torch.arange(size, device=inputs.device)
            covered = (along >= first[:, None]) & (along < (first + cut)[:, None])
            inside = inside & (covered[:, :, None] if dim == -2 else covered[:, None, :])
        mixed = torch.where(inside[:, None], inputs[partner], inputs)
        return Mixture(mixed, partner, 1 - inside.to(uniform.dtype).mean((1, 2)))


# The names that commands and plans use.
MIXINGS = {"mixup": Mixup, "cutmix": CutMix}
