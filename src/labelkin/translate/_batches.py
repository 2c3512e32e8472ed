"""Batches of sentence pairs of similar length, reproducible from the seed and the epoch."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count
from labelkin.data import Ints, shard, shuffled
from labelkin.translate._corpus import END, Pairs, Sentences

POOL = 50  # number of batches whose pairs are sorted by length together
BATCH_ORDER = 22  # a separate random stream


class PairBatch(NamedTuple):
    """One batch of sentence pairs.

    Attributes:
        source: (B, S) words of the source sentences, each followed by END.
        lengths: (B,) lengths of the source sentences with END; on the CPU, where packing needs them.
        previous: (B, T) the word before each target: END, then the words of the target sentence.
        targets: (B, T) the words of the target sentence, then END.
        weight: (B, T) 1, or 0 for padding.
        index: (B,) positions of the pairs in the split.
    """

    source: Tensor
    lengths: Tensor
    previous: Tensor
    targets: Tensor
    weight: Tensor
    index: Tensor  # type: ignore[assignment]  # hides tuple.index

    @property
    def weighted(self) -> bool:
        """Whether some weight may differ from 1; answered without reading from the device."""
        return True


class UnweightedPairBatch(PairBatch):
    """A batch whose weights are all 1, so a loss can ignore them."""

    @property
    def weighted(self) -> bool:
        return False


class PairBatches:
    """Iterate over batches of sentence pairs, one epoch at a time.

    With `shuffle`, the pairs are shuffled, sorted by length within pools of 50 batches and cut into batches, and the batches
    are shuffled. The pairs of a batch then have similar lengths and little padding. Without `shuffle`, the whole split is
    sorted by length.

    Args:
        pairs: The sentence pairs.
        batch_size: Number of pairs per batch, over all processes.
        shuffle: Whether to visit the pairs in random order.
        seed: Seed of the order.
        device: Device of the batches.
        rank: Index of this process, which gets its share of every batch; shares are padded with pairs of weight 0.
        world: Number of processes.
    """

    def __init__(
        self,
        pairs: Pairs,
        *,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        device: torch.device | str = "cpu",
        rank: int = 0,
        world: int = 1,
    ) -> None:
        check_count("batch_size", batch_size)
        check_count("seed", seed, least=0)
        self.pairs, self.batch_size, self.shuffle, self.seed = pairs, batch_size, shuffle, seed
        self.rank, self.world = rank, world
        self.device = torch.device(device)
        self._source, self._target = _on(pairs.source, self.device), _on(pairs.target, self.device)
        self._lengths = pairs.source.lengths.numpy(), pairs.target.lengths.numpy()

    def __len__(self) -> int:
        """Return the number of steps per epoch."""
        return -(-len(self.pairs) // self.batch_size)

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[PairBatch]:
        """Yield the batches of one epoch, from step `start` on."""
        check_count("epoch", epoch, least=0)
        check_count("start", start, least=0)
        if start > len(self):
            raise InputError(f"start: expected a step from 0 to {len(self)}, got {start}.")
        for rows in self._order(epoch)[start:]:
            yield self._batch(rows)

    def _order(self, epoch: int) -> list[Ints]:
        """Return the rows of each batch."""
        count, size = len(self.pairs), self.batch_size
        if not self.shuffle:
            return _cut(self._by_length(np.arange(count)), size)
        rows = shuffled(count, seed=self.seed, epoch=epoch).numpy()
        pools = _cut(rows, size * POOL)
        batches = [batch for pool in pools for batch in _cut(self._by_length(pool), size)]
        order = np.random.default_rng([self.seed, BATCH_ORDER, epoch]).permutation(len(batches))
        return [batches[i] for i in order]

    def _by_length(self, rows: Ints) -> Ints:
        source, target = self._lengths
        return rows[np.lexsort((target[rows], source[rows]))]

    def _batch(self, rows: Ints) -> PairBatch:
        share = shard(len(rows), rank=self.rank, world=self.world)
        mine = rows[share.rows.numpy()]
        source_lengths, target_lengths = (lengths[mine] for lengths in self._lengths)
        index = torch.from_numpy(mine).to(self.device)
        source, _ = _padded(self._source, index, int(source_lengths.max()))
        targets, real = _padded(self._target, index, int(target_lengths.max()))
        previous = torch.cat([torch.full_like(targets[:, :1], END), targets[:, :-1]], 1)
        weight = real.float() * share.weight.to(self.device).unsqueeze(1)
        full = bool(target_lengths.min() == target_lengths.max()) and bool(share.weight.all())
        kind = UnweightedPairBatch if full else PairBatch
        return kind(source, torch.from_numpy(source_lengths), previous, targets, weight, index)


def _on(sentences: Sentences, device: torch.device) -> Sentences:
    """Move sentences to a device."""
    return Sentences(sentences.flat.to(device), sentences.starts.to(device))


def _cut(rows: Ints, size: int) -> list[Ints]:
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def _padded(sentences: Sentences, index: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Return (B, longest) words, padded with END, and a mask of the words that are not padding."""
    starts, ends = sentences.starts[index], sentences.starts[index + 1]
    places = starts.unsqueeze(1) + torch.arange(longest, device=index.device)
    real = places < ends.unsqueeze(1)
    return torch.where(real, sentences.flat[places.clamp(max=len(sentences.flat) - 1)], END), real
