"""Small pictures of samples, embedded in the page."""

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO

import torch
from torch import Tensor

from labelkin._extras import require
from labelkin.data import ArraySplit, Split, UnreadableImage

SIDE = 64  # pixels; larger images are scaled down


def picture_uris(split: Split, positions: Sequence[int]) -> tuple[str, ...]:
    """Return PNG data URIs of samples; an empty tuple if the samples are not images."""
    if len(split.shape) != 3 or split.shape[0] not in (1, 3):
        return ()
    return tuple(uri for position in positions if (uri := _uri(split, position)))


def _uri(split: Split, position: int) -> str:
    try:
        image = split.inputs[position] if isinstance(split, ArraySplit) else split.read(position)
    except UnreadableImage:
        return ""
    return png_uri(image)


def png_uri(image: Tensor) -> str:
    """Return an image (C, H, W) as a data URI; values other than bytes are scaled to the range from 0 to 255."""
    pillow = require("PIL.Image", extra="data", use="pictures in a report")
    pixels = image if image.dtype == torch.uint8 else _as_bytes(image.float())
    array = pixels.permute(1, 2, 0).squeeze(-1).contiguous().numpy()
    picture = pillow.fromarray(array)
    picture.thumbnail((SIDE, SIDE))
    file = BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def _as_bytes(image: Tensor) -> Tensor:
    low, high = float(image.min()), float(image.max())
    return ((image - low) / ((high - low) or 1.0) * 255).round().to(torch.uint8)
