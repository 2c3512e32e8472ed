"""Batches: order, resumption, ranks, augmentation, balance, and files that stream."""

import warnings
from collections import Counter

import pytest
import torch

from labelkin._checks import InputError
from labelkin.data import ArraySplit, Batches, FileSplit, Flip, PadCrop, Rotation, load
from labelkin.data._readers.images import ImageForm

Image = pytest.importorskip("PIL.Image")
STEPS = (PadCrop(pad=1), Flip(), Rotation(degrees=20))


@pytest.fixture(scope="module")
def digits():
    return load("digits").train


@pytest.fixture
def files(digits, tmp_path):
    """The first 30 digits as PNG files, and as an array."""
    some = digits.take(torch.arange(30))
    paths = tuple(tmp_path / f"{i}.png" for i in range(30))
    for path, image in zip(paths, some.inputs, strict=True):
        Image.fromarray(image[0].numpy()).save(path)
    return FileSplit(paths=paths, targets=some.targets, form=ImageForm(1, 8, 8)), some


def same(left, right):
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def test_an_epoch_visits_every_sample_once_with_its_own_target(digits):
    batches = Batches(digits, batch_size=100, shuffle=True, seed=0)
    seen = list(batches.epoch(0))
    assert len(seen) == len(batches) == 15
    assert [len(batch.index) for batch in seen] == [100] * 14 + [38]
    index = torch.cat([batch.index for batch in seen])
    assert sorted(index.tolist()) == list(range(len(digits)))
    for batch in seen:
        assert torch.equal(batch.targets, digits.targets[batch.index])
        assert torch.equal(batch.inputs, digits.inputs[batch.index])
        assert bool((batch.weight == 1).all())


def test_order_without_shuffling_and_dropping_the_rest(digits):
    batches = Batches(digits, batch_size=100, drop_last=True)
    assert len(batches) == 14
    assert torch.equal(torch.cat([batch.index for batch in batches.epoch(0)]), torch.arange(1400))


def test_order_and_augmentation_depend_on_seed_and_epoch_alone(digits):
    def first(seed, epoch):
        torch.rand(3)  # whatever else draws numbers meanwhile
        return next(Batches(digits, batch_size=64, shuffle=True, seed=seed, augment=STEPS).epoch(epoch))

    assert same(first(1, 2), first(1, 2))
    assert not torch.equal(first(1, 2).index, first(1, 3).index)
    assert not torch.equal(first(1, 2).index, first(2, 2).index)


def test_the_same_sample_is_augmented_anew_each_epoch(digits):
    batches = Batches(digits, batch_size=64, augment=STEPS)
    one, two = next(batches.epoch(0)), next(batches.epoch(1))
    assert torch.equal(one.index, two.index)
    assert not torch.equal(one.inputs, two.inputs)


def test_every_step_draws_numbers_of_its_own(digits):
    alike = ArraySplit(digits.inputs[:1].expand(128, -1, -1, -1), digits.targets[:1].expand(128))
    one, two = Batches(alike, batch_size=64, augment=STEPS).epoch(0)
    assert not torch.equal(one.inputs, two.inputs)
    assert len(one.inputs.unique(dim=0)) > 32


@pytest.mark.parametrize("balanced", [None, 10])
def test_resuming_in_mid_epoch_goes_on_as_if_never_stopped(digits, balanced):
    batches = Batches(digits, batch_size=100, shuffle=True, seed=4, augment=STEPS, balanced=balanced)
    whole, tail = list(batches.epoch(3)), list(batches.epoch(3, start=9))
    assert len(tail) == len(whole) - 9
    assert all(same(a, b) for a, b in zip(whole[9:], tail, strict=True))
    assert list(batches.epoch(3, start=len(batches))) == []


@pytest.mark.parametrize("world", [2, 3, 7])
@pytest.mark.parametrize("balanced", [None, 10])
def test_ranks_together_hold_what_one_process_holds(digits, world, balanced):
    def run(rank, world):
        options = {"shuffle": True, "seed": 1, "augment": STEPS, "balanced": balanced, "rank": rank, "world": world}
        return Batches(digits, batch_size=100, **options).epoch(1)

    ranks = zip(*(run(rank, world) for rank in range(world)), strict=True)
    for alone, shares in zip(run(0, 1), ranks, strict=True):
        assert len({len(share.index) for share in shares}) == 1  # collectives need the same shape everywhere
        joined = [torch.cat(column) for column in zip(*shares, strict=True)]
        real = joined[3] == 1
        assert bool((joined[3][~real] == 0).all())
        assert same([column[real] for column in joined], alone)


def test_balanced_batches_hold_m_samples_of_each_class(digits):
    each = 8
    batches = Batches(digits, batch_size=48, balanced=each, seed=2)
    classes, samples = Counter(), Counter()
    for batch in batches.epoch(0):
        counts = Counter(batch.targets.tolist())
        assert len(counts) == 6
        assert set(counts.values()) == {each}
        assert len(set(batch.index.tolist())) == 48
        assert torch.equal(batch.targets, digits.targets[batch.index])
        classes.update(counts.keys())
        samples.update(batch.index.tolist())
    assert max(classes.values()) - min(classes.values()) <= 1
    # 29 steps use each class 17 or 18 times, 17 groups of 8 fit into a class of 138 or more: none comes twice before.
    assert max(samples.values()) <= 2
    assert not torch.equal(next(batches.epoch(0)).index, next(batches.epoch(1)).index)


def test_balanced_batches_repeat_a_small_class():
    targets = torch.tensor([0] * 50 + [1] * 5)
    split = ArraySplit(torch.arange(55, dtype=torch.float32)[:, None], targets)
    for batch in Batches(split, batch_size=8, balanced=4).epoch(0):
        assert Counter(batch.targets.tolist()) == {0: 4, 1: 4}
        assert len(set(batch.index.tolist())) == 8


@pytest.mark.long
def test_files_stream_as_the_same_samples_in_memory(files):
    from_files, in_memory = files
    options = {"batch_size": 8, "shuffle": True, "seed": 3, "augment": STEPS, "rank": 1, "world": 2}
    wanted = list(Batches(in_memory, **options).epoch(1, start=1))
    for workers in (0, 2):
        streamed = list(Batches(from_files, workers=workers, **options).epoch(1, start=1))
        assert all(same(a, b) for a, b in zip(streamed, wanted, strict=True))


def test_streaming_leaves_the_global_generator_alone(files):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    list(Batches(files[0], batch_size=8, shuffle=True).epoch(0))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_stops_the_stream_with_its_name_in_one_line(files, workers):
    split, _ = files
    split.paths[11].write_bytes(split.paths[11].read_bytes()[:60])
    with pytest.raises(InputError, match=r"the image '.*11\.png' cannot be read \(.+\); replace") as caught:
        list(Batches(split, batch_size=8, workers=workers).epoch(0))
    assert "\n" not in str(caught.value)


def test_a_broken_image_can_be_skipped_by_weight_and_is_warned_of_once(files):
    split, _ = files
    split.paths[11].write_bytes(b"not an image")
    lenient = FileSplit(paths=split.paths, targets=split.targets, form=split.form, on_error="skip")
    batches = Batches(lenient, batch_size=8)
    with pytest.warns(UserWarning, match=r"1 image.* skipped: '.*11\.png'"):
        seen = list(batches.epoch(0))
    weight = torch.cat([batch.weight for batch in seen])
    assert torch.nonzero(weight == 0).flatten().tolist() == [11]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(batches.epoch(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size: expected a whole number of at least 1"),
        ({"batch_size": 2000, "drop_last": True}, "batch_size: expected at most 1438"),
        ({"batch_size": 10, "rank": 2, "world": 2}, "rank: expected 0 to 1"),
        ({"batch_size": 10, "balanced": 3}, "expected a multiple of 3 up to 30"),
        ({"batch_size": 40, "balanced": 2}, "expected a multiple of 2 up to 20"),
        ({"batch_size": 800, "balanced": 200}, "at least 200 samples of every class"),
        ({"batch_size": 10, "seed": -1}, "seed: expected a whole number"),
    ],
)
def test_bad_options(digits, options, message):
    with pytest.raises(InputError, match=message):
        Batches(digits, **options)


def test_a_table_cannot_be_augmented():
    table = ArraySplit(torch.zeros(4, 3), torch.tensor([0, 1, 0, 1]))
    with pytest.raises(
        InputError, match=r"augment: expected samples that are images \(C, H, W\), got samples of shape \(3,\)"
    ):
        Batches(table, batch_size=2, augment=Flip())


def test_a_start_after_the_end_is_refused(digits):
    with pytest.raises(InputError, match="start: expected a step from 0 to 15, got 16"):
        next(Batches(digits, batch_size=100).epoch(0, start=16))
