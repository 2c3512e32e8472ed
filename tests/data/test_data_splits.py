"""Stratified splits, subsets and label noise, on the labels of scikit-learn's digits."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from labelkin._checks import InputError
from labelkin.data import calibration_part, fold_part, label_noise, load, stratified, subset

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


def test_nothing_can_be_held_out_of_classes_of_one_sample():
    with pytest.raises(InputError, match=r"at least two samples of some class.*one sample of each of the 3 classes"):
        stratified(torch.tensor([2, 0, 1]), 0.2, seed=0, classes=NAMES[:3])


def test_split_depends_on_the_seed_alone():
    first, again = (stratified(DIGITS, 0.2, seed=5, classes=NAMES).part for _ in range(2))
    other = stratified(DIGITS, 0.2, seed=6, classes=NAMES).part
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_class_too_small_to_split_is_named():
    with pytest.warns(UserWarning, match="1 class with one sample, .* not tested: 'lynx'"):
        rest, part = stratified(torch.tensor([0, 0, 0, 1]), 0.5, seed=0, classes=["cat", "lynx"])
    assert 3 in rest
    assert len(part) == 2
    with pytest.raises(InputError, match=r"got fewer of 'lynx \(1\)'"):
        fold_part(torch.tensor([0, 0, 0, 1]), 2, 0, seed=0, classes=["cat", "lynx"])


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


@pytest.mark.parametrize("share", [0.07, 0.1, 0.33, 0.5])
def test_the_calibration_part_takes_its_share_of_every_class_and_leaves_one(share):
    rest, part = calibration_part(DIGITS, share, seed=0)
    assert sorted(rest.tolist() + part.tolist()) == list(range(len(DIGITS)))
    assert abs(len(part) - share * len(DIGITS)) < 1
    counts, taken = Counter(DIGITS.tolist()), Counter(DIGITS[part].tolist())
    assert all(abs(taken[k] - share * counts[k]) < 1 for k in range(10))
    assert torch.equal(part, calibration_part(DIGITS, share, seed=0).part)
    assert not torch.equal(part, calibration_part(DIGITS, share, seed=1).part)


def test_classes_of_one_or_two_samples_keep_one_for_training():
    targets = torch.cat([torch.arange(300), torch.arange(100, 300)])  # 100 classes of one sample, 200 of two
    rest, part = calibration_part(targets, 0.5, seed=0)
    assert len(part) == 200
    assert set(targets[rest].tolist()) == set(range(300))
    assert int(targets[part].min()) == 100


def test_small_classes_are_drawn_evenly_not_from_the_first_on():
    targets = torch.arange(500).repeat(4)  # a fifth of a sample of each class
    taken = torch.cat([targets[calibration_part(targets, 0.05, seed=seed).part] for seed in range(40)])
    halves = torch.bincount(taken // 250, minlength=2)
    assert len(taken) == 40 * 100
    assert halves.tolist() == [2000, 2000]
    assert len(taken.unique()) > 490


def test_too_few_samples_are_not_held_out():
    assert calibration_part(torch.arange(10).repeat(99), 0.05, seed=0) is None
    assert len(calibration_part(torch.arange(10).repeat(100), 0.05, seed=0).part) == 50
    with pytest.raises(InputError, match="share: expected a number in"):
        calibration_part(DIGITS, 0.6, seed=0)


def test_held_out_samples_leave_the_training_split_and_have_clean_labels():
    whole = load("digits")
    found = load("digits", calibration=0.1)
    assert found.calibration is not None
    assert list(found.splits) == ["train", "calibration", "test"]
    assert len(found.train) + len(found.calibration) == len(whole.train)
    assert torch.equal(found.test.inputs, whole.test.inputs)
    rows = {tuple(row) for row in found.train.inputs.flatten(1).tolist()}
    shared = sum(tuple(row) in rows for row in found.calibration.inputs.flatten(1).tolist())
    assert shared == 0
    noisy = load("digits", calibration=0.1, label_noise=0.4)
    assert torch.equal(noisy.calibration.targets, found.calibration.targets)
    assert not torch.equal(noisy.train.targets, found.train.targets)
    fewer = load("digits", calibration=0.4, subset=0.5)
    assert len(fewer.calibration) == pytest.approx(0.4 * 0.5 * len(whole.train), abs=2)


def test_a_validation_split_takes_the_place_of_the_calibration_part():
    found = load("digits", calibration=0.1, validation_fraction=0.1)
    assert found.calibration is None
    assert len(found.train) == len(load("digits", validation_fraction=0.1).train)


@pytest.mark.parametrize("folds", [2, 5, 10])
def test_every_sample_is_in_one_fold_and_every_fold_has_its_share_of_every_class(folds: int):
    parts = [fold_part(DIGITS, folds, fold, seed=1, classes=NAMES) for fold in range(folds)]
    assert sorted(i for _, part in parts for i in part.tolist()) == list(range(len(DIGITS)))
    counts = Counter(DIGITS.tolist())
    for rest, part in parts:
        assert sorted(rest.tolist() + part.tolist()) == list(range(len(DIGITS)))
        assert abs(len(part) - len(DIGITS) / folds) < 1
        for k, taken in Counter(DIGITS[part].tolist()).items():
            assert abs(taken - counts[k] / folds) <= 1


def test_folds_depend_on_the_seed_alone():
    first, again, other = (fold_part(DIGITS, 5, 2, seed=seed, classes=NAMES).part for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The digits without a test split of their own."""
    np.savez(tmp_path / "digits.npz", x=load_digits().data, y=load_digits().target)
    return tmp_path / "digits.npz"


def test_a_fold_is_the_test_split(table: Path):
    whole = load(table, folds=4, fold=1, seed=2)
    assert (len(whole.train), len(whole.test)) == (1348, 449)
    assert len(load(table, folds=4, fold=0, seed=2).test) == 450
    held = load(table, folds=4, fold=1, seed=2, validation_fraction=0.1)
    assert torch.equal(held.test.targets, whole.test.targets)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"folds": 5}, "fold: expected a number with folds"),
        ({"fold": 0}, "folds: expected a number with fold"),
        ({"folds": 5, "fold": 5}, "fold: expected a number from 0 to 4 for 5 folds, got 5"),
        ({"folds": 1, "fold": 0}, "folds: expected"),
        ({"folds": 9999, "fold": 0}, "folds: expected at most one per sample"),
        ({"folds": 5, "fold": 0, "test_fraction": 0.2}, "test_fraction: does not apply with folds"),
    ],
)
def test_folds_that_make_no_sense_are_refused(given: dict, message: str, table: Path):
    with pytest.raises(InputError, match=message):
        load(table, **given)


def test_data_with_a_test_split_have_no_folds():
    with pytest.raises(InputError, match="folds: does not apply to digits, which already has this split"):
        load("digits", folds=5, fold=0)
