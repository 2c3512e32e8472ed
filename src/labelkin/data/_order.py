"""The order in which an epoch visits the samples, a function of the seed and the epoch only."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, counted, listed

Ints = npt.NDArray[np.int64]
# One random stream per purpose, different from those in `_splits`.
ORDER, AUGMENT = 11, 12
MOST_VALUES = 2**24  # in the inputs of samples that are evaluated at once


class Shard(NamedTuple):
    """The rows of a global batch that one rank holds; `weight` is 0 for rows that are padding."""

    rows: Tensor
    weight: Tensor


def shuffled(count: int, *, seed: int, epoch: int) -> Tensor:
    """Return a random permutation of `count` positions."""
    return torch.from_numpy(np.random.default_rng([seed, ORDER, epoch]).permutation(count))


def uniforms(count: int, numbers: int, *, seed: int, epoch: int) -> Tensor:
    """Return (count, numbers) random numbers in [0, 1), one row per position in the epoch's order."""
    draws = np.random.default_rng([seed, AUGMENT, epoch]).random((count, numbers), dtype=np.float32)
    return torch.from_numpy(draws)


def shard(count: int, *, rank: int, world: int) -> Shard:
    """Return the rows of a batch of `count` samples that a rank holds, the same number on every rank.

    Padding repeats row 0.
    """
    share = -(-count // world)
    rows = torch.arange(rank * share, (rank + 1) * share)
    real = rows < count
    return Shard(torch.where(real, rows, 0), real.float())


def balanced_order(targets: Tensor, *, batch_size: int, each: int, steps: int, seed: int, epoch: int) -> Tensor:
    """Return (steps * batch_size,) positions with `each` samples of `batch_size / each` classes in every batch.

    No sample occurs twice in a batch. The classes used least so far are drawn first, ties at random, so over an epoch the
    counts of the classes differ by at most one. The samples of a class are drawn in shuffled rounds; samples that do not fill a
    group are left for the next shuffle.
    """
    rng = np.random.default_rng([seed, ORDER, epoch])
    members = _members(targets.numpy())
    per_batch = batch_size // each
    used = np.zeros(len(members), dtype=np.int64)
    chosen = np.empty((steps, per_batch), dtype=np.int64)
    for step in range(steps):
        chosen[step] = np.argsort(used + rng.random(len(members)))[:per_batch]
        used[chosen[step]] += 1
    groups = [_dealt(own, each, rounds, rng) for own, rounds in zip(members, used.tolist(), strict=True)]
    order = np.empty((steps, per_batch, each), dtype=np.int64)
    for k, dealt in enumerate(groups):
        order[chosen == k] = dealt
    return torch.from_numpy(order.reshape(-1))


def evened(targets: Tensor, *, seed: int, epoch: int) -> Tensor:
    """Return as many positions as there are samples, with samples of each class equally often, in random order.

    The counts of the classes differ by at most one; which classes have one more changes from epoch to epoch. The samples of a
    class are drawn in shuffled rounds, so that their counts differ by at most one too.
    """
    rng = np.random.default_rng([seed, ORDER, epoch])
    members = _members(targets.numpy())
    least, more = divmod(len(targets), len(members))
    rounds = np.full(len(members), least)
    rounds[rng.permutation(len(members))[:more]] += 1
    drawn = [_dealt(own, 1, count, rng).reshape(-1) for own, count in zip(members, rounds.tolist(), strict=True)]
    return torch.from_numpy(rng.permutation(np.concatenate(drawn)))


def check_balanced(targets: Tensor, *, batch_size: int, each: int) -> None:
    """Refuse a batch size that cannot hold `each` samples of every class in the batch."""
    check_count("balanced", each)
    counts = torch.bincount(targets)
    present = counts[counts > 0]
    if batch_size % each or batch_size // each > len(present):
        raise InputError(
            f"batch_size: with {counted(each, 'sample')} of every class (balanced), expected a "
            f"multiple of {each} up to {each * len(present)} ({len(present)} classes), got {batch_size}."
        )
    if int(present.min()) < each:
        short = [int(k) for k in torch.nonzero((counts > 0) & (counts < each)).flatten()]
        raise InputError(
            f"balanced: expected at least {counted(each, 'sample')} of every class, got fewer of class {listed(short)}."
        )


def _members(targets: Ints) -> list[Ints]:
    """Return the positions of the samples of each class that has any."""
    order = np.argsort(targets, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(targets[order])) + 1)


def _dealt(own: Ints, each: int, rounds: int, rng: np.random.Generator) -> Ints:
    """Return (rounds, each) groups of a class's samples, shuffled again whenever they run out."""
    whole = len(own) // each
    shuffles = [rng.permutation(own)[: whole * each].reshape(whole, each) for _ in range(-(-rounds // whole))]
    return np.concatenate(shuffles)[:rounds] if shuffles else np.empty((0, each), dtype=np.int64)


def samples_at_once(shape: Sequence[int], most: int) -> int:
    """Return the number of samples to evaluate at once: `most`, or fewer if they are images above 64 x 64 pixels.

    >>> samples_at_once((3, 32, 32), 1024), samples_at_once((3, 256, 256), 1024)
    (1024, 85)
    """
    return max(1, min(most, MOST_VALUES // prod(shape)))
