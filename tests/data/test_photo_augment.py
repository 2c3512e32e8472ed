"""Augmentations of photos and mixtures of samples."""

import numpy as np
import pytest
import torch
from scipy.stats import beta

from labelkin import data
from labelkin._checks import InputError
from labelkin.data import (
    ArraySplit,
    Batches,
    ColorJitter,
    CutMix,
    Mixup,
    Normalize,
    RandAugment,
    RandomErasing,
    RandomResizedCrop,
    VerticalFlip,
)
from labelkin.runs import RunSpec, train_run
from labelkin.training import Settings
from labelkin.training._settings import augmentations

PHOTO_STEPS = [RandomResizedCrop(0.3), ColorJitter(0.4), RandAugment(9), RandomErasing(0.5)]


def photos(count: int = 6, channels: int = 3) -> torch.Tensor:
    """Smooth images of bytes."""
    ramp = torch.linspace(0, 200, 16).view(1, 1, 16, 1) + torch.linspace(0, 50, 16).view(1, 1, 1, 16)
    return (
        (ramp + torch.arange(float(count)).view(-1, 1, 1, 1)).expand(-1, channels, -1, -1).to(torch.uint8).contiguous()
    )


def numbers(step, count: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, step.numbers, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("step", PHOTO_STEPS, ids=lambda step: type(step).__name__)
def test_a_photo_step_is_a_function_of_its_numbers(step):
    pytest.importorskip("kornia")
    images = photos()
    state = torch.get_rng_state()
    first = step(images, numbers(step))
    assert torch.equal(torch.get_rng_state(), state)  # the generators of torch are left alone
    torch.rand(3)
    assert torch.equal(step(images, numbers(step)), first)
    others = [step(images, numbers(step, seed=seed)) for seed in range(1, 6)]
    assert any(not torch.equal(other, first) for other in others)
    assert first.dtype == torch.uint8
    assert first.shape == images.shape
    assert torch.equal(images, photos())


@pytest.mark.parametrize("step", [RandomResizedCrop(0.3), RandomErasing(1.0)], ids=lambda step: type(step).__name__)
def test_each_image_is_changed_in_its_own_way(step):
    pytest.importorskip("kornia")
    same = photos(1).expand(6, -1, -1, -1).contiguous()
    changed = step(same, numbers(step))
    assert len({image.numpy().tobytes() for image in changed}) > 1


def test_gray_images_have_no_colors_to_change():
    with pytest.raises(InputError, match=r"ColorJitter expects images of bytes .* with 3 channels, got 1 channel"):
        ColorJitter()(photos(channels=1), torch.rand(6, 1))
    pytest.importorskip("kornia")
    assert RandomErasing(1.0)(photos(channels=1), torch.rand(6, 1)).shape == (6, 1, 16, 16)


def test_numbers_that_are_no_pixels_are_refused():
    with pytest.raises(InputError, match=r"expects images of bytes \(uint8\)"):
        RandomErasing()(photos().float(), torch.rand(6, 1))


def test_a_vertical_flip_turns_images_upside_down():
    images = photos(2)
    flipped = VerticalFlip()(images, torch.tensor([[0.4], [0.6]]))
    assert torch.equal(flipped[0], images[0].flip(-2))
    assert torch.equal(flipped[1], images[1])


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
def test_shares_come_from_the_beta_distribution(alpha):
    draws = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    shares = Mixup(alpha)._share(draws)
    expected = torch.tensor(beta(alpha, alpha).ppf(draws.numpy()), dtype=torch.float32)
    assert (
        (shares - expected).abs() < 2e-3
    ).float().mean() > 0.999  # in the outermost of 4,096 steps the curve is steep
    assert (shares - expected).abs().max() < 0.05


def mixed_by_loop(kind: str, images, weight, uniform, alpha):
    """Mixup and cutmix, sample by sample and pixel by pixel."""
    partner = sorted(range(len(images)), key=lambda i: float(uniform[i, 0]))
    out, shares = images.clone(), []
    for i, j in enumerate(partner):
        share = float(beta(alpha, alpha).ppf(float(uniform[i, 1])))
        if weight[i] == 0 or weight[j] == 0:
            share = 1.0
        if kind == "mixup":
            out[i] = share * images[i] + (1 - share) * images[j]
            shares.append(share)
            continue
        height, width = images.shape[-2:]
        high, wide = round((1 - share) ** 0.5 * height), round((1 - share) ** 0.5 * width)
        top, left = round(float(uniform[i, 2]) * height - high / 2), round(float(uniform[i, 3]) * width - wide / 2)
        replaced = 0
        for y in range(max(top, 0), min(top + high, height)):
            for x in range(max(left, 0), min(left + wide, width)):
                out[i, :, y, x] = images[j, :, y, x]
                replaced += 1
        shares.append(1 - replaced / (height * width))
    return out, partner, torch.tensor(shares)


@pytest.mark.parametrize(("kind", "step"), [("mixup", Mixup(0.7)), ("cutmix", CutMix(0.7))])
def test_mixtures_follow_their_loop(kind, step):
    images = torch.randn(12, 3, 9, 14, generator=torch.Generator().manual_seed(1))
    weight = torch.ones(12)
    weight[[3, 7]] = 0
    uniform = numbers(step, 12)
    found = step(images, weight, uniform)
    expected, partner, shares = mixed_by_loop(kind, images, weight, uniform, 0.7)
    assert found.partner.tolist() == partner
    assert torch.allclose(found.inputs, expected, atol=5e-3 if kind == "mixup" else 0)
    assert torch.allclose(found.share, shares, atol=2e-3)
    classes = torch.arange(12) % 5
    targets = found.targets(classes, 5)
    for i, j in enumerate(partner):
        by_hand = torch.zeros(5)
        by_hand[classes[i]] += found.share[i]
        by_hand[classes[j]] += 1 - found.share[i]
        assert torch.allclose(targets[i], by_hand)


def test_batches_mix_after_normalization_and_reproducibly():
    split = ArraySplit(photos(10), torch.arange(10) % 3)
    normalize = Normalize([0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    made = [
        next(Batches(split, batch_size=10, seed=3, normalize=normalize, mix=Mixup(1.0), classes=3).epoch(epoch))
        for epoch in (0, 0, 1)
    ]
    assert torch.equal(made[0].inputs, made[1].inputs)
    assert not torch.equal(made[0].inputs, made[2].inputs)
    assert made[0].targets.shape == (10, 3)
    assert torch.allclose(made[0].targets.sum(1), torch.ones(10))
    plain = normalize(split.inputs)
    for row, target in zip(made[0].inputs, made[0].targets, strict=True):
        parts = [(i, j) for i in range(10) for j in range(10)]
        assert any(_lies_between(row, plain[i], plain[j]) for i, j in parts)
        assert (target >= 0).all()


def _lies_between(row, first, second) -> bool:
    if torch.equal(first, second):
        return torch.allclose(row, first, atol=1e-5)
    gap = second - first
    share = ((row - first) * gap).sum() / gap.square().sum()
    return bool(-1e-4 <= share <= 1 + 1e-4) and torch.allclose(row, first + share * gap, atol=1e-4)


def test_mixing_needs_the_number_of_classes():
    with pytest.raises(InputError, match="classes: expected the number of classes"):
        Batches(ArraySplit(photos(4), torch.arange(4)), batch_size=2, mix=Mixup())


def test_names_stand_for_steps():
    chosen = augmentations(["imagenet", "random-erasing:0.1", "cutmix:0.5"])
    assert [type(step).__name__ for step in chosen.steps] == [
        "RandomResizedCrop",
        "Flip",
        "ColorJitter",
        "RandomErasing",
    ]
    assert chosen.steps[-1] == RandomErasing(0.1)
    assert chosen.mix == CutMix(0.5)
    with pytest.raises(InputError, match="expected one of mixup and cutmix, got mixup, cutmix:1"):
        augmentations(["mixup", "cutmix:1"])
    with pytest.raises(InputError, match="Did you mean 'color-jitter'"):
        augmentations(["colour-jitter"])
    with pytest.raises(InputError, match="magnitude"):
        augmentations(["rand-augment:31"])


@pytest.mark.long
@pytest.mark.parametrize("names", [("mixup:1",), ("cutmix",)])
def test_a_run_trains_on_mixtures(names):
    """Mixed targets raise the training loss, and an objective that takes class positions refuses them."""
    spec = RunSpec(settings=Settings(epochs=2, augment=names), data_options={"subset": 0.3})
    plain = RunSpec(settings=Settings(epochs=2), data_options={"subset": 0.3})
    assert train_run(spec).history[-1]["loss"] > train_run(plain).history[-1]["loss"] + 0.02
    refused = RunSpec(objective="label-embedding", settings=Settings(augment=names), data_options={"subset": 0.3})
    with pytest.raises(InputError, match=r"turns targets into class probabilities.*LabelEmbedding"):
        train_run(refused)


@pytest.mark.long
def test_a_run_trains_on_augmented_photos(tmp_path):
    pytest.importorskip("kornia")
    np.savez(tmp_path / "set.npz", x=photos(40).numpy(), y=np.arange(40) % 2)
    settings = Settings(epochs=1, batch_size=20, augment=("imagenet", "rand-augment", "random-erasing"))
    first, again = (
        train_run(RunSpec(data=str(tmp_path / "set.npz"), backbone="tiny-cnn", settings=settings)) for _ in "ab"
    )
    assert first.history[-1]["loss"] == again.history[-1]["loss"]
    assert data.AUGMENTATIONS.keys() >= {"rand-augment", "random-erasing"}
