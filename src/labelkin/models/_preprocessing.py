"""The preprocessing that belongs to pretrained weights, as the first layer of a backbone.

That of timm and transformers models is read from the configuration that is published with their weights.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.models._blocks import Shape, checked_shape
from labelkin.models._third_party import hf_config, import_timm, timm_files


class Preprocessing(NamedTuple):
    """The size and normalization of images that pretrained weights expect.

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
    """Convert images (B, C, H, W) of pixels from 0 to 1 to the form that pretrained weights expect.

    Gray images get three equal channels. An image whose shorter side is `resize` is center-cropped to `size`. Any other image
    is resized (bilinear, with antialiasing) until its shorter side is `size`, and then center-cropped to a square.

    Args:
        preprocessing: The preprocessing that the weights expect.
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


def timm_preprocessing(name: str) -> Preprocessing:
    """Return the preprocessing of a timm model.

    Args:
        name: Name of the timm model, `hf-hub:USER/MODEL` or a folder.
    """
    files = timm_files(name)
    if files is not None:
        return from_timm(SimpleNamespace(**{"crop_pct": None, **files.pretrained_cfg}))
    found = import_timm(name).get_pretrained_cfg(name)
    if found is None:
        raise InputError(f"timm has no pretrained weights for {name!r}; set preprocessing to 'data'.")
    return from_timm(found)


def from_timm(config: Any) -> Preprocessing:
    """Return the preprocessing that a `pretrained_cfg` of timm states.

    Args:
        config: An object with `input_size` (channels, height, width), `crop_pct`, `mean` and `std`.
    """
    size = int(config.input_size[-1])
    resize = max(size, int(size / (config.crop_pct or 1.0)))  # rounded down, as timm does
    return Preprocessing(size, resize, tuple(map(float, config.mean)), tuple(map(float, config.std)))


def hf_preprocessing(name: str) -> Preprocessing | None:
    """Return the preprocessing of a transformers image encoder, or None for an encoder of texts.

    Args:
        name: A model of the hub or a local folder.
    """
    if takes_texts(name):
        return None
    use = f"the backbone hf:{name}"
    mixin = require("transformers.image_processing_base", extra="text", use=use).ImageProcessingMixin
    try:
        config, _ = mixin.get_image_processor_dict(name)
    except OSError as error:
        raise InputError(
            f"hf:{name}: the model has no preprocessor_config.json, which states how its images are prepared; set "
            "preprocessing to 'data'."
        ) from error
    return from_hf(config)


def from_hf(config: Mapping[str, Any]) -> Preprocessing:
    """Return the preprocessing that a preprocessor_config.json of transformers states.

    Args:
        config: The content of the file.
    """
    size = resize = _side(config.get("size"), default=224)
    if config.get("do_center_crop"):
        size = _side(config.get("crop_size"), default=size)
    elif "crop_pct" in config and size < 384:  # ConvNeXT, which cuts smaller images only
        resize = int(size / config["crop_pct"])
    mean, std = config.get("image_mean") or (0.0,) * 3, config.get("image_std") or (1.0,) * 3
    if config.get("do_normalize") is False:
        mean, std = (0.0,) * 3, (1.0,) * 3
    unit = 255 * config.get("rescale_factor", 1 / 255)  # the largest value of a pixel
    scaled = [tuple(float(value) / unit for value in values) for values in (mean, std)]
    return Preprocessing(size, max(size, resize), *scaled)


def _side(size: Any, *, default: int) -> int:
    """Return the side of an image from the forms in which transformers states it."""
    if size is None:
        return default
    if not isinstance(size, Mapping):
        return int(size[0] if isinstance(size, (list, tuple)) else size)
    sides = {int(size[key]) for key in ("shortest_edge", "height", "width") if size.get(key) is not None}
    if len(sides) != 1:
        raise InputError(f"the preprocessing of the weights has the size {dict(size)}; expected a square.")
    return sides.pop()


def takes_texts(name: str) -> bool:
    """Return whether the configuration of a transformers model is that of a text encoder."""
    return "num_channels" not in hf_config(name)
