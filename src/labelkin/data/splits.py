"""Which samples go where: stratified parts, subsets, and the label noise of 004."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, check_number, listed

Ints = npt.NDArray[np.int64]
# One stream of random numbers a purpose, so that the same seed never ties the split to the noise.
SPLIT, SUBSET, NOISE = 1, 2, 3


class Parts(NamedTuple):
    """Positions of the samples, ascending: what stays, and what was taken out."""

    rest: Tensor
    part: Tensor


class NoisyLabels(NamedTuple):
    """`targets` after the exchange, the `pairs` of classes (P, 2), and which samples `changed`."""

    targets: Tensor
    pairs: Tensor
    changed: Tensor


def stratified(targets: Tensor, fraction: float, *, seed: int, classes: Sequence[str]) -> Parts:
    """Take `fraction` of each class out, at random by `seed`; every class keeps at least one sample on both sides."""
    check_number("fraction", fraction, low=0, high=1, open_low=True)
    counts = _counts(targets, classes)
    small = np.flatnonzero(counts < 2)
    if len(small):
        named = [f"{classes[k]} ({counts[k]})" for k in small.tolist()]
        raise InputError(f"a split needs two samples or more of every class; too few of {listed(named)}.")
    taken = _taken(targets, _quotas(counts, fraction, most=counts - 1), seed=seed, purpose=SPLIT)
    return Parts(torch.from_numpy(np.flatnonzero(~taken)), torch.from_numpy(np.flatnonzero(taken)))


def subset(targets: Tensor, fraction: float, *, seed: int, classes: Sequence[str]) -> Tensor:
    """Positions of `fraction` of each class, ascending, at least one sample of every class that has any."""
    check_number("fraction", fraction, low=0, high=1, open_low=True)
    counts = _counts(targets, classes)
    taken = _taken(targets, _quotas(counts, fraction, most=counts), seed=seed, purpose=SUBSET)
    return torch.from_numpy(np.flatnonzero(taken))


def label_noise(targets: Tensor, share: float, *, seed: int, classes: Sequence[str]) -> NoisyLabels:
    """Pair the classes at random and give `share` of each class's samples the label of its partner (004, Fig. 5).

    With an odd number of classes one is left over and stays clean. The paper gives the share of "labels exchanged
    between any two classes" and equal classes; where the two of a pair differ in size, each gives its own share.
    """
    check_number("share", share, low=0, high=1)
    check_count("seed", seed, least=0)
    counts = _counts(targets, classes)
    shuffled = np.random.default_rng([seed, NOISE]).permutation(len(classes))
    pairs = shuffled[: len(classes) // 2 * 2].reshape(-1, 2)
    partner = np.arange(len(classes))
    partner[pairs[:, 0]], partner[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    quotas = np.where(partner == np.arange(len(classes)), 0, np.rint(share * counts).astype(np.int64))
    changed = _taken(targets, quotas, seed=seed, purpose=NOISE)
    clean = targets.numpy()
    noisy = np.where(changed, partner[clean], clean)
    return NoisyLabels(torch.from_numpy(noisy), torch.from_numpy(pairs), torch.from_numpy(changed))


def _counts(targets: Tensor, classes: Sequence[str]) -> Ints:
    return np.bincount(targets.numpy(), minlength=len(classes))


def _quotas(counts: Ints, fraction: float, *, most: Ints) -> Ints:
    """How many of each class: the total is right to one sample, and the largest remainders get what rounding left."""
    exact = fraction * counts
    quotas = np.floor(exact).astype(np.int64)
    left = round(fraction * float(counts.sum())) - int(quotas.sum())
    quotas[np.argsort(quotas - exact, kind="stable")[:left]] += 1
    clipped: Ints = np.clip(quotas, np.minimum(1, counts), most)
    return clipped


def _taken(targets: Tensor, quotas: Ints, *, seed: int, purpose: int) -> npt.NDArray[np.bool_]:
    """A mask with `quotas[k]` samples of class `k`, drawn at random."""
    check_count("seed", seed, least=0)
    values = targets.numpy()
    draws = np.random.default_rng([seed, purpose, 0]).random(len(values))
    order = np.lexsort((draws, values))  # by class, then at random
    starts = np.searchsorted(values[order], np.arange(len(quotas)))
    place = np.arange(len(values)) - starts[values[order]]
    taken = np.zeros(len(values), dtype=np.bool_)
    taken[order] = place < quotas[values[order]]
    return taken
