"""Batches of a split, reproducible from the seed and the epoch, in one process or many."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from copy import copy
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from labelkin._checks import InputError, check_choice, check_count, renamed
from labelkin.data._augment import Augmentation, Chain, Normalize
from labelkin.data._dataset import ArraySplit, FileSplit, Split
from labelkin.data._mixing import Mixing
from labelkin.data._order import Shard, balanced_order, check_balanced, evened, shard, shuffled, uniforms
from labelkin.data._readers.images import UnreadableImage, warn_skipped


class Sample(NamedTuple):
    """One image, and the reason why it could not be read (None if it was read)."""

    image: Tensor
    failure: str | None


class Streamed(NamedTuple):
    """Images (n, C, H, W) read from files, black where one could not be read.

    `failures` maps positions in the batch to the reason.
    """

    images: Tensor
    failures: dict[int, str]


def stream(split: FileSplit, indices: Sequence[Tensor], *, workers: int, pin: bool) -> Generator[Streamed]:
    """Yield one batch per tensor of positions, in order."""
    loader = DataLoader(
        _Files(split),
        batch_sampler=[index.tolist() for index in indices],
        num_workers=workers,
        collate_fn=_together,
        pin_memory=pin,
        generator=torch.Generator(),  # a separate one: DataLoader would otherwise advance the global generator
    )
    yield from loader


class _Files(Dataset[Sample]):
    def __init__(self, split: FileSplit) -> None:
        self.split = split

    def __getitem__(self, position: int) -> Sample:
        try:
            return Sample(self.split.read(position), None)
        except UnreadableImage as error:  # returned, because a worker's exception would come with a long traceback
            return Sample(torch.zeros(self.split.shape, dtype=torch.uint8), error.reason)


def _together(samples: Sequence[Sample]) -> Streamed:
    """Collate samples into one batch."""
    failures = {place: sample.failure for place, sample in enumerate(samples) if sample.failure is not None}
    return Streamed(torch.stack([sample.image for sample in samples]), failures)


class Minibatch(NamedTuple):
    """One batch of samples.

    Padding repeats a sample, or is black if an image could not be read. Leave rows of weight 0 out of every sum, and out of
    tables that are indexed by `index`.

    Attributes:
        inputs: (B, ...) the samples.
        targets: (B,) their classes; or (B, K) class probabilities if samples are mixed.
        index: (B,) their positions in the split.
        weight: (B,) 1, or 0 for rows that are padding.

    Example:
        >>> import torch
        >>> from labelkin.data import ArraySplit, Batches
        >>> split = ArraySplit(torch.zeros(3, 2), torch.tensor([0, 1, 1]))
        >>> batch = next(Batches(split, batch_size=3).epoch(0))
        >>> batch.targets.tolist(), batch.index.tolist(), batch.weight.tolist()
        ([0, 1, 1], [0, 1, 2], [1.0, 1.0, 1.0])
    """

    inputs: Tensor
    targets: Tensor
    index: Tensor  # type: ignore[assignment]  # hides tuple.index
    weight: Tensor

    @property
    def weighted(self) -> bool:
        """Whether some weight may differ from 1; answered without reading from the device."""
        return True


class UnweightedMinibatch(Minibatch):
    """A batch whose weights are all 1, so a loss can ignore them."""

    @property
    def weighted(self) -> bool:
        return False


class Visits(NamedTuple):
    """The order in which an epoch visits the samples, and the random numbers (n, numbers) of their augmentations."""

    order: Tensor
    draws: Tensor


class Batches:
    """Iterate over the batches of a split, one epoch at a time.

    The order depends only on `(seed, epoch)`, so `epoch(e, start=s)` continues after step `s` of an interrupted epoch. With
    several processes, all ranks together hold the samples that one process would hold, augmented in the same way. Every rank
    gets the same number of rows; the last ranks may be padded with rows of weight 0. Samples in memory are moved to `device`
    once and are augmented and normalized there; image files are streamed through a `DataLoader`.

    Args:
        split: The samples.
        batch_size: Number of samples per batch, over all processes.
        shuffle: Whether to visit the samples in random order.
        seed: Seed of the order and of the augmentations.
        device: Device of the batches.
        augment: One augmentation, or several that are applied in order.
        normalize: Normalization of the inputs, usually `Dataset.normalize`.
        balanced: Put this many samples of each of `batch_size / balanced` classes into every batch.
        sampler: With "balanced", an epoch takes samples of each class equally often instead of each sample once: samples
            of rare classes several times, and only some samples of frequent classes.
        drop_last: Whether to leave out a last batch that is not full.
        rank: Index of this process.
        world: Number of processes.
        workers: Number of processes that read image files.
        mix: Mixture of the samples of a batch, `Mixup` or `CutMix`; targets are then class probabilities.
        classes: Number of classes; needed with `mix`.
        normalise: Deprecated name of `normalize`.

    Example:
        >>> import torch
        >>> from labelkin.data import ArraySplit, Batches
        >>> split = ArraySplit(torch.zeros(5, 2), torch.tensor([0, 1, 0, 1, 1]))
        >>> batches = Batches(split, batch_size=2, shuffle=True, seed=1)
        >>> len(batches)
        3
        >>> [len(batch.targets) for batch in batches.epoch(0)]
        [2, 2, 1]
    """

    def __init__(
        self,
        split: Split,
        *,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        device: torch.device | str = "cpu",
        augment: Augmentation | Sequence[Augmentation] = (),
        normalize: Normalize | None = None,
        balanced: int | None = None,
        sampler: str = "random",
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        workers: int = 0,
        mix: Mixing | None = None,
        classes: int | None = None,
        normalise: Normalize | None = None,
    ) -> None:
        normalize = renamed("normalize", normalize, "normalise", normalise)
        for name, count in (("batch_size", batch_size), ("world", world)):
            check_count(name, count)
        for name, count in (("seed", seed), ("rank", rank), ("workers", workers)):
            check_count(name, count, least=0)
        if rank >= world:
            raise InputError(f"rank: expected 0 to {world - 1} in a world of {world}, got {rank}.")
        if balanced is not None:
            check_balanced(split.targets, batch_size=batch_size, each=balanced)
        check_choice("sampler", sampler, ("random", "balanced"))
        self.evened = sampler == "balanced"
        self.augment = Chain(tuple(augment)) if isinstance(augment, Sequence) else augment
        self.mix, self.classes = mix, classes
        if mix is not None and classes is None:
            raise InputError("classes: expected the number of classes, which mix needs, got None.")
        if (self.augment.numbers or mix is not None) and len(split.shape) != 3:
            raise InputError(
                f"augment: expected samples that are images (C, H, W), got samples of shape {split.shape}; leave augment out."
            )
        self.split, self.batch_size, self.shuffle, self.seed = split, batch_size, shuffle, seed
        self.balanced, self.rank, self.world, self.workers = balanced, rank, world, workers
        self.device = torch.device(device)
        self.normalize = None if normalize is None else normalize.to(self.device)
        whole = drop_last or balanced is not None
        self.steps = len(split) // batch_size if whole else -(-len(split) // batch_size)
        if self.steps == 0:
            raise InputError(f"batch_size: expected at most {len(split)}, the number of samples, got {batch_size}.")
        self._targets = split.targets.to(self.device)
        self._inputs = split.inputs.to(self.device) if isinstance(split, ArraySplit) else None
        self._shards: dict[int, Shard] = {}
        self._warned: set[int] = set()

    def __len__(self) -> int:
        """Return the number of steps per epoch."""
        return self.steps

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Minibatch]:
        """Yield the batches of one epoch.

        Args:
            epoch: Number of the epoch, from 0.
            start: Number of steps to skip.
        """
        check_count("epoch", epoch, least=0)
        check_count("start", start, least=0)
        if start > self.steps:
            raise InputError(f"start: expected a step from 0 to {self.steps}, got {start}.")
        order, draws = self.visits(epoch)
        firsts = range(start * self.batch_size, len(order), self.batch_size)
        spans = [slice(first, min(first + self.batch_size, len(order))) for first in firsts]
        batches = self._from_memory(order, spans) if self._inputs is not None else self._from_files(order, spans)
        for batch, span in zip(batches, spans, strict=True):
            yield self._prepared(batch, draws[span][self._shard(span).rows])

    def with_seed(self, seed: int) -> "Batches":
        """Return the same batches in the order and with the augmentations of another seed; the samples are shared.

        Args:
            seed: The seed.

        Returns:
            The batches.

        Example:
            >>> import torch
            >>> from labelkin.data import ArraySplit, Batches
            >>> batches = Batches(ArraySplit(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])), batch_size=2, shuffle=True)
            >>> batches.visits(0).order.tolist(), batches.with_seed(1).visits(0).order.tolist()
            ([0, 2, 1, 3], [1, 0, 2, 3])
        """
        check_count("seed", seed, least=0)
        other = copy(self)
        other.seed = seed
        return other

    @property
    def in_memory(self) -> bool:
        """Whether the samples are on the device, so that `take` works."""
        return isinstance(self._inputs, Tensor)

    @property
    def on_host(self) -> bool:
        """Whether an augmentation needs the CPU in every step."""
        return bool(getattr(self.augment, "on_host", False))

    def visits(self, epoch: int) -> Visits:
        """Return the order of an epoch and the random numbers of its augmentations, on the device.

        Args:
            epoch: Number of the epoch, from 0.
        """
        order = self._order(epoch)
        numbers = self.augment.numbers + (0 if self.mix is None else self.mix.numbers)
        draws = uniforms(len(order), numbers, seed=self.seed, epoch=epoch)
        return Visits(order.to(self.device), draws.to(self.device))

    def take(self, index: Tensor, draws: Tensor) -> Minibatch:
        """Return the batch of some samples in memory; nothing is read from the device, so CUDA can capture it.

        Args:
            index: (n,) positions of the samples, on the device.
            draws: (n, numbers) random numbers of the augmentations, on the device.
        """
        assert self._inputs is not None
        weight = torch.ones(len(index), device=self.device)
        return self._prepared(UnweightedMinibatch(self._inputs[index], self._targets[index], index, weight), draws)

    def _prepared(self, batch: Minibatch, draws: Tensor) -> Minibatch:
        """Augment, normalize and mix the samples of a batch."""
        inputs, numbers = batch.inputs, self.augment.numbers
        if numbers:
            inputs = self.augment(inputs, draws[:, :numbers])
        inputs = inputs if self.normalize is None else self.normalize(inputs)
        if self.mix is None:
            return batch._replace(inputs=inputs)
        assert self.classes is not None
        mixed = self.mix(inputs, batch.weight, draws[:, numbers:])
        return batch._replace(inputs=mixed.inputs, targets=mixed.targets(batch.targets, self.classes))

    def _order(self, epoch: int) -> Tensor:
        """Return the positions of the samples in the order of the epoch."""
        if self.balanced is not None:
            size, each = self.batch_size, self.balanced
            return balanced_order(
                self.split.targets, batch_size=size, each=each, steps=self.steps, seed=self.seed, epoch=epoch
            )
        count = len(self.split)
        if self.evened:
            return evened(self.split.targets, seed=self.seed, epoch=epoch)[: self.steps * self.batch_size]
        order = shuffled(count, seed=self.seed, epoch=epoch) if self.shuffle else torch.arange(count)
        return order[: self.steps * self.batch_size]

    def _shard(self, span: slice) -> Shard:
        """Return this rank's rows of a batch; cached, since all batches but the last have the same size."""
        count = span.stop - span.start
        if count not in self._shards:
            rows, weight = shard(count, rank=self.rank, world=self.world)
            self._shards[count] = Shard(rows.to(self.device), weight.to(self.device))
        return self._shards[count]

    def _padded(self, span: slice) -> bool:
        """Return whether this rank's rows of a batch include padding; the last ranks are padded first."""
        count = span.stop - span.start
        return bool((self.rank + 1) * -(-count // self.world) > count)

    def _from_memory(self, order: Tensor, spans: Sequence[slice]) -> Iterator[Minibatch]:
        assert self._inputs is not None
        for span in spans:
            rows, weight = self._shard(span)
            index = order[span][rows]
            inputs, targets = self._inputs[index], self._targets[index]
            kind = Minibatch if self._padded(span) else UnweightedMinibatch
            yield kind(inputs, targets, index, weight.clone())

    def _from_files(self, order: Tensor, spans: Sequence[slice]) -> Iterator[Minibatch]:
        assert isinstance(self.split, FileSplit)
        indices = [order[span][self._shard(span).rows].cpu() for span in spans]
        pin = self.device.type == "cuda"
        with closing(
            stream(self.split, indices, workers=self.workers, pin=pin)
        ) as batches:  # stops the workers immediately
            for (images, failures), index, span in zip(batches, indices, spans, strict=True):
                self._report({int(index[place]): reason for place, reason in failures.items()})
                weight = self._shard(span).weight.clone()
                weight[list(failures)] = 0.0
                index = index.to(self.device)
                images = images.to(self.device, non_blocking=True)
                kind = Minibatch if failures or self._padded(span) else UnweightedMinibatch
                yield kind(images, self._targets[index], index, weight)

    def _report(self, failures: dict[int, str]) -> None:
        """Raise for the first image that cannot be read, or warn once about each."""
        assert isinstance(self.split, FileSplit)
        if failures and self.split.on_error == "stop":
            position, reason = next(iter(failures.items()))
            raise UnreadableImage(self.split.paths[position], reason)
        if new := sorted(failures.keys() - self._warned):
            self._warned.update(new)
            warn_skipped([self.split.paths[i] for i in new])
