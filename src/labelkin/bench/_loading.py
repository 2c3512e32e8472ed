"""Images per second from JPEG files to augmented batches, compared with torchvision's `ImageFolder` and `DataLoader`."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from labelkin._checks import check_count, counted
from labelkin._extras import require
from labelkin.bench._growth import Compared, Comparison, Growth, Measure, measured
from labelkin.bench._measure import machine, one_thread
from labelkin.data import Batches, FileSplit, Flip, Normalize, PadCrop, load

CLASSES = 5
WIDTH, HEIGHT, QUALITY = 500, 375, 90  # a usual photo of ImageNet
PAD = 16
USE = "labelkin bench loading"


def time_loading(
    *, images: int = 1000, size: int = 224, batch: int = 64, workers: Sequence[int] = (0, 2), repeats: int = 3
) -> Comparison:
    """Time an epoch over JPEG files: decode, resize, crop at a random position, flip and normalize.

    The files, 500 x 375 pixels, are written to a temporary folder. Starting the worker processes is part of an epoch. Batches
    end on the GPU if there is one, where labelkin augments and normalizes them. torch has one thread, the default of training:
    with more, augmentation on the CPU competes with the worker processes for the cores.

    Args:
        images: number of images.
        size: height and width of the batches.
        batch: number of images in a batch.
        workers: numbers of worker processes to measure; 0 reads in the process itself.
        repeats: number of epochs; the median is reported.

    Returns:
        A row for each number of workers, and growth over the number of images.

    Example:
        >>> from labelkin.bench import time_loading
        >>> found = time_loading(images=20, size=32, batch=8, workers=[0], repeats=1)
        >>> found.rows[0].sizes["images"]
        20
    """
    for name, value, least in (("images", images, 4 * CLASSES), ("size", size, 2 * PAD), ("batch", batch, 1)):
        check_count(name, value, least=least)
    for count in workers:
        check_count("workers", count, least=0)
    check_count("repeats", repeats)
    sizes = {"images": images, "pixels a side": size, "images a batch": batch}
    notes = [] if find_spec("torchvision") is not None else ["torchvision is not installed"]
    with TemporaryDirectory() as folder, one_thread():
        write_images(Path(folder), images)
        split = _split(Path(folder), size)
        time = partial(measured, repeats=repeats, cuda=False, warm_up=1)
        rows = []
        for count in workers:
            ours = time(partial(_ours, split, batch, count))
            peers: dict[str, Measure] = {}
            if find_spec("torchvision") is not None:
                peers["torchvision"] = time(_torchvision(Path(folder), size, batch, count, images))
            case = "in the process" if count == 0 else counted(count, "worker")
            rows.append(Compared(case, sizes, ours, peers, units=images))
        steps = [images // 4, images // 2, images]
        parts = [split.take(torch.arange(step) * (images // step)) for step in steps]
        seconds = [time(partial(_ours, part, batch, workers[0])).timing.median for part in parts]
        growth = Growth(rows[0].case, "images", steps, seconds)
        return Comparison("loading", machine(_device()), rows, [growth], notes)


def write_images(folder: Path, count: int) -> None:
    """Write JPEG files of smooth random patterns with fine texture, in one folder per class."""
    pil = require("PIL.Image", extra="data", use=USE)
    rng = np.random.default_rng(0)
    for number in range(count):
        place = folder / f"class{number % CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        coarse, fine = (_pattern(pil, rng, shape) for shape in ((12, 16), (94, 125)))
        pixels = np.clip(coarse + 0.25 * (fine - 128), 0, 255).astype(np.uint8)
        pil.fromarray(pixels).save(place / f"{number}.jpg", quality=QUALITY)


def _pattern(pil: Any, rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    small = pil.fromarray(rng.integers(0, 256, (*shape, 3), dtype=np.uint8))
    return np.asarray(small.resize((WIDTH, HEIGHT), pil.Resampling.BICUBIC), dtype=np.float32)


def _split(folder: Path, size: int) -> FileSplit:
    data = load(folder, image_size=size, stream=True)
    assert isinstance(data.train, FileSplit)
    assert isinstance(data.test, FileSplit)
    targets = torch.cat([data.train.targets, data.test.targets])
    return FileSplit(paths=(*data.train.paths, *data.test.paths), targets=targets, form=data.train.form)


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _ours(split: FileSplit, batch: int, workers: int) -> None:
    normalize = Normalize((0.5,) * 3, (0.25,) * 3)
    batches = Batches(
        split,
        batch_size=batch,
        shuffle=True,
        device=_device(),
        augment=(PadCrop(PAD, fill="reflect"), Flip()),
        normalize=normalize,
        workers=workers,
    )
    seen = 0
    for one in batches.epoch(0):
        seen += int(one.weight.sum())  # waits for the device
    _check_count(seen, len(split))


def _torchvision(folder: Path, size: int, batch: int, workers: int, images: int) -> Callable[[], None]:
    transforms = require("torchvision.transforms", extra="dev", use=USE)
    datasets = require("torchvision.datasets", extra="dev", use=USE)
    steps = [
        transforms.Resize(size),
        transforms.CenterCrop(size),
        transforms.RandomCrop(size, padding=PAD, padding_mode="reflect"),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.5,) * 3, (0.25,) * 3),
    ]
    files = datasets.ImageFolder(str(folder), transforms.Compose(steps))

    def epoch() -> None:
        device = _device()
        loader = torch.utils.data.DataLoader(
            files, batch_size=batch, shuffle=True, num_workers=workers, pin_memory=device == "cuda"
        )
        seen = 0
        for inputs, _ in loader:
            seen += len(inputs.to(device))
            if device == "cuda":
                torch.cuda.synchronize()
        _check_count(seen, images)

    return epoch


def _check_count(seen: int, expected: int) -> None:
    if seen != expected:
        raise ArithmeticError(f"an epoch of {counted(expected, 'image')} had {seen}")
