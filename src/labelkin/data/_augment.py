"""Augmentations of whole batches on the device, as pure functions of the images and of random numbers.

Each takes images (n, C, H, W), `uint8` or float, and `uniform` (n, numbers) in [0, 1), and returns images of the same
type. The numbers come from outside, one row a sample: a process that holds a part of a batch takes the rows of its
samples and sees exactly what one process would see, on any device.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, Protocol, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count, check_number

Fill = Literal["zero", "reflect", "edge"]


class Augmentation(Protocol):
    @property
    def numbers(self) -> int:
        """How many random numbers a sample takes."""

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class PadCrop:
    """Pad by `pad` pixels on every side, then cut the old size out at a random place."""

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
    """Move by whole pixels, up to `fraction` of the height and of the width (rounded)."""

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
                f"fraction: {self.fraction} of {height} x {width} pixels moves nothing; take a larger one."
            )
        return _moved(images, uniform, reach=reach, fill=self.fill)


@dataclass(frozen=True)
class Flip:
    """Mirror left and right, each sample with probability one half."""

    numbers = 1

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        return torch.where((uniform[:, 0] < 0.5)[:, None, None, None], images.flip(-1), images)


@dataclass(frozen=True)
class Rotation:
    """Turn about the centre by up to `degrees` either way, bilinear, zero where nothing was."""

    degrees: float = 15.0
    numbers = 1

    def __post_init__(self) -> None:
        check_number("degrees", self.degrees, low=0, high=180, open_low=True)

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        height, width = images.shape[-2:]
        angle = torch.deg2rad((2 * uniform[:, 0] - 1) * self.degrees)
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
        # affine_grid counts both sides from -1 to 1, so an oblong image needs its aspect put back.
        across = torch.stack([cos, -sin * height / width, zero], dim=-1)
        down = torch.stack([sin * width / height, cos, zero], dim=-1)
        grid = F.affine_grid(torch.stack([across, down], dim=1), list(images.shape), align_corners=False)
        turned = F.grid_sample(images.to(grid.dtype), grid, align_corners=False)
        return turned.round().to(images.dtype) if images.dtype == torch.uint8 else turned.to(images.dtype)


@dataclass(frozen=True)
class Chain:
    """One augmentation after the other."""

    steps: tuple[Augmentation, ...]

    @property
    def numbers(self) -> int:
        return sum(step.numbers for step in self.steps)

    def __call__(self, images: Tensor, uniform: Tensor) -> Tensor:
        ends = list(accumulate(step.numbers for step in self.steps))
        for step, end in zip(self.steps, ends, strict=True):
            images = step(images, uniform[:, end - step.numbers : end])
        return images


# The names by which commands and plans know them.
AUGMENTATIONS: dict[str, Callable[..., Augmentation]] = {
    "pad-crop": PadCrop,
    "shift": Shift,
    "flip": Flip,
    "rotation": Rotation,
}


def augment(images: Tensor, step: Augmentation, *, generator: torch.Generator | None = None) -> Tensor:
    """`step` with fresh random numbers from `generator` (on the CPU, so that every device sees the same ones)."""
    uniform = torch.rand(len(images), step.numbers, generator=generator)
    return step(images, uniform.to(images.device))


class Normalize:
    """`(x - mean) / std` along the first dimension of a sample; `uint8` counts as x / 255."""

    def __init__(self, mean: Sequence[float] | Tensor, std: Sequence[float] | Tensor) -> None:
        self.mean = torch.as_tensor(mean, dtype=torch.float32)
        self.std = torch.as_tensor(std, dtype=torch.float32)
        if self.mean.shape != self.std.shape or not bool((self.std > 0).all()):
            raise InputError(f"std: expected one positive number for each of the {len(self.mean)} means, got {std!r}.")

    def to(self, device: torch.device | str) -> "Normalize":
        return Normalize(self.mean.to(device), self.std.to(device))

    def __call__(self, inputs: Tensor) -> Tensor:
        shape = (-1, *[1] * (inputs.ndim - 2))
        values = inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs
        return (values - self.mean.view(shape)) / self.std.view(shape)


def _moved(images: Tensor, uniform: Tensor, *, reach: tuple[int, int], fill: Fill) -> Tensor:
    """Each sample cut out of its padded self at one of (2 reach + 1) places down and across."""
    height, width = images.shape[-2:]
    windows = (
        _padded(images, reach, fill).unfold(2, height, 1).unfold(3, width, 1)
    )  # a view: (n, C, down, across, H, W)
    # The number of places is odd, so a number just below 1 never rounds up to the place after the last.
    down, across = ((uniform[:, i] * (2 * reach[i] + 1)).long() for i in (0, 1))
    return windows[torch.arange(len(images), device=images.device), :, down, across]


def _padded(images: Tensor, reach: tuple[int, int], fill: Fill) -> Tensor:
    if fill == "zero":
        return F.pad(images, (reach[1], reach[1], reach[0], reach[0]))
    for dim, (pad, size) in zip((-2, -1), zip(reach, images.shape[-2:], strict=True), strict=True):
        if fill == "reflect" and pad >= size:
            raise InputError(f"fill: 'reflect' can pad {size} pixels by at most {size - 1}, got {pad}.")
        source = torch.arange(-pad, size + pad, device=images.device)
        source = source.clamp(0, size - 1) if fill == "edge" else (size - 1) - ((size - 1) - source.abs()).abs()
        images = images.index_select(dim, source)
    return images
