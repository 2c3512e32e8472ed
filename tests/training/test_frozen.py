"""Frozen features: the head that trains on them, the whole model that comes of it, and the cache."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import labelkin
from labelkin import data
from labelkin._checks import InputError
from labelkin.data import ArraySplit, Dataset, Normalize, content_digests
from labelkin.data._content import file_digests
from labelkin.models import split_residual
from labelkin.runs import RunSpec, run_id
from labelkin.training import Settings
from labelkin.training import _frozen as frozen
from labelkin.training._frozen import frozen_dataset

CPU = torch.device("cpu")
NAME = "efficientnet-lite0"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("LABELKIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


def files(cache):
    return set(cache.rglob("*.safetensors"))


@pytest.fixture
def digits():
    return data.load("digits", subset=0.1)


def net(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten(), nn.Linear(144, 7))


@pytest.mark.long
def test_features_are_those_of_the_backbone_in_evaluation_mode(digits):
    backbone = net()
    found = frozen_dataset(digits, backbone, device=CPU)
    assert backbone.training  # left as it was
    with torch.no_grad():
        for part, split in digits.splits.items():
            expected = torch.cat([backbone.eval()(digits.normalize(x[None])) for x in split.inputs])
            assert torch.allclose(found.splits[part].inputs, expected, atol=1e-5)
            assert torch.equal(found.splits[part].targets, split.targets)
    features = found.train.inputs
    assert torch.equal(found.normalize(features), features)  # the whole model has no normalization in between


def test_slow_features_are_announced_and_counted(digits, monkeypatch):
    noted: list[str] = []
    frozen_dataset(digits, net(), device=CPU, note=noted.append)
    assert [note.partition(";")[0] for note in noted] == [
        f"computing the features of {len(split):,} samples ({part})" for part, split in digits.splits.items()
    ]
    seconds = iter(range(0, 10**6, 6))
    monkeypatch.setattr(frozen, "monotonic", lambda: next(seconds))
    noted.clear()
    frozen_dataset(digits, net(1), device=CPU, note=noted.append)
    total = len(digits.train)
    counts = [note for note in noted if note.endswith(f" of {total} samples")]
    assert counts[:2] == [f"computed the features of {count} of {total} samples" for count in (32, 64)]


def test_features_are_computed_once(digits, cache, monkeypatch):
    first = frozen_dataset(digits, net(), device=CPU)
    assert len(files(cache)) == len(digits.splits)
    monkeypatch.setattr(frozen, "_computed", None)
    again = frozen_dataset(data.load("digits", subset=0.1), net(), device=CPU)
    assert torch.equal(first.train.inputs, again.train.inputs)


@pytest.mark.parametrize("change", ["weights", "statistics", "layers", "samples", "normalization"])
def test_features_are_known_by_content(digits, cache, change):
    frozen_dataset(digits, net(), device=CPU)
    before = files(cache)
    other, backbone = digits, net()
    if change == "weights":
        backbone = net(1)
    elif change == "statistics":
        backbone[1].running_mean[0] += 1
    elif change == "layers":
        backbone[2] = nn.ReLU()
    elif change == "samples":
        inputs = digits.train.inputs.clone()
        inputs[0, 0, 0, 0] += 1
        other = dataclasses.replace(
            digits, train=ArraySplit(inputs, digits.train.targets), normalization=digits.normalize
        )
    else:
        other = dataclasses.replace(digits, normalization=Normalize([0.0], [1.0]))
    frozen_dataset(other, backbone, device=CPU)
    assert len(files(cache) - before) == (1 if change == "samples" else len(digits.splits))


def test_other_targets_share_the_features(digits, cache):
    frozen_dataset(digits, net(), device=CPU)
    before = files(cache)
    targets = digits.train.targets.flip(0)
    found = frozen_dataset(dataclasses.replace(digits, train=digits.train.with_targets(targets)), net(), device=CPU)
    assert files(cache) == before
    assert torch.equal(found.train.targets, targets)


def test_damaged_features_are_computed_again(digits, cache):
    first = frozen_dataset(digits, net(), device=CPU)
    for file in files(cache):
        file.write_bytes(file.read_bytes()[:100])
    assert torch.equal(frozen_dataset(digits, net(), device=CPU).train.inputs, first.train.inputs)


def test_the_cache_forgets_the_features_that_were_not_used_for_the_longest_time(digits, cache, monkeypatch):
    frozen_dataset(digits, net(), device=CPU)
    old = files(cache)
    monkeypatch.setattr(frozen, "MOST_BYTES", sum(file.stat().st_size for file in old))
    frozen_dataset(digits, net(1), device=CPU)
    assert not old & files(cache)
    assert sum(file.stat().st_size for file in files(cache)) <= frozen.MOST_BYTES


def test_an_unreadable_image_has_no_features(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    for name in ("a", "b"):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(6):
            Image.fromarray(pixels + i).save(tmp_path / "set" / name / f"{i}.png")
    (tmp_path / "set" / "a" / "1.png").write_bytes(b"no image")
    dataset = data.load(tmp_path / "set", stream=True, on_error="skip", test_fraction=0.5)
    given = dataclasses.replace(dataset, normalization=Normalize([0.5], [0.5]))  # which reads no images
    with pytest.warns(UserWarning, match="could not be read"):
        found = frozen_dataset(given, net(), device=CPU)
    assert sum(map(len, found.splits.values())) == 11


def test_the_hashes_of_files_are_kept_until_a_file_changes(tmp_path, monkeypatch):
    files = [tmp_path / name for name in ("a", "b", "missing")]
    files[0].write_bytes(b"first")
    files[1].write_bytes(b"second")
    first = file_digests(files)
    read = []
    monkeypatch.setattr("labelkin.data._content._digest", lambda path: read.append(path) or "new")
    assert file_digests(files) == first
    assert read == []
    files[1].write_bytes(b"changed")
    assert file_digests(files) == [first[0], "new", ""]
    assert read == [str(files[1])]


def test_the_digest_of_a_sample_is_that_of_its_values():
    values, targets = torch.arange(12.0).view(4, 3), torch.tensor([0, 1, 0, 1])
    names = content_digests(ArraySplit(values, targets))
    assert len(set(names)) == 4
    assert content_digests(ArraySplit(values.flip(0), targets)) == names[::-1]
    assert not set(content_digests(ArraySplit(values.double(), targets))) & set(names)
    assert content_digests(ArraySplit(torch.zeros(1, 4), targets[:1])) != content_digests(
        ArraySplit(torch.zeros(1, 1, 2, 2), targets[:1])
    )


def test_other_splits_of_the_same_samples_share_the_features(digits, cache, monkeypatch):
    """Folds, validation splits and partial labels leave out or reorder samples; none is computed twice."""
    whole = frozen_dataset(digits, net(), device=CPU)
    monkeypatch.setattr(frozen, "_computed", None)
    order = torch.randperm(len(digits.train), generator=torch.Generator().manual_seed(0))
    rest, part = order[40:], order[:20]  # some are left out
    other = dataclasses.replace(
        digits, train=digits.train.take(rest), val=digits.train.take(part), normalization=digits.normalize
    )
    found = frozen_dataset(other, net(), device=CPU)
    assert torch.equal(found.train.inputs, whole.train.inputs[rest])
    assert torch.equal(found.val.inputs, whole.train.inputs[part])


def test_a_sample_that_occurs_twice_is_computed_once(digits, cache):
    twice = torch.tensor([3, 0, 3, 1])
    repeated = dataclasses.replace(digits, test=digits.test.take(twice), normalization=digits.normalize)
    found = frozen_dataset(repeated, net(), device=CPU)
    assert torch.equal(found.test.inputs[0], found.test.inputs[2])
    kept = [frozen._read(file)[0] for file in files(cache)]
    names = [name for own in kept for name in own]
    assert len(names) == len(set(names))


def test_an_interrupted_computation_continues_where_it_stopped(digits, cache, monkeypatch):
    monkeypatch.setattr(frozen, "PART", 32)
    expected = frozen_dataset(digits, net(), device=CPU).train.inputs
    for file in sorted(files(cache), key=lambda file: -file.stat().st_size)[1:]:
        file.unlink()
    notes = []
    again = frozen_dataset(digits, net(), device=CPU, note=notes.append)
    assert torch.equal(again.train.inputs, expected)
    left = sum(int(note.split()[4].replace(",", "")) for note in notes)
    assert left == len(digits.train) + len(digits.test) - 32


def test_features_do_not_depend_on_the_other_samples_of_their_batch(digits, tmp_path, monkeypatch):
    """A batch that is not full is filled up, because the bits of a product of matrices may depend on its size."""
    expected = frozen_dataset(digits, net(), device=CPU).train.inputs
    monkeypatch.setenv("LABELKIN_CACHE", str(tmp_path / "other"))
    some = torch.arange(1, 144, 2)
    few = dataclasses.replace(digits, train=digits.train.take(some), normalization=digits.normalize)
    sizes = []
    backbone = net()
    backbone.register_forward_hook(lambda module, inputs, outputs: sizes.append(len(outputs)))
    assert torch.equal(frozen_dataset(few, backbone, device=CPU).train.inputs, expected[some])
    assert set(sizes) == {frozen.CPU_BATCH_OF_SMALL}


def test_large_images_come_in_small_batches():
    prepare = labelkin.models.Prepare(labelkin.models.preprocessing(NAME), (3, 32, 32))
    assert frozen.cpu_batch(nn.Sequential(prepare), (3, 32, 32)) == frozen.CPU_BATCH
    assert frozen.cpu_batch(net(), (3, 32, 32)) == frozen.CPU_BATCH_OF_SMALL
    assert frozen.cpu_batch(net(), (3, 32, 200)) == frozen.CPU_BATCH


def test_the_backbone_keeps_the_order_of_its_values(digits):
    backbone = net()
    frozen_dataset(digits, backbone, device=CPU)
    assert backbone[0].weight.is_contiguous()


@pytest.fixture
def eight(tmp_path):
    """Eight gray images of two brightnesses."""
    dark = np.arange(40) % 2
    noise = np.random.default_rng(0).integers(0, 50, (40, 1, 16, 16))
    np.savez(tmp_path / "eight.npz", x=(noise + 150 * dark[:, None, None, None]).astype(np.uint8), y=dark)
    return tmp_path / "eight.npz"


@pytest.mark.long
def test_a_frozen_run_is_a_whole_model(eight, tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch")
    run = labelkin.train(eight, backbone=NAME, freeze=True, out=tmp_path / "run", epochs=20, lr=0.01, calibration=0)
    assert run.metrics["accuracy"] == 1
    model = labelkin.load_run(run)
    fresh = labelkin.models.build(NAME, (1, 16, 16), preprocessing=labelkin.models.preprocessing(NAME))
    for name, value in fresh.state_dict().items():
        assert torch.equal(model.model.backbone.state_dict()[name], value), name
    again = labelkin.evaluate(run).metrics
    assert again == pytest.approx({name: run.metrics[name] for name in again}, abs=1e-4, nan_ok=True)
    assert model.at_once == frozen.CPU_BATCH  # not 1,024 images of 224 pixels
    inputs = np.load(eight)["x"][:4]
    assert model.predict(inputs).positions.tolist() == [0, 1, 0, 1]
    assert labelkin.runs.export_model(run, tmp_path / "model.pt2").checked_by == "torch.export"


@pytest.mark.long
def test_a_residual_head_is_trained_on_the_features_of_the_network_before_it(eight, tmp_path, cache):
    """It was frozen with random weights. The features are those of runs without it."""
    pytest.importorskip("efficientnet_lite_pytorch")
    settings = {"freeze": True, "epochs": 2, "lr": 0.01, "calibration": 0}
    labelkin.train(eight, backbone=NAME, out=tmp_path / "plain", **settings)
    before = files(cache)
    run = labelkin.train(eight, backbone=f"{NAME}+residual-6", out=tmp_path / "run", **settings)
    assert files(cache) == before
    model = labelkin.load_run(run).model
    fresh = labelkin.models.build(f"{NAME}+residual-6", (1, 16, 16), preprocessing=labelkin.models.preprocessing(NAME))
    moved = {
        name for name, value in fresh.state_dict().items() if not torch.equal(model.backbone.state_dict()[name], value)
    }
    residual = {name for name in fresh.state_dict() if ".residual." in name}
    assert moved == residual
    settings |= {"epochs": 12, "ema": 0.5}  # the averages are stored, not the last weights
    longer = labelkin.train(eight, backbone=f"{NAME}+residual-6", out=tmp_path / "longer", **settings)
    trained = labelkin.load_run(longer).model.backbone.state_dict()
    assert any(
        not torch.equal(model.backbone.state_dict()[name], trained[name]) for name in residual if "weight" in name
    )
    again = labelkin.evaluate(longer).metrics
    assert again == pytest.approx({name: longer.metrics[name] for name in again}, abs=1e-4, nan_ok=True)
    assert longer.metrics["accuracy"] == 1
    assert labelkin.runs.export_model(longer, tmp_path / "model.pt2", decide="crm").checked_by == "torch.export"


def test_a_network_without_a_residual_head_is_whole():
    for name in ("mlp", "tiny-cnn"):
        backbone = labelkin.models.build(name, (1, 8, 8))
        found, head = split_residual(backbone)
        assert found is backbone
        assert isinstance(head, nn.Identity)


def test_freezing_is_part_of_the_id():
    specs = [RunSpec(backbone=NAME, settings=Settings(freeze=freeze)) for freeze in (False, True)]
    assert run_id(specs[0]) != run_id(specs[1])


@pytest.mark.parametrize("backbone", [None, "tiny-cnn"])
def test_random_features_are_refused(backbone):
    with pytest.raises(InputError, match=r"freeze: .* has no pretrained weights.*efficientnet-lite0"):
        labelkin.train("digits", backbone=backbone, freeze=True, epochs=1)


def test_augmentation_of_frozen_features_is_refused():
    with pytest.raises(InputError, match=r"augment: frozen features are computed once.*got flip"):
        Settings(freeze=True, augment=("flip",))


def test_datasets_keep_their_own_normalization(digits):
    assert isinstance(digits, Dataset)
    given = Normalize([0.5], [2.0])
    assert dataclasses.replace(digits, normalization=given).normalize is given
