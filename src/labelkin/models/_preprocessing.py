"""The preprocessing that belongs to pretrained weights, as the first layer of a backbone."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin.models._blocks import Shape, checked_shape


class Preprocessing(NamedTuple):
    """What pretrained weights expect of their images.

    Args:
        size: Height and width of the images.
        resize: Side to which image files are read before their center of `size` pixels is cut out; at least `size`.
        mean: Mean of each of the three channels, for pixels from 0 to 1.
        std: Standard deviation of each channel.

    Example:
        >>> from labelkin import models
        >>> models.preprocessing("efficientnet-lite0").size
        224
    """

    size: int
    resize: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


class Prepare(nn.Module):
    """Bring images (B, C, H, W) of pixels from 0 to 1 into the form that pretrained weights expect.

    Gray images get three equal channels. An image whose shorter side is `resize` is center-cropped to `size`. Any other image
    is resized (bilinear, with antialiasing) until its shorter side is `size`, and then center-cropped to a square.

    Args:
        preprocessing: What the weights expect.
        input_shape: (channels, height, width) of the images, with 1 or 3 channels.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, preprocessing: Preprocessing, input_shape: Shape) -> None:
        super().__init__()
        shape = checked_shape(input_shape)
        if len(shape) != 3 or shape[0] not in (1, 3):
            raise InputError(
                f"input_shape: pretrained weights expect images of 1 or 3 channels, got {shape}; choose another backbone."
            )
        self.size, self.resize = preprocessing.size, preprocessing.resize
        self.register_buffer("mean", torch.tensor(preprocessing.mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(preprocessing.std).view(-1, 1, 1))

    @property
    def output_shape(self) -> Shape:
        """Shape of a prepared image."""
        return len(self.mean), self.size, self.size

    def extra_repr(self) -> str:
        return f"size={self.size}, resize={self.resize}"

    def forward(self, x: Tensor) -> Tensor:
        x = x.expand(-1, len(self.mean), -1, -1)
        height, width = x.shape[-2:]
        shorter = min(height, width)
        if shorter not in (self.resize, self.size):
            sides = [round(side * self.size / shorter) for side in (height, width)]
            x = F.interpolate(x, sides, mode="bilinear", align_corners=False, antialias=shorter > self.size)
        top, left = ((side - self.size) // 2 for side in x.shape[-2:])
        x = x[..., top : top + self.size, left : left + self.size]
        return (x - self.mean) / self.std
