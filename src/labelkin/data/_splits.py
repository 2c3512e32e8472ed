"""Split, restrict and subsample a data set, and add label noise."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, check_names, check_number, listed, near
from labelkin.data._dataset import FileSplit, RawDataset, Split

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


TEST_FRACTION = 0.2  # where a set comes without a test split
STREAM_ABOVE = 1 << 30  # bytes of pixels: smaller image folders are read into memory once


def restricted(found: RawDataset, classes: Sequence[str]) -> RawDataset:
    """The samples of `classes` alone, which are numbered anew in the order given."""
    check_names("classes", classes, least=2)
    unknown = [name for name in classes if name not in found.classes]
    if unknown:
        raise InputError(f"classes: the set has no class {listed(unknown)}.{near(unknown[0], found.classes)}")
    place = torch.full((len(found.classes),), -1)
    place[[found.classes.index(name) for name in classes]] = torch.arange(len(classes))

    def kept(split: Split) -> Split:
        rows = split.take(torch.nonzero(place[split.targets] >= 0).flatten())
        return rows.with_targets(place[rows.targets])

    return found._replace(
        classes=tuple(classes),
        train=kept(found.train),
        test=None if found.test is None else kept(found.test),
        val=None if found.val is None else kept(found.val),
        taxonomy=None if found.taxonomy is None else found.taxonomy.restrict(classes),
    )


def divided(
    name: str, found: RawDataset, *, seed: int, test_fraction: float | None, validation_fraction: float | None
) -> RawDataset:
    """With a test split, its own or stratified by `seed`, and a validation split where asked for."""
    if found.test is None and found.val is not None:
        found = found._replace(test=found.val, val=None)  # ImageNet's way: what it calls val is what all test on
    if len(found.classes) < 2:
        raise InputError(f"{name}: a classifier needs at least two classes, found only {listed(found.classes)}.")
    for argument, fraction, own in (
        ("test_fraction", test_fraction, found.test),
        ("validation_fraction", validation_fraction, found.val),
    ):
        if fraction is not None and own is not None:
            raise InputError(f"{argument}: {name} comes with a split of its own; leave {argument} out.")
    if found.test is None:
        fraction = TEST_FRACTION if test_fraction is None else test_fraction
        rest, part = stratified(found.train.targets, fraction, seed=seed, classes=found.classes)
        found = found._replace(train=found.train.take(rest), test=found.train.take(part))
    if validation_fraction is not None:
        rest, part = stratified(found.train.targets, validation_fraction, seed=seed, classes=found.classes)
        found = found._replace(train=found.train.take(rest), val=found.train.take(part))
    return found


def with_fewer(found: RawDataset, fraction: float, *, seed: int) -> RawDataset:
    """`fraction` of every class's training samples."""
    kept = subset(found.train.targets, fraction, seed=seed, classes=found.classes)
    return found._replace(train=found.train.take(kept))


def with_noise(found: RawDataset, share: float, *, seed: int) -> RawDataset:
    """Training labels exchanged between paired classes; what is validated and tested on stays true."""
    noisy = label_noise(found.train.targets, share, seed=seed, classes=found.classes)
    return found._replace(train=found.train.with_targets(noisy.targets))


def in_memory(found: RawDataset, *, stream: bool | None) -> RawDataset:
    """Image files read now, unless they are to be streamed or are too many to hold."""
    files = [split for split in (found.train, found.test, found.val) if isinstance(split, FileSplit)]
    large = sum(split.memory for split in files) > STREAM_ABOVE
    if large if stream is None else stream:
        return found
    train, test, val = (
        split.in_memory() if isinstance(split, FileSplit) else split for split in (found.train, found.test, found.val)
    )
    assert train is not None
    return found._replace(train=train, test=test, val=val)
