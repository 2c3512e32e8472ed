"""Augmentations against numpy and scipy, one sample at a time, on real digits."""

import numpy as np
import pytest
import torch
from scipy import ndimage

import labelkin.data
from labelkin import metrics
from labelkin._checks import InputError
from labelkin.data import AUGMENTATIONS, Batches, Chain, Flip, Normalize, PadCrop, Rotation, Shift, augment, load

PAD_MODES = {"zero": "constant", "reflect": "reflect", "edge": "edge"}


@pytest.fixture(scope="module")
def images():
    grey = load("digits").train.inputs[:24]  # (24, 1, 8, 8)
    return torch.cat([grey, grey.flip(-1), 240 - grey], dim=1)[..., :6]  # oblong, three channels that differ


def cut_out(sample, reach, place, fill):
    """A numpy pad and a slice: `place` counts from the top left of the padded image."""
    padded = np.pad(sample, [(0, 0), (reach[0],) * 2, (reach[1],) * 2], mode=PAD_MODES[fill])
    return padded[:, place[0] : place[0] + sample.shape[1], place[1] : place[1] + sample.shape[2]]


@pytest.mark.parametrize("fill", PAD_MODES)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_pad_crop_and_shift_cut_each_sample_where_its_numbers_say(images, fill, dtype):
    images = images.to(dtype)
    uniform = torch.rand(len(images), 2, generator=torch.Generator().manual_seed(0))
    for step, reach in ((PadCrop(pad=3, fill=fill), (3, 3)), (Shift(fraction=0.2, fill=fill), (2, 1))):
        moved = step(images, uniform)
        assert moved.dtype == dtype
        for sample, numbers, result in zip(images.numpy(), uniform.tolist(), moved.numpy(), strict=True):
            place = [int(u * (2 * r + 1)) for u, r in zip(numbers, reach, strict=True)]
            np.testing.assert_array_equal(result, cut_out(sample, reach, place, fill))


def test_all_places_are_reached_equally_often(images):
    marked = torch.zeros(20_000, 1, 8, 8, dtype=torch.uint8)
    marked[:, :, 4, 4] = 1
    moved = augment(marked, PadCrop(pad=1), generator=torch.Generator().manual_seed(0))
    counts = moved.sum(0)[0, 3:6, 3:6]
    assert int(counts.sum()) == 20_000
    assert bool(((counts / 20_000 - 1 / 9).abs() < 0.01).all())


def test_the_largest_number_below_one_stays_inside(images):
    largest = torch.full((len(images), 2), 1 - 2**-24)
    for pad in range(1, 5):
        last = PadCrop(pad=pad)(images, largest)
        np.testing.assert_array_equal(last[0], cut_out(images[0].numpy(), (pad, pad), (2 * pad, 2 * pad), "zero"))


def test_flip_mirrors_below_one_half(images):
    uniform = torch.linspace(0, 0.99, len(images))[:, None]
    flipped = Flip()(images, uniform)
    for sample, number, result in zip(images.numpy(), uniform[:, 0].tolist(), flipped.numpy(), strict=True):
        np.testing.assert_array_equal(result, sample[:, :, ::-1] if number < 0.5 else sample)


def test_rotation_turns_as_scipy_does_on_an_oblong_image(images):
    values = images.float()
    uniform = torch.rand(len(images), 1, generator=torch.Generator().manual_seed(0))
    turned = Rotation(degrees=90)(values, uniform)
    for sample, number, result in zip(values.numpy(), uniform[:, 0].tolist(), turned.numpy(), strict=True):
        # "grid-constant" fades to zero over half a pixel at the border, as grid_sample does.
        wanted = ndimage.rotate(
            sample, (2 * number - 1) * 90, axes=(1, 2), reshape=False, order=1, mode="grid-constant"
        )
        np.testing.assert_allclose(result, wanted, atol=0.02)


def test_rotation_by_right_angles_is_exact_and_keeps_bytes(images):
    square = images[..., :6, :]
    for uniform, quarter_turns in ((0.0, -1), (0.5, 0), (1.0, 1)):
        result = Rotation(degrees=90)(square, torch.full((len(square), 1), uniform))
        assert result.dtype == torch.uint8
        assert torch.equal(result, torch.rot90(square, quarter_turns, (2, 3)))
    half = Rotation(degrees=180)(images, torch.ones(len(images), 1))
    assert torch.equal(half, images.flip(-1).flip(-2))


def test_chain_gives_each_step_its_own_numbers(images):
    uniform = torch.rand(len(images), 3, generator=torch.Generator().manual_seed(0))
    chained = Chain((PadCrop(pad=2), Flip()))
    assert chained.numbers == 3
    wanted = Flip()(PadCrop(pad=2)(images, uniform[:, :2]), uniform[:, 2:])
    assert torch.equal(chained(images, uniform), wanted)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_same_generator_same_images(images, name):
    step = AUGMENTATIONS[name]()
    one, same, other = (augment(images, step, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_the_old_spelling_works_with_a_warning():
    data = load("digits")
    with pytest.warns(DeprecationWarning, match="use labelkin.data.Normalize"):
        assert labelkin.data.Normalise is Normalize
    with pytest.warns(DeprecationWarning, match=r"use Dataset\.normalize"):
        assert data.normalise is data.normalize
    with pytest.warns(DeprecationWarning, match="normalise= is deprecated; use normalize= instead"):
        assert Batches(data.train, batch_size=8, normalise=data.normalize).normalize is not None
    confusion, distances = torch.tensor([[3, 1], [2, 4]]), torch.tensor([[0.0, 2.0], [2.0, 0.0]])
    for metric in (metrics.weighted_counts, metrics.weighted_accuracy, metrics.weighted_f1):
        with pytest.warns(DeprecationWarning, match="normalise= is deprecated"):
            assert str(metric(confusion, distances, normalise=True)) == str(
                metric(confusion, distances, normalize=True)
            )


def test_normalize_matches_numpy(images):
    mean, std = [0.1, 0.2, 0.3], [0.5, 1.0, 2.0]
    wanted = (images.numpy() / 255 - np.reshape(mean, (1, 3, 1, 1))) / np.reshape(std, (1, 3, 1, 1))
    np.testing.assert_allclose(Normalize(mean, std)(images), wanted, atol=1e-6)
    table = torch.randn(5, 3)
    np.testing.assert_allclose(Normalize(mean, std)(table), (table.numpy() - mean) / std, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PadCrop(pad=0), "pad: expected a whole number of at least 1"),
        (lambda: PadCrop(fill="mirror"), "fill: expected one of 'zero', 'reflect', 'edge', got 'mirror'"),
        (lambda: Shift(fraction=0.0), "fraction: expected a number in"),
        (
            lambda: Shift(fraction=0.01)(torch.zeros(1, 1, 8, 8), torch.zeros(1, 2)),
            "of 8 x 8 pixels is less than half a pixel",
        ),
        (lambda: Rotation(degrees=200), "degrees: expected a number in"),
        (lambda: Normalize([0.0], [0.0]), "std: expected one positive number"),
        (lambda: PadCrop(pad=8, fill="reflect")(torch.zeros(1, 1, 8, 8), torch.zeros(1, 2)), "at most 7, got 8"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_normalizing_leaves_the_images_as_they_were(dtype):
    images = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5).to(dtype)
    before = images.clone()
    mean, std = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.6, 0.7])
    found = Normalize(mean, std)(images)
    values = before / 255 if dtype == torch.uint8 else before
    assert torch.equal(found, (values - mean[:, None, None]) / std[:, None, None])
    assert torch.equal(images, before)
