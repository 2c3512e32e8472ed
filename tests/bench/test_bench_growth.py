"""Benchmarks against peers with growth over sizes: they run at small sizes, check what they time, and say what is missing."""

import json

import pytest
import torch
from typer.testing import CliRunner

from labelkin import InputError
from labelkin.bench import Compared, Growth, Measure, Timing, time_analysis, time_linear, time_loading
from labelkin.bench import _analysis as analysis
from labelkin.bench import _linear as linear
from labelkin.bench import _loading as loading
from labelkin.cli._bench import app

LINEAR = ["linear", "--device", "cpu", "--rows", "16", "--features", "4", "--classes", "33", "--repeats", "1"]


def test_the_exponent_is_the_power_of_the_size():
    assert Growth("x", "rows", [1, 2, 4], [3.0, 12.0, 48.0]).exponent == pytest.approx(2)
    assert Growth("x", "rows", [10, 20, 40], [5.0, 5.0, 5.0]).exponent == pytest.approx(0)


def test_ratios_are_labelkin_s_time_and_memory_divided_by_the_peer_s():
    ours, theirs = Measure(Timing(2.0, 1.0, 3.0, 5), 300), Measure(Timing(4.0, 4.0, 4.0, 5), 100)
    row = Compared("x", {"rows": 1}, ours, {"torch": theirs})
    assert (row.ratio("torch"), row.memory_ratio("torch")) == (0.5, 3.0)
    assert row._replace(ours=ours._replace(peak_bytes=None)).memory_ratio("torch") is None


@pytest.mark.long
def test_linear_times_and_checks_every_kind_of_targets(tmp_path):
    out = tmp_path / "linear.json"
    printed = CliRunner().invoke(app, [*LINEAR, "-o", str(out)])
    assert printed.exit_code == 0, printed.output
    assert printed.stdout.startswith("linear: cpu, ")
    found = json.loads(out.read_text())
    assert [row["case"] for row in found["rows"]] == [f"{kind}, float32" for kind in linear.KINDS]
    for row in found["rows"]:
        assert row["error"] < 1e-5
        assert row["case"] in printed.stdout
        assert row["peers"]["torch"]["times_time"] == row["ours"]["median"] / row["peers"]["torch"]["median"]
    assert [one["over"] for one in found["growth"]] == ["rows", "classes"]
    assert [one["sizes"] for one in found["growth"]] == [[4, 8, 16], [8, 16, 33]]
    again = CliRunner().invoke(app, [*LINEAR, "--kind", "sparse", "--dtype", "bfloat16", "--json"])
    assert [row["case"] for row in json.loads(again.stdout)["rows"]] == ["sparse, bfloat16"]


def test_a_wrong_loss_is_not_timed(monkeypatch):
    right = linear.linear_cross_entropy
    monkeypatch.setattr(linear, "linear_cross_entropy", lambda *given, **options: 1.01 * right(*given, **options))
    with pytest.raises(ArithmeticError, match="differs from float64"):
        time_linear(device="cpu", rows=16, features=4, classes=12, kinds=["hard"], repeats=1)


def test_large_dense_matrices_are_left_out_and_named(monkeypatch):
    monkeypatch.setattr(linear, "LARGEST_DENSE", 10)
    found = time_linear(device="cpu", rows=16, features=4, classes=12, kinds=["dense", "hard"], repeats=1)
    assert [row.case for row in found.rows] == ["hard, float32"]
    assert "dense: a matrix of 12 x 12 is left out" in found.notes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rows": 3}, "rows: expected a whole number of at least 4, got 3"),
        ({"kinds": ["soft"]}, "kind: "),
        ({"dtype": "float16"}, "dtype: "),
        ({"device": "tpu"}, "device: "),
    ],
)
def test_options_that_cannot_be_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        time_linear(**{"device": "cpu", **options})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_refused():
    with pytest.raises(InputError, match="needs a GPU"):
        time_linear(device="cuda")


@pytest.mark.long
def test_loading_reads_every_image_once(tmp_path):
    pytest.importorskip("PIL")
    out = tmp_path / "loading.json"
    options = ["--images", "24", "--size", "40", "--batch", "7", "--workers", "0", "--repeats", "1"]
    printed = CliRunner().invoke(app, ["loading", *options, "-o", str(out)])
    assert printed.exit_code == 0, printed.output
    found = json.loads(out.read_text())
    (row,) = found["rows"]
    assert found["machine"]["threads"] == 1  # as in training
    assert row["sizes"]["images"] == 24
    assert row["per_second"] == pytest.approx(24 / row["ours"]["median"])
    assert "in the process" in printed.stdout
    assert "per second" in printed.stdout
    loading.write_images(tmp_path / "files", 6)
    assert len(list((tmp_path / "files").glob("class*/*.jpg"))) == 6


@pytest.mark.long
def test_an_epoch_that_misses_images_is_not_timed(monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.setattr(loading.FileSplit, "__len__", lambda split: len(split.paths) + 1)
    with pytest.raises((ArithmeticError, IndexError, InputError)):
        time_loading(images=20, size=40, workers=[0], repeats=1)


def test_analysis_agrees_with_its_peers(tmp_path):
    out = tmp_path / "analysis.json"
    options = ["--samples", "60", "--classes", "9", "--features", "3", "--repeats", "1", "-o", str(out)]
    printed = CliRunner().invoke(app, ["analysis", *options])
    assert printed.exit_code == 0, printed.output
    found = json.loads(out.read_text())
    compared = {row["case"]: row for row in found["rows"] if row["peers"]}
    assert {"confusion_matrix", "label_distances"} <= set(compared)
    assert all(row["error"] < 1e-6 for row in compared.values())
    assert {one["case"] for one in found["growth"]} == {"confusion_matrix", "label_distances", "linkage_table"}


def test_a_peer_that_computes_something_else_is_not_compared(monkeypatch):
    peers = analysis._peers
    monkeypatch.setattr(
        analysis, "_peers", lambda given: {**peers(given), "label_distances": {"odd": lambda: given.distances + 1}}
    )
    with pytest.raises(ArithmeticError, match="label_distances differs from odd"):
        time_analysis(samples=20, classes=8, features=2, repeats=1)
