"""Split, restrict and subsample a dataset, and add label noise."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, check_names, check_number, counted, listed, near
from labelkin.data._dataset import FileSplit, RawDataset, Split
from labelkin.data._partial import restrict_partial

Ints = npt.NDArray[np.int64]
# One random stream per purpose, so that a split and label noise of the same seed are independent.
SPLIT, SUBSET, NOISE, CALIBRATION, FOLDS, COARSE = 1, 2, 3, 4, 5, 6
LEAST_CALIBRATION = 50  # samples; see docs/measured.md


class Parts(NamedTuple):
    """Positions of the samples in ascending order: those that stay, and those that were taken out."""

    rest: Tensor
    part: Tensor


class NoisyLabels(NamedTuple):
    """`targets` with noise, the `pairs` of classes (P, 2), and a mask of the samples that were `changed`."""

    targets: Tensor
    pairs: Tensor
    changed: Tensor


def stratified(targets: Tensor, fraction: float, *, seed: int, classes: Sequence[str]) -> Parts:
    """Split samples at random, class by class.

    Args:
        targets: (n,) classes.
        fraction: Fraction of each class to take out. At least one sample of each class is taken out, and one stays; the only
            sample of a class stays, with a warning.
        seed: Seed of the split.
        classes: Names of the classes.

    Returns:
        The positions of the samples that stay (`rest`) and of those taken out (`part`).

    Example:
        >>> import torch
        >>> from labelkin.data import stratified
        >>> rest, part = stratified(torch.tensor([0, 0, 0, 0, 1, 1]), 0.5, seed=0, classes=("cat", "dog"))
        >>> len(rest), len(part)
        (3, 3)
    """
    check_number("fraction", fraction, low=0, high=1, open_low=True)
    counts = class_counts(targets, classes)
    alone = [classes[k] for k in np.flatnonzero(counts == 1).tolist()]
    if len(alone) == len(targets):
        raise InputError(
            f"expected at least two samples of some class, because one of them is held out, got one sample of each of the "
            f"{len(alone)} classes; add samples."
        )
    if alone:
        warnings.warn(
            f"{counted(len(alone), 'class', 'classes')} with one sample, which is trained on and not tested: {listed(alone)}.",
            stacklevel=2,
        )
    taken = drawn(targets, _quotas(counts, fraction, most=counts - 1), seed=seed, purpose=SPLIT)
    return Parts(torch.from_numpy(np.flatnonzero(~taken)), torch.from_numpy(np.flatnonzero(taken)))


def fold_part(targets: Tensor, folds: int, fold: int, *, seed: int, classes: Sequence[str]) -> Parts:
    """Take out one of several folds of equal size, each with its share of every class. Every sample is in one fold.

    The samples are ordered by class and, within a class, at random; they go to the folds in turn.

    Args:
        targets: (n,) classes.
        folds: The number of folds, at least 2.
        fold: The fold to take out, from 0.
        seed: Seed of the folds.
        classes: Names of the classes.

    Returns:
        The positions of the samples that stay (`rest`) and of those taken out (`part`).

    Example:
        >>> import torch
        >>> from labelkin.data import fold_part
        >>> rest, part = fold_part(torch.tensor([0, 0, 0, 1, 1, 1]), 3, 0, seed=0, classes=("cat", "dog"))
        >>> len(rest), len(part)
        (4, 2)
    """
    check_count("folds", folds, least=2)
    check_count("fold", fold, least=0)
    if fold >= folds:
        raise InputError(f"fold: expected a number from 0 to {folds - 1} for {folds} folds, got {fold}.")
    if folds > len(targets):
        raise InputError(f"folds: expected at most one per sample, {len(targets)}, got {folds}.")
    _check_two_samples(class_counts(targets, classes), classes)
    check_count("seed", seed, least=0)
    values = targets.numpy()
    order = np.lexsort((np.random.default_rng([seed, FOLDS]).random(len(values)), values))
    taken = np.zeros(len(values), dtype=np.bool_)
    taken[order[fold::folds]] = True
    return Parts(torch.from_numpy(np.flatnonzero(~taken)), torch.from_numpy(np.flatnonzero(taken)))


def subset(targets: Tensor, fraction: float, *, seed: int, classes: Sequence[str]) -> Tensor:
    """Draw a fraction of each class.

    Args:
        targets: (n,) classes.
        fraction: Fraction of each class to keep; at least one sample of each class is kept.
        seed: Seed of the draw.
        classes: Names of the classes.

    Returns:
        The positions of the samples, in ascending order.

    Example:
        >>> import torch
        >>> from labelkin.data import subset
        >>> len(subset(torch.tensor([0, 0, 0, 0, 1, 1]), 0.5, seed=0, classes=("cat", "dog")))
        3
    """
    check_number("fraction", fraction, low=0, high=1, open_low=True)
    counts = class_counts(targets, classes)
    taken = drawn(targets, _quotas(counts, fraction, most=counts), seed=seed, purpose=SUBSET)
    return torch.from_numpy(np.flatnonzero(taken))


def label_noise(targets: Tensor, share: float, *, seed: int, classes: Sequence[str]) -> NoisyLabels:
    """Pair the classes at random, and exchange labels between the two classes of each pair (paper 004, Fig. 5).

    With an odd number of classes, one class has no partner and keeps its labels. The paper exchanges a share of labels "between
    any two classes" of equal size; if the classes of a pair differ in size, each exchanges its own share.

    Args:
        targets: (n,) classes.
        share: Fraction of each class's samples that get the label of the partner.
        seed: Seed of the pairs and of the samples.
        classes: Names of the classes.

    Returns:
        The noisy `targets`, the `pairs` of classes (P, 2), and a mask (n,) of the samples that were `changed`.

    Example:
        >>> import torch
        >>> from labelkin.data import label_noise
        >>> noisy = label_noise(torch.tensor([0, 0, 1, 1]), 0.5, seed=0, classes=("cat", "dog"))
        >>> int(noisy.changed.sum()), sorted(noisy.pairs.flatten().tolist())
        (2, [0, 1])
    """
    check_number("share", share, low=0, high=1)
    check_count("seed", seed, least=0)
    counts = class_counts(targets, classes)
    shuffled = np.random.default_rng([seed, NOISE]).permutation(len(classes))
    pairs = shuffled[: len(classes) // 2 * 2].reshape(-1, 2)
    partner = np.arange(len(classes))
    partner[pairs[:, 0]], partner[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    quotas = np.where(partner == np.arange(len(classes)), 0, np.rint(share * counts).astype(np.int64))
    changed = drawn(targets, quotas, seed=seed, purpose=NOISE)
    clean = targets.numpy()
    noisy = np.where(changed, partner[clean], clean)
    return NoisyLabels(torch.from_numpy(noisy), torch.from_numpy(pairs), torch.from_numpy(changed))


def calibration_part(targets: Tensor, share: float, *, seed: int) -> Parts | None:
    """Hold out training samples to calibrate on: a share of the samples, spread evenly over the classes.

    The samples are ordered by class and, within a class, at random; every `1 / share`-th is taken, from a random start. So each
    class gives its share up to one sample, even if that is less than one. A class with one sample keeps it, and every class
    keeps one.

    Args:
        targets: (n,) classes.
        share: Share of the samples, from 0 to 0.5.
        seed: Seed of the draw.

    Returns:
        The samples that stay and those held out, or None if fewer than `LEAST_CALIBRATION` would be held out.

    >>> rest, part = calibration_part(torch.arange(10).repeat(300), 0.05, seed=0)
    >>> len(rest), len(part)
    (2850, 150)
    >>> calibration_part(torch.arange(10).repeat(30), 0.05, seed=0) is None
    True
    """
    check_number("share", share, low=0, high=0.5)
    check_count("seed", seed, least=0)
    values = targets.numpy()
    random = np.random.default_rng([seed, CALIBRATION])
    draws, start = random.random(len(values)), random.random()
    several = np.flatnonzero(np.bincount(values)[values] > 1)
    order = several[np.lexsort((draws[several], values[several]))]
    steps = np.floor(share * np.arange(len(order) + 1) + start)
    taken = np.zeros(len(values), dtype=np.bool_)
    taken[order] = np.diff(steps) > 0
    if int(taken.sum()) < LEAST_CALIBRATION:
        return None
    return Parts(torch.from_numpy(np.flatnonzero(~taken)), torch.from_numpy(np.flatnonzero(taken)))


def _check_two_samples(counts: Ints, classes: Sequence[str]) -> None:
    small = np.flatnonzero(counts < 2)
    if len(small):
        named = [f"{classes[k]} ({counts[k]})" for k in small.tolist()]
        raise InputError(f"expected at least two samples of every class to split, got fewer of {listed(named)}.")


def class_counts(targets: Tensor, classes: Sequence[str]) -> Ints:
    return np.bincount(targets.numpy(), minlength=len(classes))


def _quotas(counts: Ints, fraction: float, *, most: Ints) -> Ints:
    """Return how many samples to take of each class.

    The total is right to one sample; classes with the largest remainders get the samples lost by rounding down.
    """
    exact = fraction * counts
    quotas = np.floor(exact).astype(np.int64)
    left = round(fraction * float(counts.sum())) - int(quotas.sum())
    quotas[np.argsort(quotas - exact, kind="stable")[:left]] += 1
    clipped: Ints = np.clip(quotas, np.minimum(1, counts), most)
    return clipped


def drawn(targets: Tensor, quotas: Ints, *, seed: int, purpose: int) -> npt.NDArray[np.bool_]:
    """Return a mask of `quotas[k]` samples of each class `k`, drawn at random."""
    check_count("seed", seed, least=0)
    values = targets.numpy()
    draws = np.random.default_rng([seed, purpose, 0]).random(len(values))
    order = np.lexsort((draws, values))  # by class, then at random
    starts = np.searchsorted(values[order], np.arange(len(quotas)))
    place = np.arange(len(values)) - starts[values[order]]
    taken = np.zeros(len(values), dtype=np.bool_)
    taken[order] = place < quotas[values[order]]
    return taken


TEST_FRACTION = 0.2  # for datasets without a test split
STREAM_ABOVE = 1 << 30  # bytes of pixels: smaller image folders are read into memory once


def restricted(found: RawDataset, classes: Sequence[str]) -> RawDataset:
    """Keep only the samples of `classes`, numbered in the order given."""
    check_names("classes", classes, least=2)
    unknown = [name for name in classes if name not in found.classes]
    if unknown:
        raise InputError(f"classes: the dataset has no class {listed(unknown)}.{near(unknown[0], found.classes)}")
    place = torch.full((len(found.classes),), -1)
    place[[found.classes.index(name) for name in classes]] = torch.arange(len(classes))

    def kept(split: Split) -> Split:
        rows = split.take(torch.nonzero(place[split.targets] >= 0).flatten())
        return rows.with_targets(place[rows.targets])

    smaller = found._replace(
        classes=tuple(classes),
        train=kept(found.train),
        test=None if found.test is None else kept(found.test),
        val=None if found.val is None else kept(found.val),
        taxonomy=None if found.taxonomy is None else found.taxonomy.restrict(classes),
    )
    return restrict_partial(smaller, smaller.taxonomy)


def divided(
    name: str,
    found: RawDataset,
    *,
    seed: int,
    test_fraction: float | None,
    validation_fraction: float | None,
    folds: int | None,
    fold: int | None,
) -> RawDataset:
    """Add a test split, if there is none, and a validation split, if one is requested."""
    if (folds is None) != (fold is None):
        missing, given = ("fold", "folds") if fold is None else ("folds", "fold")
        raise InputError(f"{missing}: expected a number with {given}, got none; give both, or neither.")
    if folds is not None and test_fraction is not None:
        raise InputError(
            "test_fraction: does not apply with folds, which decide the test split; leave one of them out."
        )
    if found.test is None and found.val is not None:
        found = found._replace(
            test=found.val, val=None
        )  # as for ImageNet: without a test split, the validation split is the test set
    if len(found.classes) < 2:
        raise InputError(f"{name}: expected at least two classes, got only {listed(found.classes)}.")
    for argument, fraction, own in (
        ("test_fraction", test_fraction, found.test),
        ("folds", folds, found.test),
        ("validation_fraction", validation_fraction, found.val),
    ):
        if fraction is not None and own is not None:
            raise InputError(
                f"{argument}: does not apply to {name}, which already has this split; leave {argument} out."
            )
    if found.test is None:
        targets, fraction = found.train.targets, TEST_FRACTION if test_fraction is None else test_fraction
        if folds is not None and fold is not None:
            rest, part = fold_part(targets, folds, fold, seed=seed, classes=found.classes)
        else:
            rest, part = stratified(targets, fraction, seed=seed, classes=found.classes)
        found = found._replace(train=found.train.take(rest), test=found.train.take(part))
    if validation_fraction is not None:
        rest, part = stratified(found.train.targets, validation_fraction, seed=seed, classes=found.classes)
        found = found._replace(train=found.train.take(rest), val=found.train.take(part))
    return found


def with_fewer(found: RawDataset, fraction: float, *, seed: int) -> RawDataset:
    """Keep a fraction of every class's training samples."""
    kept = subset(found.train.targets, fraction, seed=seed, classes=found.classes)
    return found._replace(train=found.train.take(kept))


def with_calibration(found: RawDataset, share: float, *, seed: int) -> RawDataset:
    """Hold out a share of the training samples to calibrate on, unless there is a validation split."""
    parts = None if found.val is not None else calibration_part(found.train.targets, share, seed=seed)
    if parts is None:
        return found
    return found._replace(train=found.train.take(parts.rest), calibration=found.train.take(parts.part))


def with_noise(found: RawDataset, share: float, *, seed: int) -> RawDataset:
    """Exchange training labels between paired classes; the other splits keep their labels."""
    noisy = label_noise(found.train.targets, share, seed=seed, classes=found.classes)
    return found._replace(train=found.train.with_targets(noisy.targets))


def in_memory(found: RawDataset, *, stream: bool | None) -> RawDataset:
    """Read image files now, unless they are to be streamed or are too large for memory."""
    splits = (found.train, found.test, found.val, found.calibration, found.partial)
    files = [split for split in splits if isinstance(split, FileSplit)]
    large = sum(split.memory for split in files) > STREAM_ABOVE
    if large if stream is None else stream:
        return found
    read = [split.in_memory() if isinstance(split, FileSplit) else split for split in splits]
    train, test, val, calibration, partial = read
    assert train is not None
    return found._replace(train=train, test=test, val=val, calibration=calibration, partial=partial)
