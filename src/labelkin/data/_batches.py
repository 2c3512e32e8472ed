"""Batches of a split: the same samples in the same order for the same seed and epoch, on one process or many."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from labelkin._checks import InputError, check_count, renamed
from labelkin.data._augment import Augmentation, Chain, Normalize
from labelkin.data._dataset import ArraySplit, FileSplit, Split
from labelkin.data._order import Shard, balanced_order, check_balanced, shard, shuffled, uniforms
from labelkin.data._readers.images import UnreadableImage, warn_skipped


class Sample(NamedTuple):
    image: Tensor
    failure: str | None


class Streamed(NamedTuple):
    """Images (n, C, H, W), black where one could not be read; `failures` says why, by place in the batch."""

    images: Tensor
    failures: dict[int, str]


def stream(split: FileSplit, indices: Sequence[Tensor], *, workers: int, pin: bool) -> Generator[Streamed]:
    """One batch for each tensor of positions, in their order."""
    loader = DataLoader(
        _Files(split),
        batch_sampler=[index.tolist() for index in indices],
        num_workers=workers,
        collate_fn=_together,
        pin_memory=pin,
        generator=torch.Generator(),  # its own, or each epoch would move the global one that dropout draws from
    )
    yield from loader


class _Files(Dataset[Sample]):
    def __init__(self, split: FileSplit) -> None:
        self.split = split

    def __getitem__(self, position: int) -> Sample:
        try:
            return Sample(self.split.read(position), None)
        except UnreadableImage as error:  # as a value: a worker's exception would arrive as a page of traceback
            return Sample(torch.zeros(self.split.shape, dtype=torch.uint8), error.reason)


def _together(samples: Sequence[Sample]) -> Streamed:
    failures = {place: sample.failure for place, sample in enumerate(samples) if sample.failure is not None}
    return Streamed(torch.stack([sample.image for sample in samples]), failures)


class Minibatch(NamedTuple):
    """`index` holds the samples' positions in the split; `weight` is 1, and 0 where a row is padding.

    Padding repeats a sample (or is black where an image could not be read): leave rows of weight 0 out of every sum,
    and out of tables kept by `index`.
    """

    inputs: Tensor
    targets: Tensor
    index: Tensor  # type: ignore[assignment]  # hides tuple.index
    weight: Tensor

    @property
    def weighted(self) -> bool:
        """Whether some weight may differ from 1; known without reading the device."""
        return True


class UnweightedMinibatch(Minibatch):
    """A batch whose weights are all 1, so that a loss can do without them."""

    @property
    def weighted(self) -> bool:
        return False


class Batches:
    """Iterate with `epoch(e)`; the order depends on `(seed, e)` alone, so `epoch(e, start=s)` goes on after step `s`.

    `batch_size` is that of the whole world: rank `r` of `world` gets its share of each batch, and together the ranks
    hold what one process would, augmented alike. Shares are equally long; the last may be padded with weight 0.
    `balanced=m` puts m samples of each of `batch_size / m` classes into every batch. Samples in memory move to `device`
    once and are augmented and normalized there; image files stream through a DataLoader with `workers` processes.
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
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        workers: int = 0,
        normalise: Normalize | None = None,
    ) -> None:
        normalize = renamed("normalize", normalize, "normalise", normalise)
        check_count("batch_size", batch_size)
        check_count("seed", seed, least=0)
        check_count("world", world)
        check_count("rank", rank, least=0)
        check_count("workers", workers, least=0)
        if rank >= world:
            raise InputError(f"rank: expected 0 to {world - 1} in a world of {world}, got {rank}.")
        if balanced is not None:
            check_count("balanced", balanced)
            check_balanced(split.targets, batch_size=batch_size, each=balanced)
        self.augment = Chain(tuple(augment)) if isinstance(augment, Sequence) else augment
        if self.augment.numbers and len(split.shape) != 3:
            raise InputError(f"augment: needs images (C, H, W), the samples have shape {split.shape}.")
        self.split, self.batch_size, self.shuffle, self.seed = split, batch_size, shuffle, seed
        self.balanced, self.rank, self.world, self.workers = balanced, rank, world, workers
        self.device = torch.device(device)
        self.normalize = None if normalize is None else normalize.to(self.device)
        whole = drop_last or balanced is not None
        self.steps = len(split) // batch_size if whole else -(-len(split) // batch_size)
        if self.steps == 0:
            raise InputError(f"batch_size: expected at most {len(split)}, the samples there are, got {batch_size}.")
        self._targets = split.targets.to(self.device)
        self._inputs = split.inputs.to(self.device) if isinstance(split, ArraySplit) else None
        self._shards: dict[int, Shard] = {}
        self._warned: set[int] = set()

    def __len__(self) -> int:
        """Steps an epoch."""
        return self.steps

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Minibatch]:
        """The batches of one epoch, from step `start` on."""
        check_count("epoch", epoch, least=0)
        check_count("start", start, least=0)
        if start > self.steps:
            raise InputError(f"start: expected a step from 0 to {self.steps}, got {start}.")
        order = self._order(epoch).to(self.device)
        draws = uniforms(len(order), self.augment.numbers, seed=self.seed, epoch=epoch).to(self.device)
        firsts = range(start * self.batch_size, len(order), self.batch_size)
        spans = [slice(first, min(first + self.batch_size, len(order))) for first in firsts]
        batches = self._from_memory(order, spans) if self._inputs is not None else self._from_files(order, spans)
        for batch, span in zip(batches, spans, strict=True):
            inputs = batch.inputs
            if self.augment.numbers:
                inputs = self.augment(inputs, draws[span][self._shard(span).rows])
            yield batch._replace(inputs=inputs if self.normalize is None else self.normalize(inputs))

    def _order(self, epoch: int) -> Tensor:
        if self.balanced is not None:
            size, each = self.batch_size, self.balanced
            return balanced_order(
                self.split.targets, batch_size=size, each=each, steps=self.steps, seed=self.seed, epoch=epoch
            )
        count = len(self.split)
        order = shuffled(count, seed=self.seed, epoch=epoch) if self.shuffle else torch.arange(count)
        return order[: self.steps * self.batch_size]

    def _shard(self, span: slice) -> Shard:
        """This rank's rows of a batch; kept, since all batches but the last are alike."""
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
        with closing(stream(self.split, indices, workers=self.workers, pin=pin)) as batches:  # ends the workers at once
            for (images, failures), index, span in zip(batches, indices, spans, strict=True):
                self._report({int(index[place]): reason for place, reason in failures.items()})
                weight = self._shard(span).weight.clone()
                weight[list(failures)] = 0.0
                index = index.to(self.device)
                images = images.to(self.device, non_blocking=True)
                kind = Minibatch if failures or self._padded(span) else UnweightedMinibatch
                yield kind(images, self._targets[index], index, weight)

    def _report(self, failures: dict[int, str]) -> None:
        """Stop at the first image that cannot be read, or warn once of each."""
        assert isinstance(self.split, FileSplit)
        if failures and self.split.on_error == "stop":
            position, reason = next(iter(failures.items()))
            raise UnreadableImage(self.split.paths[position], reason)
        if new := sorted(failures.keys() - self._warned):
            self._warned.update(new)
            warn_skipped([self.split.paths[i] for i in new])
