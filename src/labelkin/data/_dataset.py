"""Data sets: splits of samples with class names and an optional taxonomy."""

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

STATISTICS_FROM = 2000  # images of a streamed split that mean and deviation are taken from


@dataclass(frozen=True, eq=False)
class ArraySplit:
    """Samples in memory: `inputs` (n, C, H, W) or (n, D), `uint8`, `float32` or `float64`; `targets` (n,) `int64`.

    `coarse` holds a second label for each sample where the set has one (CIFAR-100's superclasses).
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
        """The shape of one sample."""
        return tuple(self.inputs.shape[1:])

    def take(self, index: Tensor) -> Self:
        coarse = None if self.coarse is None else self.coarse[index]
        return replace(self, inputs=self.inputs[index], targets=self.targets[index], coarse=coarse)

    def with_targets(self, targets: Tensor) -> Self:
        return replace(self, targets=targets)

    def statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each channel (or feature), as `Normalize` wants them."""
        return _pixel_statistics(self.inputs) if self.inputs.dtype == torch.uint8 else _float_statistics(self.inputs)


@dataclass(frozen=True, eq=False, kw_only=True)
class FileSplit:
    """Samples on disk: image files that are read when their batch comes, brought to one `form`."""

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
        return tuple(self.form)

    @property
    def memory(self) -> int:
        """The bytes that the samples take once read."""
        return len(self) * prod(self.form)

    def read(self, position: int) -> Tensor:
        return read_image(self.paths[position], self.form)

    def take(self, index: Tensor) -> Self:
        return replace(self, paths=tuple(self.paths[i] for i in index.tolist()), targets=self.targets[index])

    def with_targets(self, targets: Tensor) -> Self:
        return replace(self, targets=targets)

    def in_memory(self) -> ArraySplit:
        images, kept = read_images(self.paths, self.form, on_error=self.on_error)
        return ArraySplit(images, self.targets[kept])

    def statistics(self) -> tuple[Tensor, Tensor]:
        """As for `ArraySplit`, from a spread of the images."""
        some = torch.arange(0, len(self), max(1, len(self) // STATISTICS_FROM))
        return self.take(some).in_memory().statistics()


Split = ArraySplit | FileSplit


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Splits of one set, and what they share: class `k` is called `classes[k]`."""

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split
    val: Split | None = None
    taxonomy: Taxonomy | None = None
    coarse_classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_names("classes", self.classes)
        if len(self.classes) < 2:
            raise InputError(f"{self.name}: a classifier needs at least two classes, found only {self.classes[0]!r}.")
        if self.taxonomy is not None and self.taxonomy.classes != self.classes:
            raise InputError(
                f"{self.name}: the taxonomy's classes must be the set's, in the same order (reorder() does it)."
            )
        for part, split in self.splits.items():
            self._check_split(part, split)
        empty = torch.bincount(self.train.targets, minlength=len(self.classes)) == 0
        if empty.any():
            named = [self.classes[k] for k in torch.nonzero(empty).flatten().tolist()]
            raise InputError(f"{self.name}: no training sample of {listed(named)}; every class needs at least one.")

    @property
    def splits(self) -> dict[str, Split]:
        """The splits there are, by name."""
        found = {"train": self.train, "val": self.val, "test": self.test}
        return {part: split for part, split in found.items() if split is not None}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample: (C, H, W) or (D,)."""
        return self.train.shape

    @cached_property
    def normalize(self) -> Normalize:
        """Mean and deviation of the training split, channel by channel; `Normalize(mean, std)` takes others."""
        return Normalize(*self.train.statistics())

    @property
    def normalise(self) -> Normalize:
        """Deprecated name of `normalize`."""
        warnings.warn("Dataset.normalise is deprecated; use Dataset.normalize.", DeprecationWarning, stacklevel=2)
        return self.normalize

    def _check_split(self, part: str, split: Split) -> None:
        if split.shape != self.shape:
            raise InputError(f"{self.name}: {part} samples have shape {split.shape}, training samples {self.shape}.")
        if len(split) == 0:
            raise InputError(f"{self.name}: the {part} split is empty.")
        low, high = int(split.targets.min()), int(split.targets.max())
        if low < 0 or high >= len(self.classes):
            raise InputError(
                f"{self.name}: {part} targets run from {low} to {high}, expected 0 to {len(self.classes) - 1}."
            )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(split):,} {part}" for part, split in self.splits.items())
        return f"Dataset({self.name}: {len(self.classes)} classes, {sizes}, {'x'.join(map(str, self.shape))})"


def _check_targets(targets: Tensor, count: int) -> None:
    if targets.dtype != torch.int64 or targets.shape != (count,):
        raise InputError(
            f"targets: expected ({count},) of int64, one for each sample, got {tuple(targets.shape)} of {targets.dtype}."
        )


def _pixel_statistics(pixels: Tensor) -> tuple[Tensor, Tensor]:
    """From the counts of the 256 values: exact, whatever the order of summation."""
    counts = torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in pixels.unbind(1)]).double()
    values = torch.arange(256, dtype=torch.float64) / 255
    mean = counts @ values / counts.sum(1)
    return mean.float(), _deviation(counts @ values.square() / counts.sum(1) - mean.square(), mean)


def _float_statistics(inputs: Tensor) -> tuple[Tensor, Tensor]:
    around = [i for i in range(inputs.ndim) if i != 1]
    variance, mean = torch.var_mean(inputs.double(), dim=around, correction=0)
    return mean.float(), _deviation(variance, mean)


def _deviation(variance: Tensor, mean: Tensor) -> Tensor:
    """The square root, and 1 for what never varies: that is 0 already once its mean is gone."""
    varies = variance > 1e-14 * mean.square()  # below this a difference is rounding
    return torch.where(varies, variance.clamp(min=0).sqrt(), 1.0).float()


class RawDataset(NamedTuple):
    """A set as its files have it: the splits that they give, and all else in `train`."""

    classes: tuple[str, ...]
    train: Split
    test: Split | None = None
    val: Split | None = None
    taxonomy: Taxonomy | None = None
    coarse_classes: tuple[str, ...] | None = None


def class_names(labels: Sequence[str]) -> tuple[str, ...]:
    """The different labels, whole numbers by value, else by the alphabet."""
    distinct = set(labels)
    if all(label.removeprefix("-").isdecimal() for label in distinct):
        return tuple(sorted(distinct, key=lambda label: (int(label), label)))
    return tuple(sorted(distinct))


def positions(labels: Sequence[str], classes: Sequence[str], *, source: str) -> Tensor:
    """Each label as its place in `classes`; one that is not there is refused."""
    place = {name: k for k, name in enumerate(classes)}
    unknown = sorted({label for label in labels if label not in place})
    if unknown:
        raise InputError(
            f"{source}: no training sample has the class {listed(unknown)}; every class must be trained on."
        )
    return torch.tensor([place[label] for label in labels], dtype=torch.int64)
