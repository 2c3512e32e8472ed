"""Exported files: photos or features in, the answers of `predict` out, in torch.export and in ONNX Runtime."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import labelkin
from labelkin import InputError, Taxonomy, decide
from labelkin.decide import TraceableRule
from labelkin.runs import _export_model as exporting
from labelkin.runs import export_model, load_run
from labelkin.runs._portable import FitPixels
from support.commands import FOUND, PIXELS, call, files_below, refused
from support.trees import KINDS, random_taxonomy

pytestmark = pytest.mark.long

TREE = {"round": ["0", "6", "8", "9"], "straight": ["1", "4", "7"], "open": ["2", "3", "5"]}
SIZES = [(8, 8), (30, 20), (9, 61), (5, 3), (64, 64)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on gray images with a tree, one on a table, one without probabilities, and photos of several sizes."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("export")
    Taxonomy.from_nested(TREE).save(folder / "tree.json")
    labelkin.train("digits", "one-hot", out=folder / "run", epochs=2, calibration=0.1, taxonomy=folder / "tree.json")
    labelkin.train("digits", "static-labels", out=folder / "static", epochs=1, calibration=0)
    np.savez(folder / "table.npz", x=FOUND.data.astype(np.float32), y=FOUND.target)
    labelkin.train(folder / "table.npz", "one-hot", out=folder / "table", epochs=1)
    for number, (height, width) in enumerate(SIZES):
        image = Image.fromarray(PIXELS[number]).resize((width, height), Image.Resampling.BICUBIC).convert("RGB")
        tinted = np.asarray(image) * np.array([1.0, 0.8, 0.6])
        Image.fromarray(tinted.astype(np.uint8)).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def pt2(home: Path) -> Path:
    assert call("export", home / "run", "-o", home / "m.pt2", "--coverage", "0.9").exit_code == 0
    return home / "m.pt2"


@pytest.fixture(scope="module")
def onnx_file(home: Path) -> Path:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    told = call("export", home / "run", "-o", home / "m.onnx", "--coverage", "0.9")
    assert told.exit_code == 0, told.stderr
    assert "checked with onnxruntime" in told.stdout
    return home / "m.onnx"


def photo(path: Path) -> Any:
    from PIL import Image

    return np.array(Image.open(path).convert("RGB"))[None]


def in_onnx(file: Path, inputs: Any) -> dict[str, Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"inputs": inputs}), strict=True))


def answered(home: Path, program: Any) -> None:
    """Compare the answers of a program for photos of several sizes with those of `labelkin predict` for the files."""
    files = [home / f"{number}.png" for number in range(len(SIZES))]
    command = ("predict", home / "run", *files, "-o", home / "p.jsonl", "--coverage", "0.9", "--all-probs")
    assert call(*command).exit_code == 0
    rows = [json.loads(line) for line in (home / "p.jsonl").read_text().splitlines()]
    tree = load_run(home / "run").taxonomy
    for file, row in zip(files, rows, strict=True):
        found = program(photo(file))
        probs = np.exp(found["log_probs"][0])
        assert probs == pytest.approx([row[f"p_{k}"] for k in range(10)], abs=0.01)  # pixels may differ by one level
        name = tree.names[int(found["node"][0])]
        assert name == row["class"]
        assert "/".join(tree.names[int(node)] for node in found["path"][0] if node >= 0) == row["path"]
        assert float(found["probability"][0]) == pytest.approx(row["probability"], abs=0.01)
        assert bool(found["fell_back"][0]) == (name not in tree.classes)
        assert int(found["class_index"][0]) == (tree.classes.index(name) if name in tree.classes else -1)


def test_a_pt2_file_answers_as_predict(home: Path, pt2: Path):
    extra = {"classes.json": "", "labelkin.json": ""}
    program = torch.export.load(pt2, extra_files=extra).module()
    answered(home, lambda pixels: {k: v.numpy() for k, v in program(torch.from_numpy(pixels)).items()})
    about = json.loads(extra["labelkin.json"])
    tree = load_run(home / "run").taxonomy
    assert json.loads(extra["classes.json"]) == about["classes"] == list("0123456789")
    assert Taxonomy(about["parents"], about["nodes"]).names == tree.names
    assert (about["rule"], about["coverage"]) == ("fallback", pytest.approx(0.9))
    rule = load_run(home / "run").rule(coverage=0.9)
    assert rule.guarantee is not None
    assert about["thresholds"] == rule.guarantee.thresholds
    assert about["temperature"] == rule.temperature


def test_an_onnx_file_answers_as_predict(home: Path, onnx_file: Path):
    import onnx

    answered(home, lambda pixels: in_onnx(onnx_file, pixels))
    data = {entry.key: entry.value for entry in onnx.load(onnx_file).metadata_props}
    assert json.loads(data["classes"]) == json.loads(data["labelkin"])["classes"] == list("0123456789")
    together = np.stack([np.repeat(PIXELS[k, ..., None], 3, -1) for k in range(50)])
    found = in_onnx(onnx_file, together)
    expected = load_run(home / "run").predict(PIXELS[:50, None], coverage=0.9)
    assert expected.nodes is not None
    assert expected.all_probabilities is not None
    assert found["node"].tolist() == expected.nodes.tolist()
    assert np.abs(found["log_probs"] - expected.all_probabilities.log().numpy()).max() < 1e-4
    assert 0 < found["fell_back"].sum() < 50


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
def test_a_pretrained_network_answers_as_predict(frozen: bool, tmp_path: Path):
    """Photos of another size than the network's: one that is trained further, and one on frozen features."""
    from PIL import Image

    for package in ("efficientnet_lite_pytorch", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    for number in range(40):
        file = tmp_path / "photos" / ("round" if number % 2 else "straight") / f"{number % 4}" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(PIXELS[number]).resize((120, 80), Image.Resampling.BICUBIC).convert("RGB").save(file)
    settings = {"backbone": "efficientnet-lite0-96", "epochs": 1, "batch_size": 8, "freeze": frozen, "calibration": 0}
    labelkin.train(tmp_path / "photos", "one-hot", out=tmp_path / "run", **settings)
    assert call("export", tmp_path / "run", "-o", tmp_path / "m.onnx").exit_code == 0
    files = sorted((tmp_path / "photos").rglob("*.png"))[:5]
    assert call("predict", tmp_path / "run", *files, "-o", tmp_path / "p.jsonl", "--all-probs").exit_code == 0
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    for file, row in zip(files, rows, strict=True):
        found = np.exp(in_onnx(tmp_path / "m.onnx", photo(file))["log_probs"][0])
        assert found == pytest.approx([row[f"p_{name}"] for name in load_run(tmp_path / "run").classes], abs=0.01)


def test_a_scaled_photo_may_differ_by_the_rounding_of_pixels(home: Path, monkeypatch: pytest.MonkeyPatch):
    """What the check allows: 1e-4 for samples of the run's size, 1e-2 for photos that the program scales."""
    predictor = load_run(home / "run")
    module = exporting.Portable(predictor, predictor.rule("argmax")).eval()
    own, photos = exporting.random_samples(predictor, 3), exporting.random_photos()

    def check(of_own: float, of_photos: float) -> None:
        def run(inputs: Tensor) -> Any:
            found = exporting.Outputs(**module(inputs))
            moved = of_photos if inputs.shape == photos.shape else of_own
            return found._replace(log_probs=found.log_probs + moved)

        exporting._check(predictor, predictor.rule("argmax"), module, run, own)

    with torch.no_grad():
        check(0.0, 5e-4)
        with pytest.raises(
            InputError, match=r"differs from the model by 0\.02.* in a log-probability of a scaled photo"
        ):
            check(0.0, 0.02)
        with pytest.raises(InputError, match=r"differs from the model by 0\.000.* in a log-probability; nothing"):
            check(5e-4, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
@pytest.mark.parametrize("rule", ["argmax", "crm", "threshold", "costs"])
def test_every_rule_is_exported(rule: str, suffix: str, home: Path, tmp_path: Path):
    if suffix == "onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    costs = torch.rand(10, 10, generator=torch.Generator().manual_seed(0))
    options: dict[str, Any] = {"threshold": {"threshold": 0.9}, "costs": {"costs": costs}}.get(rule, {"decide": rule})
    for run, inputs, given in [
        ("run", PIXELS[:99, None], np.repeat(PIXELS[:99, ..., None], 3, -1)),
        ("table", FOUND.data[:99].astype(np.float32), FOUND.data[:99].astype(np.float32)),
    ]:
        if run == "table" and rule == "threshold":
            continue  # its tree has no names
        file = tmp_path / f"{run}.{suffix}"
        export_model(home / run, file, **options)
        expected = load_run(home / run).predict(inputs, **options)
        assert expected.nodes is not None
        if suffix == "onnx":
            nodes = in_onnx(file, given)["node"].tolist()
        else:
            nodes = torch.export.load(file).module()(torch.from_numpy(given))["node"].tolist()
        assert nodes == expected.nodes.tolist()


def test_a_run_on_features_takes_features(home: Path, tmp_path: Path):
    export_model(home / "table", tmp_path / "m.pt2")
    program = torch.export.load(tmp_path / "m.pt2").module()
    for count in (1, 7):
        values = torch.from_numpy(FOUND.data[:count].astype(np.float32))
        found, expected = program(values), load_run(home / "table").predict(values)
        assert found["class_index"].tolist() == expected.positions.tolist()
        assert not found["fell_back"].any()
        assert expected.all_probabilities is not None
        torch.testing.assert_close(found["log_probs"].exp(), expected.all_probabilities, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_are_fitted_as_pillow_does(channels: int):
    from PIL import Image, ImageOps

    rng = np.random.default_rng(channels)
    for trial in range(60):
        height, width, *out = (int(size) for size in rng.integers(1, 90, 4))
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        if trial % 2:  # smooth, as photos are
            pixels = np.array(Image.fromarray(pixels[:8, :8]).resize((width, height), Image.Resampling.BICUBIC))
        image = Image.fromarray(pixels).convert("L" if channels == 1 else "RGB")
        expected = np.array(ImageOps.fit(image, (out[1], out[0]), Image.Resampling.BILINEAR), dtype=np.int64)
        found = FitPixels((channels, *out))(torch.from_numpy(pixels)[None])[0].permute(1, 2, 0).numpy()
        assert np.abs(expected.reshape(*out, channels) - found).max() <= 1


def test_pixels_of_the_own_size_stay_as_they_are():
    pixels = torch.randint(0, 256, (2, 9, 7, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(FitPixels((3, 9, 7))(pixels), pixels.permute(0, 3, 1, 2).float())


@pytest.mark.parametrize("kind", KINDS)
def test_a_traceable_rule_answers_as_the_rule(kind: str):
    tree = random_taxonomy(np.random.default_rng(3), 9, kind)
    generator = torch.Generator().manual_seed(0)
    probs = (3 * torch.randn(200, 9, generator=generator, dtype=torch.float64)).softmax(-1)
    probs[0], probs[1] = 1 / 9, torch.tensor([0.25] * 4 + [0.0] * 5, dtype=torch.float64)  # ties
    target = torch.randint(0, 9, (200,), generator=generator)
    target[:100] = probs[:100].argmax(-1)
    rules = [
        decide.Rule("argmax", tree),
        decide.Rule("crm", tree),
        decide.Rule("crm", tree, torch.rand(9, 9, generator=generator, dtype=torch.float64)),
        decide.Rule("fallback", tree),
        decide.Rule("fallback", tree, threshold=0.9),
        decide.Rule("fallback", tree).fitted(probs.log().clamp(min=-50), target, coverage=0.6, temperature=1.0).rule,
    ]
    if kind in ("balanced", "unbalanced"):
        fitted = decide.Rule("fallback", tree).fitted(
            probs.log().clamp(min=-50), target, coverage=0.5, temperature=1.0, by="predicted"
        )
        rules.append(fitted.rule)
    for rule in rules:
        found, expected = TraceableRule(rule)(probs), rule.answer(probs)
        assert torch.equal(found.nodes, expected.nodes)
        torch.testing.assert_close(found.probs, expected.probs)


def test_a_file_of_somebody_else_is_kept(home: Path, pt2: Path, tmp_path: Path):
    pytest.importorskip("onnx")
    for name in ("m.pt2", "m.onnx"):
        (tmp_path / name).write_bytes(b"not ours")
        assert "was not written by labelkin export" in refused("export", home / "run", "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes() == b"not ours"
    assert call("export", home / "table", "-o", tmp_path / "m.pt2", "--force").exit_code == 0
    assert call("export", home / "table", "-o", tmp_path / "m.pt2").exit_code == 0  # ours now


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert "StaticLabels defines no probabilities" in refused("export", home / "static", "-o", tmp_path / "m.pt2")
    assert "ends in .onnx or .pt2" in refused("export", home / "run", "-o", tmp_path / "m.pt")
    assert "was built from its data" in refused("export", home / "table", "-o", tmp_path / "m.pt2", "--threshold", ".5")
    forward, real = exporting.Portable.forward, exporting._program
    changed: list[str] = []

    def other(self: exporting.Portable, inputs: Tensor) -> dict[str, Tensor]:
        found = forward(self, inputs)
        return {**found, changed[-1]: found[changed[-1]] + 1}

    def wrong(module: exporting.Portable, samples: Tensor) -> torch.export.ExportedProgram:
        """What is exported is not the model that it is compared with."""
        monkeypatch.setattr(exporting.Portable, "forward", other)
        program = real(module, samples)
        monkeypatch.setattr(exporting.Portable, "forward", forward)
        return program

    monkeypatch.setattr(exporting, "_program", wrong)
    for name in ("log_probs", "node"):
        changed.append(name)
        assert "differs from the model" in refused("export", home / "table", "-o", tmp_path / "m.pt2")
    assert files_below(tmp_path) == []
