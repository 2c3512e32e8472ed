"""From what the files hold to what a run trains on: which classes, which split, how much of it, how noisy."""

from collections.abc import Sequence

import torch

from labelkin._checks import InputError, check_names, listed, near
from labelkin.data.dataset import FileSplit, Split
from labelkin.data.read import Read
from labelkin.data.splits import label_noise, stratified, subset

TEST_FRACTION = 0.2  # where a set comes without a test split
STREAM_ABOVE = 1 << 30  # bytes of pixels: smaller image folders are read into memory once


def restricted(found: Read, classes: Sequence[str]) -> Read:
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
    name: str, found: Read, *, seed: int, test_fraction: float | None, validation_fraction: float | None
) -> Read:
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


def with_fewer(found: Read, fraction: float, *, seed: int) -> Read:
    """`fraction` of every class's training samples."""
    kept = subset(found.train.targets, fraction, seed=seed, classes=found.classes)
    return found._replace(train=found.train.take(kept))


def with_noise(found: Read, share: float, *, seed: int) -> Read:
    """Training labels exchanged between paired classes; what is validated and tested on stays true."""
    noisy = label_noise(found.train.targets, share, seed=seed, classes=found.classes)
    return found._replace(train=found.train.with_targets(noisy.targets))


def in_memory(found: Read, *, stream: bool | None) -> Read:
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
