"""Augmentations of whole batches on the device, as pure functions of the images and of random numbers.

Every augmentation takes images (n, C, H, W), `uint8` or float, and `uniform` (n, numbers), random numbers in [0, 1), and
returns images of the same dtype. The caller supplies the random numbers, one row per sample. In data-parallel training each
process passes the rows of its own samples, so the images are the same as in a single process, on any device.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, Protocol, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count, check_number
from labelkin.data._photo_augment import ColorJitter, RandAugment, RandomErasing, RandomResizedCrop, VerticalFlip

Fill = Literal["zero", "reflect", "edge"]


class Augmentation(Protocol):
    """Interface of an augmentation: a callable that knows how many random numbers it needs per sample.

    Args:
        images: (n, C, H, W), `uint8` or float.
        uniform: (n, numbers) random numbers in [0, 1).

    Example:
        >>> import torch
        >>> from labelkin.data import Augmentation
        >>> class Invert:
        ...     numbers = 0
        ...     def __call__(self, images, uniform):
        ...         return 255 - images
        >>> step: Augmentation = Invert()
        >>> step(torch.zeros(1, 1, 1, 1, dtype=torch.uint8), torch.empty(1, 0)).item()
        255
    """

    @property
    def numbers(self) -> int:
        """Number of random numbers that one sample needs."""

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        """Return the augmented images, in the dtype of `images`."""


@dataclass(frozen=True)
class PadCrop:
    """Pad every side, then crop the original size at a random position.

    Args:
        pad: Number of pixels added on every side.
        fill: Values of the added pixels: "zero", "reflect" (mirror the image) or "edge" (repeat its border).

    Example:
        >>> import torch
        >>> from labelkin.data import PadCrop, augment
        >>> images = torch.ones(2, 3, 32, 32)
        >>> augment(images, PadCrop(4), generator=torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 32, 32])
    """

    pad: int = 4
    fill: Fill = "zero"
    numbers = 2

    def __post_init__(self) -> None:
        check_count("pad", self.pad)
        check_choice("fill", self.fill, get_args(Fill))

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        return _moved(images, uniform, reach=(self.pad, self.pad), fill=self.fill)


@dataclass(frozen=True)
class Shift:
    """Shift by a random whole number of pixels.

    Args:
        fraction: Largest shift, as a fraction of the height and of the width (rounded to pixels).
        fill: Values of the pixels that come into view: "zero", "reflect" or "edge", as in `PadCrop`.

    Example:
        >>> import torch
        >>> from labelkin.data import Shift
        >>> image = torch.arange(4.0).view(1, 1, 1, 4)
        >>> Shift(0.25)(image, torch.tensor([[0.5, 0.0]])).flatten().tolist()
        [0.0, 0.0, 1.0, 2.0]
    """

    fraction: float = 0.1
    fill: Fill = "edge"
    numbers = 2

    def __post_init__(self) -> None:
        check_number("fraction", self.fraction, low=0, high=1, open_low=True)
        check_choice("fill", self.fill, get_args(Fill))

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        reach = (round(self.fraction * height), round(self.fraction * width))
        if not any(reach):
            raise InputError(
                f"fraction: {self.fraction} of {height} x {width} pixels is less than half a pixel, which shifts nothing; "
                "use a larger fraction."
            )
        return _moved(images, uniform, reach=reach, fill=self.fill)


@dataclass(frozen=True)
class Flip:
    """Mirror each image horizontally with probability 1/2.

    Example:
        >>> import torch
        >>> from labelkin.data import Flip
        >>> image = torch.arange(3.0).view(1, 1, 1, 3)
        >>> Flip()(image, torch.tensor([[0.2]])).flatten().tolist()
        [2.0, 1.0, 0.0]
        >>> Flip()(image, torch.tensor([[0.7]])).flatten().tolist()
        [0.0, 1.0, 2.0]
    """

    numbers = 1

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        return torch.where((uniform[:, 0] < 0.5)[:, None, None, None], images.flip(-1), images)


@dataclass(frozen=True)
class Rotation:
    """Rotate about the center by a random angle, with bilinear interpolation; uncovered pixels become 0.

    Args:
        degrees: Largest angle in either direction.

    Example:
        >>> import torch
        >>> from labelkin.data import Rotation
        >>> image = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).view(1, 1, 2, 2)
        >>> Rotation(180)(image, torch.tensor([[0.0]])).round().flatten().tolist()
        [4.0, 3.0, 2.0, 1.0]
    """

    degrees: float = 15.0
    numbers = 1

    def __post_init__(self) -> None:
        check_number("degrees", self.degrees, low=0, high=180, open_low=True)

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        angle = torch.deg2rad((2 * uniform[:, 0] - 1) * self.degrees)
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
        # affine_grid maps both sides to [-1, 1], so the aspect ratio of an oblong image has to be restored.
        across = torch.stack([cos, -sin * height / width, zero], dim=-1)
        down = torch.stack([sin * width / height, cos, zero], dim=-1)
        grid = F.affine_grid(torch.stack([across, down], dim=1), list(images.shape), align_corners=False)
        turned = F.grid_sample(images.to(grid.dtype), grid, align_corners=False)
        return turned.round().to(images.dtype) if images.dtype == torch.uint8 else turned.to(images.dtype)


@dataclass(frozen=True)
class Chain:
    """Apply several augmentations one after the other.

    Args:
        steps: The augmentations, in order.

    Example:
        >>> import torch
        >>> from labelkin.data import Chain, Flip, PadCrop
        >>> step = Chain((PadCrop(4), Flip()))
        >>> step.numbers
        3
        >>> step(torch.zeros(2, 3, 32, 32), torch.rand(2, 3)).shape
        torch.Size([2, 3, 32, 32])
    """

    steps: tuple[Augmentation, ...]

    @property
    def numbers(self) -> int:
        """Number of random numbers that one sample needs, over all steps."""
        return sum(step.numbers for step in self.steps)

    @property
    def on_host(self) -> bool:
        """Whether a step needs the CPU, so that it cannot be captured as a CUDA graph."""
        return any(getattr(step, "on_host", False) for step in self.steps)

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        ends = list(accumulate(step.numbers for step in self.steps))
        for step, end in zip(self.steps, ends, strict=True):
            images = step(images, uniform[:, end - step.numbers : end])
        return images


# The names that commands and plans use.
AUGMENTATIONS: dict[str, Callable[..., Augmentation]] = {
    "pad-crop": PadCrop,
    "shift": Shift,
    "flip": Flip,
    "rotation": Rotation,
    "vertical-flip": VerticalFlip,
    "random-resized-crop": RandomResizedCrop,
    "color-jitter": ColorJitter,
    "rand-augment": RandAugment,
    "random-erasing": RandomErasing,
}
# Names that stand for several augmentations. "imagenet" is the usual training on ImageNet since Szegedy et al. 2015.
PRESETS: dict[str, tuple[str, ...]] = {"imagenet": ("random-resized-crop", "flip", "color-jitter")}


def augment(images: Tensor, step: Augmentation, *, generator: torch.Generator | None = None) -> Tensor:
    """Apply an augmentation with newly drawn random numbers.

    Args:
        images: (n, C, H, W), `uint8` or float, on any device.
        step: The augmentation.
        generator: Source of the random numbers, on the CPU; torch's global generator by default.

    Returns:
        The augmented images, on the device of `images`. The random numbers are drawn on the CPU, so they do not depend on the
        device.

    Example:
        >>> import torch
        >>> from labelkin.data import Flip, augment
        >>> augment(torch.zeros(2, 3, 8, 8), Flip()).shape
        torch.Size([2, 3, 8, 8])
    """
    uniform = torch.rand(len(images), step.numbers, generator=generator)
    return step(images, uniform.to(images.device))


class Normalize:
    """Compute `(x - mean) / std` along the first dimension of each sample; `uint8` inputs are divided by 255 first.

    Args:
        mean: One number per channel or feature.
        std: One positive number per channel or feature.

    Example:
        >>> import torch
        >>> from labelkin.data import Normalize
        >>> normalize = Normalize(mean=[0.5], std=[0.5])
        >>> normalize(torch.tensor([0, 255], dtype=torch.uint8).view(1, 1, 1, 2)).flatten().tolist()
        [-1.0, 1.0]
    """

    def __init__(self, mean: Sequence[float] | Tensor, std: Sequence[float] | Tensor) -> None:
        self.mean = torch.as_tensor(mean, dtype=torch.float32)
        self.std = torch.as_tensor(std, dtype=torch.float32)
        if self.mean.shape != self.std.shape or not bool((self.std > 0).all()):
            raise InputError(f"std: expected one positive number for each of the {len(self.mean)} means, got {std!r}.")

    def to(self, device: torch.device | str) -> "Normalize":
        """Return a copy whose mean and deviation are on `device`."""
        return Normalize(self.mean.to(device), self.std.to(device))

    def __call__(self, inputs: Tensor) -> Tensor:
        shape = (-1, *[1] * (inputs.ndim - 2))
        mean, std = self.mean.view(shape), self.std.view(shape)
        if inputs.dtype == torch.uint8:
            return inputs.float().div_(255).sub_(mean).div_(std)  # in place on our own copy: fewer passes over memory
        return (inputs - mean) / std


def _moved(images: Tensor, uniform: Tensor, *, reach: tuple[int, int], fill: Fill) -> Tensor:
    """Cut each sample out of its padded copy at one of (2 reach + 1) positions down and across."""
    height, width = images.shape[-2:]
    windows = (
        _padded(images, reach, fill).unfold(2, height, 1).unfold(3, width, 1)
    )  # a view: (n, C, down, across, H, W)
    # The number of positions is odd, so a number just below 1 never rounds up to one past the last position.
    down, across = ((uniform[:, i] * (2 * reach[i] + 1)).long() for i in (0, 1))
    return windows[torch.arange(len(images), device=images.device), :, down, across]


def _padded(images: Tensor, reach: tuple[int, int], fill: Fill) -> Tensor:
    """Pad the images by `reach` pixels (down, across) on both sides."""
    if fill == "zero":
        return F.pad(images, (reach[1], reach[1], reach[0], reach[0]))
    for dim, (pad, size) in zip((-2, -1), zip(reach, images.shape[-2:], strict=True), strict=True):
        if fill == "reflect" and pad >= size:
            raise InputError(f"fill: 'reflect' can pad {size} pixels by at most {size - 1}, got {pad}.")
        source = torch.arange(-pad, size + pad, device=images.device)
        source = source.clamp(0, size - 1) if fill == "edge" else (size - 1) - ((size - 1) - source.abs()).abs()
        images = images.index_select(dim, source)
    return images
