"""Read image files as `uint8` tensors of one shape."""

import os
import struct
import warnings
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import LIBRARY_ERRORS, InputError, counted, listed, one_line
from labelkin._extras import require

OnError = Literal["stop", "skip"]
HEIF = frozenset([".heic", ".heif"])  # the photos of phones
SUFFIXES = HEIF | frozenset(
    [".avif", ".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"]
)
# Images of one size keep it, up to LARGEST_KEPT pixels per side; all others are resized to DEFAULT_SIZE.
LARGEST_KEPT, DEFAULT_SIZE, HEADERS_READ = 256, 64, 64


class ImageForm(NamedTuple):
    """The shape that every image of a dataset is converted to."""

    channels: int
    height: int
    width: int


class UnreadableImage(InputError):
    """An image file that cannot be decoded.

    Args:
        path: The file.
        reason: The error of the decoder.

    Example:
        >>> from pathlib import Path
        >>> from labelkin.data import UnreadableImage
        >>> UnreadableImage(Path("cat.jpg"), "truncated file").reason
        'truncated file'
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the image {str(path)!r} cannot be read ({reason}); replace or remove it, or skip unreadable images with "
            "--on-error skip (in Python: on_error='skip')."
        )
        self.reason = reason


def read_image(path: Path, form: ImageForm) -> Tensor:
    """Read an image as (C, H, W) `uint8`: rotated according to its EXIF data, resized, and center-cropped.

    Transparent pixels become white, and an animation is its first frame.
    """
    pil, ops = _pillow([path])
    mode = "L" if form.channels == 1 else "RGB"
    try:
        with pil.open(path) as image:
            image.draft(mode, (2 * max(form[1:]),) * 2)  # a JPEG can be decoded at a fraction of its size
            upright = ops.exif_transpose(image)
        fitted = ops.fit(
            _opaque(_eight_bits(upright)).convert(mode), (form.width, form.height), pil.Resampling.BILINEAR
        )
        pixels = np.array(fitted, dtype=np.uint8).reshape(form.height, form.width, form.channels)
    except decoder_errors() as error:
        raise UnreadableImage(path, one_line(error)) from error
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def read_images(paths: Sequence[Path], form: ImageForm, *, on_error: OnError) -> tuple[Tensor, Tensor]:
    """Read images (n, C, H, W). Returns them with their positions in `paths`; "skip" warns about unreadable ones."""
    _pillow(paths)
    images = torch.empty((len(paths), *form), dtype=torch.uint8)

    def read_into(position: int) -> bool:
        try:
            images[position] = read_image(paths[position], form)
        except UnreadableImage:
            if on_error == "stop":
                raise
            return False
        return True

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # Pillow releases the GIL while it decodes
        was_read = torch.tensor(list(pool.map(read_into, range(len(paths)))), dtype=torch.bool)
    if bool(was_read.all()):
        return images, torch.arange(len(paths))
    warn_skipped([path for path, fine in zip(paths, was_read.tolist(), strict=True) if not fine])
    kept = torch.nonzero(was_read).flatten()
    return images[kept], kept


def warn_skipped(paths: Sequence[Path]) -> None:
    """Warn about images that are left out."""
    names = listed([str(path) for path in paths], limit=20)
    warnings.warn(
        f"{counted(len(paths), 'image')} could not be read and {'is' if len(paths) == 1 else 'are'} skipped: {names}",
        stacklevel=2,
    )


def choose_form(paths: Sequence[Path], *, image_size: int | None) -> ImageForm:
    """Return the shape for the images of a dataset: `image_size` squared if given, else the size that they share.

    Only the headers of about 64 files are read. Images stay gray if all of these are gray.
    """
    pil, _ = _pillow(paths)
    sizes, grey = set(), True
    for path in paths[:: max(1, len(paths) // HEADERS_READ)]:
        try:
            with pil.open(path) as image:
                sizes.add(image.size)
                grey = grey and image.mode in ("1", "L", "I", "I;16", "F")
        except decoder_errors():
            continue  # reported when the image itself is read
    shared = sizes.pop() if len(sizes) == 1 else None
    if image_size is not None:
        shared = (image_size, image_size)
    elif shared is None or max(shared) > LARGEST_KEPT:
        shared = (DEFAULT_SIZE, DEFAULT_SIZE)
    return ImageForm(1 if grey else 3, shared[1], shared[0])


def _eight_bits(image: Any) -> Any:
    """Scale images of 16 bits down to 8 bits; Pillow itself would clip all values above 255."""
    if image.mode not in ("I", "I;16", "I;16B", "F"):
        return image
    pil, _ = _pillow()
    values = np.array(image, dtype=np.float64)
    if image.mode == "F" or values.max(initial=0) > 65535 or values.min(initial=0) < 0:
        raise ValueError(f"its pixels are {image.mode!r} from {values.min()} to {values.max()}, expected 8 or 16 bits")
    return pil.fromarray((values / 257).round().astype(np.uint8))


def _opaque(image: Any) -> Any:
    """Put an image with transparent parts on white; the colors that such parts hide are arbitrary."""
    if not image.has_transparency_data:
        return image
    pil, _ = _pillow()
    clear = image.convert("RGBA")
    white = pil.new("RGBA", clear.size, "white")
    white.alpha_composite(clear)
    return white.convert("L" if image.mode == "LA" else "RGB")


def decoder_errors() -> tuple[type[Exception], ...]:
    """Return the errors that Pillow's decoders raise for broken files and decompression bombs."""
    pil, _ = _pillow()
    return (*LIBRARY_ERRORS, struct.error, zlib.error, pil.DecompressionBombError)


def _pillow(paths: Sequence[Path] = ()) -> tuple[Any, Any]:
    """Return Pillow's modules, which can read HEIC files if there are any among the paths."""
    use = "reading image files"
    if any(path.suffix.lower() in HEIF for path in paths):
        require("pillow_heif", extra="heic", use="reading .heic files").register_heif_opener()
    return require("PIL.Image", extra="data", use=use), require("PIL.ImageOps", extra="data", use=use)
