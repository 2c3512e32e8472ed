"""The preprocessing of timm and transformers models, read from the configuration that is published with their weights.

Images are resized with their aspect ratio, bilinearly and with antialiasing, and cut to a square. Some configurations state
another filter, or squeeze images to a square; labelkin does neither.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from labelkin._checks import InputError
from labelkin._extras import require
from labelkin.models._preprocessing import Preprocessing
from labelkin.models._third_party import hf_config, import_timm, timm_files


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
