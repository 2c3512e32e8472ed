"""Stratified splits, subsets and label noise, on the labels of scikit-learn's digits."""

from collections import Counter

import pytest
import torch
from sklearn.datasets import load_digits

from labelkin._checks import InputError
from labelkin.data import label_noise, stratified, subset

DIGITS = torch.from_numpy(load_digits().target).long()
NAMES = [str(k) for k in range(10)]


@pytest.mark.parametrize("fraction", [0.001, 0.1, 0.2, 0.5, 0.9, 1.0])
def test_split_is_a_partition_with_every_class_on_both_sides(fraction):
    rest, part = stratified(DIGITS, fraction, seed=3, classes=NAMES)
    assert sorted(rest.tolist() + part.tolist()) == list(range(len(DIGITS)))
    for side in (rest, part):
        assert set(DIGITS[side].tolist()) == set(range(10))
    counts, taken = Counter(DIGITS.tolist()), Counter(DIGITS[part].tolist())
    for k in range(10):
        wanted = min(max(fraction * counts[k], 1), counts[k] - 1)
        assert abs(taken[k] - wanted) <= 1


def test_split_takes_the_fraction_of_the_whole():
    # 0.29 * 100 is 28.999999999999996: rounding each class down would lose one sample of every class.
    targets = torch.arange(10).repeat_interleave(100)
    assert len(stratified(targets, 0.29, seed=0, classes=NAMES).part) == 290
    assert len(stratified(DIGITS, 0.2, seed=0, classes=NAMES).part) == round(0.2 * 1797)


def test_split_depends_on_the_seed_alone():
    first, again = (stratified(DIGITS, 0.2, seed=5, classes=NAMES).part for _ in range(2))
    other = stratified(DIGITS, 0.2, seed=6, classes=NAMES).part
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_class_too_small_to_split_is_named():
    with pytest.raises(InputError, match=r"got fewer of 'lynx \(1\)'"):
        stratified(torch.tensor([0, 0, 0, 1]), 0.5, seed=0, classes=["cat", "lynx"])


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.5, float("nan")])
def test_fractions_outside_their_range_are_refused(fraction):
    with pytest.raises(InputError, match="fraction: expected a number in"):
        stratified(DIGITS, fraction, seed=0, classes=NAMES)
    with pytest.raises(InputError, match="fraction: expected a number in"):
        subset(DIGITS, fraction, seed=0, classes=NAMES)


def test_subset_keeps_every_class_and_its_share():
    kept = subset(DIGITS, 0.1, seed=0, classes=NAMES)
    assert len(kept) == 180
    assert set(DIGITS[kept].tolist()) == set(range(10))
    assert len(subset(DIGITS, 1.0, seed=0, classes=NAMES)) == len(DIGITS)
    assert set(DIGITS[subset(DIGITS, 0.001, seed=0, classes=NAMES)].tolist()) == set(range(10))


@pytest.mark.parametrize("classes", [10, 9])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_label_noise_exchanges_a_share_between_partners(classes, share):
    clean = DIGITS[classes > DIGITS]
    noisy = label_noise(clean, share, seed=1, classes=NAMES[:classes])
    partner = {}
    for a, b in noisy.pairs.tolist():
        partner |= {a: b, b: a}
    assert len(partner) == classes // 2 * 2  # each class in one pair, one left over when the number is odd
    for k in range(classes):
        own = noisy.targets[clean == k]
        moved = own[own != k].tolist()
        assert set(moved) <= {partner.get(k)}
        assert len(moved) == (round(share * int((clean == k).sum())) if k in partner else 0)
    assert torch.equal(noisy.changed, noisy.targets != clean)


def test_label_noise_pairs_at_random():
    pairings = {tuple(map(tuple, label_noise(DIGITS, 0.1, seed=s, classes=NAMES).pairs.tolist())) for s in range(5)}
    assert len(pairings) == 5
