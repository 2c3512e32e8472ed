"""Backbones: the published sizes, what every net must do, and the sentences for what it cannot."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import labelkin
from labelkin._checks import InputError
from labelkin._extras import MissingExtra
from labelkin.models import (
    BACKBONES,
    Backbone,
    Preprocessing,
    build,
    default,
    is_pretrained,
    network_config,
    preprocessing,
)
from labelkin.models._blocks import GridPool, PreActivation, bottleneck, conv
from labelkin.models._mcel_nets import PadShortcut

MNIST, CIFAR, PHOTO = (1, 28, 28), (3, 32, 32), (3, 224, 224)
SMALL = (2, 16, 19)  # two channels and an odd side: no net may count on three and on powers of two
WIDER = {"wrn-28-10", "wrn-28-12"}  # wrn-28-8 stands for them where seconds count


@pytest.fixture(scope="module", params=[name for name in BACKBONES if name not in WIDER])
def net(request):
    torch.manual_seed(0)
    return build(request.param, SMALL)


@pytest.fixture(scope="module")
def images():
    return torch.randn(4, *SMALL, generator=torch.Generator().manual_seed(1))


def sized(name, shape):
    """The net without memory: shapes and counts alone."""
    with torch.device("meta"):
        return build(name, shape)


def trainable(net, classes):
    return sum(p.numel() for p in net.parameters()) + (net.features + 1) * classes


# Sizes, each with one linear layer on top. 000 and 003 as methods.md gives them; He et al. 2015 (CIFAR Table 6 for
# ResNet-32: 0.46 M; ImageNet nets as torchvision counts them); Zagoruyko & Komodakis 2016 (36.5 M, 52.5 M).
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "shape", "classes", "parameters"),
    [
        ("resnet-3-0", CIFAR, 10, 9_344),
        ("resnet-3-1", CIFAR, 10, 131_984),
        ("resnet-9", CIFAR, 10, 317_456),
        ("resnet-18-bottleneck", CIFAR, 10, 595_664),
        ("cnn-5x5", MNIST, 10, 3_274_634),
        ("mlp-500", MNIST, 10, 648_010),
        ("resnet-8", CIFAR, 10, 4_911_754),
        ("resnet-18-double", CIFAR, 100, 44_755_172),
        ("resnet-32", CIFAR, 10, 464_154),
        ("resnet-18", PHOTO, 1000, 11_689_512),
        ("resnet-34", PHOTO, 1000, 21_797_672),
        ("resnet-152", PHOTO, 1000, 60_192_808),
        ("resnet-34", CIFAR, 1000, 21_797_672 - 64 * 3 * (7 * 7 - 3 * 3)),  # the small stem
        ("wrn-28-10", CIFAR, 10, 36_479_194),
        ("3-layer-0", MNIST, 10, (9 + 1) * 2 + (18 + 1) * 2 + (28 * 28 * 2 + 1) * 2 + 3 * 10),
        ("9-layer", MNIST, 10, 320 + 2 * 9_248 + 1_605_696 + 2 * 4_160 + 8_320 + 2 * 16_512 + 1_290),
        ("lenet", CIFAR, 10, 448 + 4_640 + 18_496 + (1_024 + 1) * 128 + 1_290),
        ("cnn-6", CIFAR, 10, 896 + 18_496 + 73_856 + 147_584 + 295_168 + 590_080 + 1_048_832 + 32_896 + 1_290),
        ("tiny-cnn", (1, 8, 8), 10, 160 + 4_640 + 5_130),
    ],
)
def test_published_sizes(name, shape, classes, parameters):
    assert trainable(sized(name, shape), classes) == parameters


@pytest.mark.parametrize(("name", "millions"), [("wrn-28-8", 23.4), ("wrn-28-12", 52.5), ("resnet-32", 0.46)])
def test_sizes_published_in_millions(name, millions):
    digits = len(str(millions).partition(".")[2])
    assert round(trainable(sized(name, CIFAR), 10) / 1e6, digits) == millions


@pytest.mark.parametrize(
    ("name", "counted"),
    [("resnet-3-0", 9_718), ("resnet-3-1", 133_462), ("resnet-9", 321_622), ("resnet-18-bottleneck", 603_862)],
)
def test_sizes_of_000_count_running_statistics(name, counted):
    net = sized(name, CIFAR)
    running = sum(buffer.numel() for key, buffer in net.named_buffers() if "running_" in key)
    assert trainable(net, 10) + running == counted


@pytest.mark.parametrize("name", [name for name in BACKBONES if "-layer" in name])
def test_the_plain_nets_have_as_many_layers_as_their_name_says(name):
    net = sized(name, MNIST)
    assert sum(isinstance(m, (nn.Conv2d, nn.Linear)) for m in net.modules()) == int(name.partition("-")[0])
    assert not any(isinstance(m, nn.MaxPool2d) for m in net.modules())


# Structure that a count cannot see.


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "shape", "side"),
    [
        ("resnet-9", CIFAR, 8),
        ("resnet-small", CIFAR, 4),
        ("resnet-8", CIFAR, 8),
        ("resnet-18-double", CIFAR, 4),
        ("resnet-32", CIFAR, 8),
        ("resnet-34", CIFAR, 4),
        ("resnet-34", PHOTO, 7),
        ("wrn-28-8", CIFAR, 8),
    ],
)
def test_the_last_map_has_the_published_side(name, shape, side):
    trunk = sized(name, shape).layers[:-1]  # all but the pooling
    assert trunk(torch.zeros(1, *shape, device="meta")).shape[2:] == (side, side)


def test_bottlenecks_stride_on_their_3x3():
    strided = [m for m in sized("resnet-9", CIFAR).modules() if isinstance(m, nn.Conv2d) and m.stride == (2, 2)]
    assert sorted(m.kernel_size for m in strided) == [(1, 1), (1, 1), (3, 3), (3, 3)]  # 1 x 1: the two projections


def test_preactivation_block_written_out():
    torch.manual_seed(0)
    block = PreActivation(bottleneck(8, 16, 2), conv(8, 16, 1, 2))
    for norm in (m for m in block.modules() if isinstance(m, nn.BatchNorm2d)):
        nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    (n1, b1, w1, n2, b2, w2, n3, b3, w3, projection) = block.parameters()
    x = torch.randn(4, 8, 6, 6)

    def activated(x, weight, bias):
        centred = x - x.mean((0, 2, 3), keepdim=True)
        scaled = centred / (centred.square().mean((0, 2, 3), keepdim=True) + 1e-5).sqrt()
        return (scaled * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)).clamp(min=0)

    active = activated(x, n1, b1)
    inner = F.conv2d(activated(F.conv2d(active, w1), n2, b2), w2, stride=2, padding=1)
    expected = F.conv2d(activated(inner, n3, b3), w3) + F.conv2d(active, projection, stride=2)
    torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)


def test_pad_shortcut_takes_every_second_pixel_and_adds_zeros():
    x = torch.arange(32.0).view(1, 2, 4, 4)
    out = PadShortcut(added=2, stride=2)(x)
    assert out[0, :2].tolist() == [[[0, 2], [8, 10]], [[16, 18], [24, 26]]]
    assert out.shape == (1, 4, 2, 2)
    assert not out[0, 2:].any()


@pytest.mark.parametrize("side", [2, 5, 8, 9])
def test_two_by_two_pooling_is_adaptive_pooling(side):
    x = torch.randn(3, 4, side, side + 1)
    torch.testing.assert_close(GridPool(2)(x), F.adaptive_avg_pool2d(x, 2).flatten(1))


def test_grid_pooling_covers_a_map_that_it_does_not_divide():
    x = torch.zeros(1, 1, 14, 14)
    for corner in ((0, 0), (0, 13), (13, 0), (13, 13)):
        x[0, 0, corner[0], corner[1]] = 25.0  # windows of 5 x 5 every 3 pixels
    grid = GridPool(4)(x).view(4, 4)
    assert grid[[0, 0, 3, 3], [0, 3, 0, 3]].tolist() == [1, 1, 1, 1]
    assert grid.sum() == 4


# What every net must do.


@pytest.mark.long
def test_features_have_the_width_that_the_net_says(net, images):
    assert isinstance(net, Backbone)
    assert isinstance(net.features, int)
    with torch.no_grad():
        assert net(images[:2]).shape == (2, net.features)


@pytest.mark.long
def test_gradient_reaches_every_parameter(net, images):
    net.train()
    features = net(images)
    weights = torch.randn(features.shape, generator=torch.Generator().manual_seed(2))
    net.zero_grad()
    (features * weights).sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@pytest.mark.long
def test_eval_mode_repeats_itself_and_follows_the_order_of_the_batch(net, images):
    net.eval()
    order = torch.tensor([2, 0, 3, 1])
    with torch.no_grad():
        features = net(images)
        assert torch.equal(net(images), features)
        torch.testing.assert_close(net(images[order]), features[order], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(net(images[:1]), features[:1], rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["tiny-cnn", "resnet-3-0", "resnet-8"])
def test_compiles_to_one_graph_with_the_same_gradients(name):
    torch._dynamo.reset()  # all nets share one forward, and a function is compiled eight times at most
    torch.manual_seed(0)
    net = build(name, (1, 8, 8))
    images = torch.randn(4, 1, 8, 8)

    def run(call):
        net.zero_grad()
        features = call(images)
        features.square().sum().backward()
        return features.detach(), [p.grad.clone() for p in net.parameters()]

    features, gradients = run(net)
    compiled_features, compiled_gradients = run(torch.compile(net, fullgraph=True, backend="aot_eager"))
    torch.testing.assert_close(compiled_features, features, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(compiled_gradients, gradients, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["cnn-5x5", "resnet-8", "resnet-32", "resnet-9", "tiny-cnn"])
def test_channels_last_changes_nothing(name, images):
    torch.manual_seed(0)
    net = build(name, SMALL).eval()
    with torch.no_grad():
        expected = net(images)
        net = net.to(memory_format=torch.channels_last)
        found = net(images.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["3-layer-1", "lenet", "cnn-5x5", "resnet-32", "resnet-8", "tiny-cnn", "mlp"])
def test_the_seed_fixes_the_weights(name):
    def drawn(seed):
        torch.manual_seed(seed)
        return torch.cat([p.flatten() for p in build(name, SMALL).parameters()])

    assert torch.equal(drawn(3), drawn(3))
    assert not torch.equal(drawn(3), drawn(4))


@pytest.mark.long
@pytest.mark.parametrize(("name", "flat", "least"), [("tiny-cnn", False, 0.97), ("mlp", True, 0.95)])
def test_the_tiny_nets_learn_digits(name, flat, least):
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    images = images.flatten(1) if flat else images
    target = torch.tensor(digits.target)
    train, test = map(torch.as_tensor, train_test_split(range(len(target)), stratify=target, random_state=0))
    torch.manual_seed(0)
    backbone = build(name, images.shape[1:])
    model = nn.Sequential(backbone, nn.Linear(backbone.features, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(12):
        for batch in train[torch.randperm(len(train))].split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(images[batch]), target[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        accuracy = (model(images[test]).argmax(1) == target[test]).float().mean().item()
    assert accuracy > least


# Choosing a net, and what it cannot take.


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((64,), "mlp"),
        ((1, 8, 8), "tiny-cnn"),
        (MNIST, "tiny-cnn"),
        (CIFAR, "resnet-18"),
        (PHOTO, "resnet-18"),
        ((3, 64, 4), "mlp"),
    ],
)
def test_default_names_a_net_that_takes_the_shape(shape, name):
    assert default(shape) == name
    sized(name, shape)


def test_shapes_may_be_lists_and_flat_nets_flatten():
    assert build("mlp", [3, 4, 5], hidden=[7, 6])(torch.zeros(2, 3, 4, 5)).shape == (2, 6)
    assert build("mlp-500", (9,))(torch.zeros(2, 9)).shape == (2, 500)


@pytest.mark.long
@pytest.mark.parametrize(("name", "stem"), [("resnet-18", "small"), ("resnet-18", "large")])
def test_the_stem_can_be_chosen(name, stem):
    kernel = build(name, (3, 64, 64), stem=stem).layers[0][0].kernel_size
    assert kernel == {"small": (3, 3), "large": (7, 7)}[stem]


@pytest.mark.parametrize(
    ("name", "shape", "options", "sentence"),
    [
        ("resnet-18", (1, 8, 8), {}, r"'resnet-18'.*at least 16 x 16 pixels, got \(1, 8, 8\); 'tiny-cnn'"),
        ("resnet-18", (3, 32, 32), {"stem": "large"}, r"at least 64 x 64 pixels"),
        ("resnet-9", (64,), {}, r"'resnet-9'.*images \(channels, height, width\).*got \(64,\).*'mlp' any shape"),
        ("lenet", (1, 28, 7), {}, r"at least 8 x 8 pixels, got \(1, 28, 7\)"),
        ("tiny-cnn", (1, 4, 4), {}, r"at least 8 x 8"),
        ("mlp", (3, 4), {}, r"expected \(channels, height, width\) or \(features,\), got \(3, 4\)"),
        ("mlp", (0,), {}, r"input_shape: expected a whole number of at least 1, got 0"),
        ("mlp", (8.0,), {}, r"input_shape: expected a whole number of at least 1, got 8.0"),
        ("mlp", (8,), {"hidden": ()}, r"hidden: expected the width of at least one layer"),
        ("mlp", (8,), {"hidden": (4, 0)}, r"hidden: expected a whole number of at least 1, got 0"),
        ("mlp", (8,), {"hiden": (4,)}, r"'mlp' has no option 'hiden'.*Did you mean 'hidden'"),
        ("resnet-34", CIFAR, {"stem": "smal"}, r"stem: expected one of.*Did you mean 'small'"),
        ("wrn-28-8", CIFAR, {"widen": 2}, r"'wrn-28-8' has no option 'widen'; it takes none"),
        ("resnet18", CIFAR, {}, r"no backbone 'resnet18'.*timm:NAME or hf:NAME.*Did you mean 'resnet-18'"),
        ("xyzzy", CIFAR, {}, r"no backbone 'xyzzy'.*The names: tiny-cnn, mlp, .*wrn-28-12"),
        ("tim:resnet18", CIFAR, {}, r"no backbone 'tim:resnet18'"),
        ("hf:", CIFAR, {}, r"no backbone 'hf:'"),
    ],
)
def test_what_cannot_be_built_says_why(name, shape, options, sentence):
    with pytest.raises(InputError, match=sentence):
        build(name, shape, **options)


# The doors.


def test_a_missing_timm_is_named_with_its_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtra, match=r"timm:resnet18 needs timm.*pip install timm, .*torchvision"):
        build("timm:resnet18", CIFAR)


def test_a_missing_transformers_is_named_with_its_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"hf:bert needs transformers.*pip install 'labelkin\[text\]'"):
        build("hf:bert", (16,))


@pytest.fixture
def stub_timm(monkeypatch):
    """A module with timm's three calls, for machines without it: one model that needs 32 pixels."""
    calls = []

    def create_model(name, **keywords):
        calls.append(keywords)
        if keywords["pretrained"]:
            raise OSError("no route to the weights\nand a long trace")
        flat = keywords["in_chans"] * 32 * 32
        return nn.Sequential(nn.Flatten(), nn.Linear(flat, 5), nn.Dropout(0.5))

    names = ["resnet18", "resnet34"]
    module = SimpleNamespace(create_model=create_model, list_models=lambda: names, is_model=names.__contains__)
    monkeypatch.setitem(sys.modules, "timm", module)
    return calls


def test_timm_is_asked_for_features_of_these_channels(stub_timm):
    net = build("timm:resnet18", (2, 32, 32), pretrained=False, drop_rate=0.1)
    assert stub_timm == [{"pretrained": False, "num_classes": 0, "in_chans": 2, "drop_rate": 0.1}]
    assert net.features == 5
    assert net.training
    assert all(m.training for m in net.modules())


def test_timm_from_scratch_loads_no_weights_and_expects_no_preprocessing(stub_timm):
    assert build("timm-scratch:resnet18", (1, 32, 32)).features == 5
    assert stub_timm == [{"pretrained": False, "num_classes": 0, "in_chans": 1}]
    assert not is_pretrained("timm-scratch:resnet18")
    assert preprocessing("timm-scratch:resnet18") is None


@pytest.mark.parametrize(
    ("name", "shape", "options", "sentence"),
    [
        ("timm-scratch:resnet81", CIFAR, {}, r"timm has no model 'resnet81'. Did you mean 'resnet18'"),
        ("timm-scratch:hf-hub:me/net", CIFAR, {}, r"a model in timm's own list.*got 'hf-hub:me/net'"),
        ("timm:resnet81", CIFAR, {}, r"timm has no model 'resnet81'. Did you mean 'resnet18'"),
        ("timm:resnet18", CIFAR, {}, r"could not be loaded \(no route to the weights\);.*pretrained=False"),
        ("timm:resnet18", (3, 28, 28), {"pretrained": False}, r"'timm:resnet18'.*cannot take \(3, 28, 28\)"),
        ("timm:resnet18", (32,), {"pretrained": False}, r"expected images"),
    ],
)
def test_what_timm_cannot_give_says_why(stub_timm, name, shape, options, sentence):
    with pytest.raises(InputError, match=sentence):
        build(name, shape, **options)


def test_timm_itself():
    pytest.importorskip("timm", exc_type=ImportError)
    net = build("timm:resnet18", (1, 32, 32), pretrained=False)
    assert net(torch.zeros(2, 1, 32, 32)).shape == (2, net.features) == (2, 512)


PUBLISHED_BY_TIMM = {
    "architecture": "resnet18",
    "num_classes": 1000,
    "model_args": {"num_classes": 1000, "in_chans": 3, "drop_rate": 0.25},
    "pretrained_cfg": {"input_size": [3, 160, 160], "crop_pct": 0.95, "mean": [0.5] * 3, "std": [0.25] * 3},
}


def test_a_folder_of_timm_brings_its_architecture_and_its_preprocessing(stub_timm, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED_BY_TIMM))
    name = f"timm:{tmp_path}"
    assert preprocessing(name) == Preprocessing(160, 168, (0.5,) * 3, (0.25,) * 3)
    config = network_config(name)
    assert config == {"architecture": "resnet18", "arguments": {"drop_rate": 0.25}}
    build(name, (3, 32, 32), pretrained=False)
    (tmp_path / "config.json").unlink()
    build(name, (3, 32, 32), pretrained=False, config=config)
    given = {"pretrained": False, "num_classes": 0, "in_chans": 3}
    assert stub_timm == [given, {**given, "drop_rate": 0.25}]
    with pytest.raises(InputError, match=r"could not be loaded \(.*config\.json"):
        preprocessing(name)
    assert network_config("timm:resnet18") is None


def test_pickled_weights_of_a_timm_folder_are_refused(stub_timm, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED_BY_TIMM))
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(InputError, match=r"expected the weights as model\.safetensors"):
        build(f"timm:{tmp_path}", (3, 32, 32))
    assert stub_timm == []
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="no route to the weights"):  # what the stand-in for timm says
        build(f"timm:{tmp_path}", (3, 32, 32))
    assert stub_timm[0]["pretrained"]


def test_an_unknown_timm_model_is_named_before_its_weights(stub_timm):
    with pytest.raises(InputError, match=r"timm has no model 'resnet81'. Did you mean 'resnet18'"):
        preprocessing("timm:resnet81")


@pytest.mark.long
@pytest.mark.parametrize("name", ["test_resnet", "test_vit"])
def test_a_run_on_a_folder_of_timm_itself(name, tmp_path):
    """From the folder to predictions that need it no longer."""
    timm = pytest.importorskip("timm", exc_type=ImportError)
    torch.manual_seed(0)
    model = timm.create_model(name)
    timm.models.save_for_hf(model, tmp_path / "model", safe_serialization=True)
    assert preprocessing(f"timm:{tmp_path / 'model'}") == preprocessing(f"timm:{name}")
    net = build(f"timm:{tmp_path / 'model'}", (3, 160, 160)).eval()
    images = torch.randint(0, 256, (12, 3, 160, 160), dtype=torch.uint8)
    with torch.no_grad():
        pixels = images[:2] / 255
        torch.testing.assert_close(
            net(pixels), model.eval().forward_head(model.forward_features(pixels), pre_logits=True)
        )
    np.savez(tmp_path / "data.npz", x_train=images, y_train=np.arange(12) % 2, x_test=images, y_test=np.arange(12) % 2)
    run = labelkin.train(
        tmp_path / "data.npz", backbone=f"timm:{tmp_path / 'model'}", out=tmp_path / "run", epochs=1, calibration=0
    )
    expected = labelkin.load_run(run).predict(images[:3]).positions
    (tmp_path / "model").rename(tmp_path / "gone")
    assert labelkin.load_run(run).predict(images[:3]).positions.tolist() == expected.tolist()


SMALL_TRANSFORMER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def test_transformers_images(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(**SMALL_TRANSFORMER, image_size=32, patch_size=8)
    transformers.ViTModel(config).save_pretrained(tmp_path)
    net = build(f"hf:{tmp_path}", CIFAR)
    assert net(torch.zeros(2, *CIFAR)).shape == (2, net.features) == (2, 16)
    with pytest.raises(InputError, match=r"cannot take \(3, 28, 28\)"):
        build(f"hf:{tmp_path}", (3, 28, 28))
    with pytest.raises(InputError, match=r"expected images"):
        build(f"hf:{tmp_path}", (64,))


@pytest.mark.parametrize("kind", ["Bert", "DistilBert"])  # with and without a pooled output
def test_transformers_text_ignores_padding(tmp_path, kind):
    transformers = pytest.importorskip("transformers")
    sizes = SMALL_TRANSFORMER if kind == "Bert" else {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32}
    config = getattr(transformers, f"{kind}Config")(vocab_size=50, max_position_embeddings=12, **sizes)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path)
    net = build(f"hf:{tmp_path}", (6,)).eval()
    padded = torch.tensor([[5, 6, 7, 0, 0, 0]])
    torch.testing.assert_close(net(padded), net(padded[:, :3]))
    assert not torch.allclose(net(padded), net(padded[:, :2]))
    with pytest.raises(InputError, match=r"text encoder expects \(length,\)"):
        build(f"hf:{tmp_path}", CIFAR)
