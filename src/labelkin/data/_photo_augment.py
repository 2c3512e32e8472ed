"""Augmentations of photos, computed by kornia on the device of the images.

kornia draws its random numbers itself, so each step seeds torch with the first random number that it gets for the batch and
restores torch's generators afterwards. The images are therefore a function of `(seed, epoch)` and of the batch, but another
batch size or number of processes gives other images. Steps that are not from kornia draw one row of numbers per sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, check_number, counted
from labelkin._extras import require


@dataclass(frozen=True)
class VerticalFlip:
    """Mirror each image vertically with probability 1/2.

    Example:
        >>> import torch
        >>> from labelkin.data import VerticalFlip
        >>> image = torch.arange(3.0).view(1, 1, 3, 1)
        >>> VerticalFlip()(image, torch.tensor([[0.2]])).flatten().tolist()
        [2.0, 1.0, 0.0]
    """

    numbers: ClassVar[int] = 1

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        return torch.where((uniform[:, 0] < 0.5)[:, None, None, None], images.flip(-2), images)


@dataclass(frozen=True)
class _Kornia:
    """A step that kornia computes; a subclass returns kornia's module for images of a shape."""

    numbers: ClassVar[int] = 1
    on_host: ClassVar[bool] = True  # kornia draws numbers on the CPU, so a step cannot be captured as a CUDA graph
    channels: ClassVar[tuple[int, ...]] = (1, 3)

    def module(self, kornia: Any, shape: Sequence[int]) -> Any:
        raise NotImplementedError

    @cached_property
    def _modules(self) -> dict[tuple[int, ...], Any]:
        return {}

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        name = type(self).__name__
        if images.dtype != torch.uint8 or images.shape[1] not in self.channels:
            raise InputError(
                f"augment: {name} expects images of bytes (uint8) with {' or '.join(map(str, self.channels))} channels, "
                f"got {counted(images.shape[1], 'channel')} of {images.dtype}; leave it out."
            )
        shape = tuple(images.shape[1:])
        if shape not in self._modules:
            kornia = require("kornia.augmentation", extra="augment", use=f"the augmentation {name}")
            require("kornia.augmentation.auto", extra="augment", use=f"the augmentation {name}")
            self._modules[shape] = self.module(kornia, shape)
        devices = [images.device] if images.device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.no_grad():
            torch.manual_seed(int(float(uniform[0, 0]) * 2**24))
            changed: Tensor = self._modules[shape](images.float() / 255)
        return (changed * 255).round().clamp(0, 255).to(torch.uint8)


@dataclass(frozen=True)
class RandomResizedCrop(_Kornia):
    """Cut out a random part of each image and resize it to the size of the image.

    Args:
        scale: Smallest area of the part, as a fraction of the image's; its sides have a ratio from 3/4 to 4/3.

    Example:
        >>> import torch
        >>> from labelkin.data import RandomResizedCrop, augment
        >>> augment(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), RandomResizedCrop(0.5)).shape
        torch.Size([2, 3, 32, 32])
    """

    scale: float = 0.08

    def __post_init__(self) -> None:
        check_number("scale", self.scale, low=0, high=1, open_low=True)

    def module(self, kornia: Any, shape: Sequence[int]) -> Any:
        return kornia.RandomResizedCrop((shape[1], shape[2]), scale=(float(self.scale), 1.0), align_corners=False)


@dataclass(frozen=True)
class ColorJitter(_Kornia):
    """Change brightness, contrast and saturation of each image by random factors, in random order.

    Args:
        strength: Factors are drawn from `1 - strength` to `1 + strength`.

    Example:
        >>> import torch
        >>> from labelkin.data import ColorJitter, augment
        >>> augment(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), ColorJitter(0.4)).dtype
        torch.uint8
    """

    strength: float = 0.4
    channels: ClassVar[tuple[int, ...]] = (3,)

    def __post_init__(self) -> None:
        check_number("strength", self.strength, low=0, high=1, open_low=True)

    def module(self, kornia: Any, shape: Sequence[int]) -> Any:
        return kornia.ColorJitter(*[float(self.strength)] * 3)


@dataclass(frozen=True)
class RandAugment(_Kornia):
    """Apply two random operations (Cubuk et al. 2020), such as shear, rotation, contrast or posterize.

    kornia draws one pair of operations for a batch, and their signs and other random numbers for each image.

    Args:
        magnitude: Strength of the operations, a whole number from 1 to 30.

    Example:
        >>> import torch
        >>> from labelkin.data import RandAugment, augment
        >>> augment(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), RandAugment(9)).shape
        torch.Size([2, 3, 32, 32])
    """

    magnitude: int = 9

    def __post_init__(self) -> None:
        check_count("magnitude", self.magnitude)
        if self.magnitude > 30:
            raise InputError(f"magnitude: expected a whole number from 1 to 30, got {self.magnitude}.")

    def module(self, kornia: Any, shape: Sequence[int]) -> Any:
        return kornia.auto.RandAugment(n=2, m=self.magnitude)


@dataclass(frozen=True)
class RandomErasing(_Kornia):
    """Set a random rectangle of 2 to 33 % of the image to black (Zhong et al. 2020).

    Args:
        probability: Probability that an image loses a rectangle.

    Example:
        >>> import torch
        >>> from labelkin.data import RandomErasing, augment
        >>> images = torch.full((4, 3, 16, 16), 255, dtype=torch.uint8)
        >>> bool((augment(images, RandomErasing(1.0)) == 0).flatten(1).any(1).all())
        True
    """

    probability: float = 0.25

    def __post_init__(self) -> None:
        check_number("probability", self.probability, low=0, high=1, open_low=True)

    def module(self, kornia: Any, shape: Sequence[int]) -> Any:
        return kornia.RandomErasing(p=float(self.probability))
