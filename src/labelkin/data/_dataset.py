"""Datasets: splits of samples with class names and an optional taxonomy."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import NamedTuple, Self

import torch
from torch import Tensor

from labelkin._checks import InputError, check_names, listed
from labelkin.data._augment import Normalize
from labelkin.data._readers.images import ImageForm, OnError, read_image, read_images
from labelkin.structure import Taxonomy

STATISTICS_FROM = 2000  # number of images of a FileSplit that mean and deviation are estimated from


@dataclass(frozen=True, eq=False)
class ArraySplit:
    """Samples in memory.

    Args:
        inputs: (n, C, H, W) or (n, D), `uint8`, `float32` or `float64`.
        targets: (n,) classes as `int64`.
        coarse: (n,) a second label per sample, if the dataset has one (the superclasses of CIFAR-100).

    Example:
        >>> import torch
        >>> from labelkin.data import ArraySplit
        >>> split = ArraySplit(torch.zeros(4, 3), torch.tensor([0, 1, 0, 1]))
        >>> len(split), split.shape
        (4, (3,))
        >>> split.take(torch.tensor([1, 3])).targets.tolist()
        [1, 1]
    """

    inputs: Tensor
    targets: Tensor
    coarse: Tensor | None = None

    def __post_init__(self) -> None:
        if self.inputs.ndim not in (2, 4) or self.inputs.dtype not in (torch.uint8, torch.float32, torch.float64):
            raise InputError(
                "inputs: expected (n, C, H, W) or (n, D) of uint8, float32 or float64, "
                f"got {tuple(self.inputs.shape)} of {self.inputs.dtype}."
            )
        _check_targets(self.targets, len(self.inputs))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(self.inputs.shape[1:])

    def take(self, index: Tensor) -> Self:
        """Return the samples at the given positions."""
        coarse = None if self.coarse is None else self.coarse[index]
        return replace(self, inputs=self.inputs[index], targets=self.targets[index], coarse=coarse)

    def with_targets(self, targets: Tensor) -> Self:
        """Return the same samples with other targets."""
        return replace(self, targets=targets)

    def statistics(self) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of each channel or feature, as `Normalize` expects them."""
        return _pixel_statistics(self.inputs) if self.inputs.dtype == torch.uint8 else _float_statistics(self.inputs)


@dataclass(frozen=True, eq=False, kw_only=True)
class FileSplit:
    """Image files that are read when their batch is needed.

    Args:
        paths: The image files.
        targets: (n,) classes as `int64`.
        form: Channels, height and width that every image is converted to.
        on_error: "stop" raises `UnreadableImage` for a file that cannot be read; "skip" warns and leaves it out.

    Example:
        >>> from pathlib import Path
        >>> import torch
        >>> from labelkin.data import FileSplit
        >>> from labelkin.data._readers.images import ImageForm
        >>> files = (Path("cat.png"), Path("dog.png"))
        >>> split = FileSplit(paths=files, targets=torch.tensor([0, 1]), form=ImageForm(3, 32, 32))
        >>> split.shape, split.memory
        ((3, 32, 32), 6144)
    """

    paths: tuple[Path, ...]
    targets: Tensor
    form: ImageForm
    on_error: OnError = "stop"

    def __post_init__(self) -> None:
        _check_targets(self.targets, len(self.paths))

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample: (C, H, W)."""
        return tuple(self.form)

    @property
    def memory(self) -> int:
        """Number of bytes that the images take in memory."""
        return len(self) * prod(self.form)

    def read(self, position: int) -> Tensor:
        """Read one image, (C, H, W) `uint8`."""
        return read_image(self.paths[position], self.form)

    def take(self, index: Tensor) -> Self:
        """Return the samples at the given positions."""
        return replace(self, paths=tuple(self.paths[i] for i in index.tolist()), targets=self.targets[index])

    def with_targets(self, targets: Tensor) -> Self:
        """Return the same samples with other targets."""
        return replace(self, targets=targets)

    def in_memory(self) -> ArraySplit:
        """Read all images."""
        images, kept = read_images(self.paths, self.form, on_error=self.on_error)
        return ArraySplit(images, self.targets[kept])

    def statistics(self) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation as `ArraySplit.statistics` does, estimated from about 2,000 images."""
        some = torch.arange(0, len(self), max(1, len(self) // STATISTICS_FROM))
        return self.take(some).in_memory().statistics()


Split = ArraySplit | FileSplit  # the type of a split


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """The splits of a dataset with their class names; target `k` means `classes[k]`.

    Args:
        name: Name for messages.
        classes: Names of the classes.
        train: Training split.
        test: Test split.
        val: Validation split, if there is one.
        taxonomy: Tree over the classes, in the same order, if there is one.
        coarse_classes: Names of the coarse labels, if the splits have them.
        calibration: Samples that were held out of the training split to calibrate the trained model, if any.
        normalization: Normalization of the samples; by default with the mean and deviation of the training split.
        partial: Training samples whose class is not known, only a node above it; target `k` means `partial_names[k]`.
        partial_names: Names of inner nodes of the taxonomy.

    Example:
        >>> import torch
        >>> from labelkin.data import ArraySplit, Dataset
        >>> split = ArraySplit(torch.zeros(4, 3), torch.tensor([0, 1, 0, 1]))
        >>> Dataset(name="toy", classes=("cat", "dog"), train=split, test=split)
        Dataset(toy: 2 classes, 4 train, 4 test, 3)
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split
    val: Split | None = None
    taxonomy: Taxonomy | None = None
    coarse_classes: tuple[str, ...] | None = None
    calibration: Split | None = None
    normalization: Normalize | None = None
    partial: Split | None = None
    partial_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_names("classes", self.classes)
        if len(self.classes) < 2:
            raise InputError(f"{self.name}: expected at least two classes, got only {self.classes[0]!r}.")
        if self.taxonomy is not None and self.taxonomy.classes != self.classes:
            raise InputError(
                f"{self.name}: expected a taxonomy over the same classes in the same order; use taxonomy.reorder(classes)."
            )
        for part, split in self.splits.items():
            self._check_split(part, split)
        empty = torch.bincount(self.train.targets, minlength=len(self.classes)) == 0
        if empty.any():
            named = [self.classes[k] for k in torch.nonzero(empty).flatten().tolist()]
            raise InputError(
                f"{self.name}: expected at least one training sample per class, got none of {listed(named)}."
            )

    @property
    def splits(self) -> dict[str, Split]:
        """The existing splits by name: "train", "val", "calibration" and "test"."""
        found = {"train": self.train, "val": self.val, "calibration": self.calibration, "test": self.test}
        return {part: split for part, split in found.items() if split is not None}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample: (C, H, W) or (D,)."""
        return self.train.shape

    @cached_property
    def normalize(self) -> Normalize:
        """The normalization of the samples, by default with the mean and deviation of each channel or feature."""
        return Normalize(*self.train.statistics()) if self.normalization is None else self.normalization

    @property
    def pixels(self) -> bool:
        """Whether the samples are images of bytes (uint8)."""
        return len(self.shape) == 3 and (isinstance(self.train, FileSplit) or self.train.inputs.dtype == torch.uint8)

    @property
    def normalise(self) -> Normalize:
        """Deprecated name of `normalize`."""
        warnings.warn("Dataset.normalise is deprecated; use Dataset.normalize.", DeprecationWarning, stacklevel=2)
        return self.normalize

    def _check_split(self, part: str, split: Split) -> None:
        if split.shape != self.shape:
            raise InputError(
                f"{self.name}: expected {part} samples of shape {self.shape}, as in the training split, got {split.shape}."
            )
        if len(split) == 0:
            raise InputError(f"{self.name}: the {part} split is empty.")
        low, high = int(split.targets.min()), int(split.targets.max())
        if low < 0 or high >= len(self.classes):
            raise InputError(
                f"{self.name}: expected {part} targets from 0 to {len(self.classes) - 1}, got {low} to {high}."
            )

    def __repr__(self) -> str:
        shown = self.splits | ({} if self.partial is None else {"partial": self.partial})
        sizes = ", ".join(f"{len(split):,} {part}" for part, split in shown.items())
        return f"Dataset({self.name}: {len(self.classes)} classes, {sizes}, {'x'.join(map(str, self.shape))})"


def _check_targets(targets: Tensor, count: int) -> None:
    if targets.dtype != torch.int64 or targets.shape != (count,):
        raise InputError(
            f"targets: expected shape ({count},) of int64, one per sample, got {tuple(targets.shape)} of {targets.dtype}."
        )


def _pixel_statistics(pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Compute mean and deviation from the counts of the 256 values: exact, in any order of summation."""
    counts = torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in pixels.unbind(1)]).double()
    values = torch.arange(256, dtype=torch.float64) / 255
    mean = counts @ values / counts.sum(1)
    return mean.float(), _deviation(counts @ values.square() / counts.sum(1) - mean.square(), mean)


def _float_statistics(inputs: Tensor) -> tuple[Tensor, Tensor]:
    around = [i for i in range(inputs.ndim) if i != 1]
    variance, mean = torch.var_mean(inputs.double(), dim=around, correction=0)
    return mean.float(), _deviation(variance, mean)


def _deviation(variance: Tensor, mean: Tensor) -> Tensor:
    """Return the square root of the variance, or 1 for constant features, which are 0 once the mean is subtracted."""
    varies = variance > 1e-14 * mean.square()  # a smaller variance is a rounding error
    return torch.where(varies, variance.clamp(min=0).sqrt(), 1.0).float()


class RawDataset(NamedTuple):
    """A dataset before it is split: samples that are not assigned to a split are in `train`."""

    classes: tuple[str, ...]
    train: Split
    test: Split | None = None
    val: Split | None = None
    taxonomy: Taxonomy | None = None
    coarse_classes: tuple[str, ...] | None = None
    calibration: Split | None = None
    partial: Split | None = None  # samples of the training split with an inner node as label
    partial_names: tuple[str, ...] = ()


def class_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct labels, sorted by value if all are whole numbers, else alphabetically."""
    distinct = set(labels)
    if all(label.removeprefix("-").isdecimal() for label in distinct):
        return tuple(sorted(distinct, key=lambda label: (int(label), label)))
    return tuple(sorted(distinct))


def positions(labels: Sequence[str], classes: Sequence[str], *, source: str) -> Tensor:
    """Return the position of each label in `classes`; a label that is not there is refused."""
    place = {name: k for k, name in enumerate(classes)}
    unknown = sorted({label for label in labels if label not in place})
    if unknown:
        raise InputError(
            f"{source}: no training sample has the label {listed(unknown)}; add some, or remove the samples with this label."
        )
    return torch.tensor([place[label] for label in labels], dtype=torch.int64)
