"""Batches of sentence pairs of like length: the same pairs in the same order for the same seed and epoch."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count
from labelkin.data import Ints, shard, shuffled
from labelkin.translate._corpus import END, Pairs, Sentences

POOL = 50  # batches that are shuffled together and then cut by length
BATCH_ORDER = 22  # a stream of random numbers of its own


class PairBatch(NamedTuple):
    source: Tensor  # (B, S) positions, each sentence closed by END
    lengths: Tensor  # (B,) of the source, END counted; on the CPU, where packing needs them
    previous: Tensor  # (B, T) what stands before each target: END, then the target's words
    targets: Tensor  # (B, T) the target's words, then END
    weight: Tensor  # (B, T) 1, and 0 on padding
    index: Tensor  # type: ignore[assignment]  # (B,) the pairs' positions in the split; hides tuple.index

    @property
    def weighted(self) -> bool:
        """Whether some weight may differ from 1; known without reading the device."""
        return True


class UnweightedPairBatch(PairBatch):
    """A batch whose weights are all 1, so that a loss can do without them."""

    @property
    def weighted(self) -> bool:
        return False


class PairBatches:
    """Iterate with `epoch(e)`; `epoch(e, start=s)` goes on after step `s`.

    Pairs are shuffled, sorted by length within pools of 50 batches, cut into batches, and these shuffled: batches hold
    pairs of like length, and little padding. `shuffle=False` sorts the whole split. `batch_size` counts pairs of the
    whole world; rank `r` gets its share of each batch, padded with pairs of weight 0 where it does not divide.
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
        """Steps an epoch."""
        return -(-len(self.pairs) // self.batch_size)

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[PairBatch]:
        """The batches of one epoch, from step `start` on."""
        check_count("epoch", epoch, least=0)
        check_count("start", start, least=0)
        if start > len(self):
            raise InputError(f"start: expected a step from 0 to {len(self)}, got {start}.")
        for rows in self._order(epoch)[start:]:
            yield self._batch(rows)

    def _order(self, epoch: int) -> list[Ints]:
        """The rows of each batch."""
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
    return Sentences(sentences.flat.to(device), sentences.starts.to(device))


def _cut(rows: Ints, size: int) -> list[Ints]:
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def _padded(sentences: Sentences, index: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """(B, longest) positions with END behind each sentence, and where a sentence is."""
    starts, ends = sentences.starts[index], sentences.starts[index + 1]
    places = starts.unsqueeze(1) + torch.arange(longest, device=index.device)
    real = places < ends.unsqueeze(1)
    return torch.where(real, sentences.flat[places.clamp(max=len(sentences.flat) - 1)], END), real
