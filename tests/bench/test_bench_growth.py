"""Benchmarks against peers with growth over sizes: they run at small sizes, check what they time, and say what is missing."""

import json

import pytest
import torch
from typer.testing import CliRunner

from labelkin import InputError
from labelkin.bench import Compared, Growth, Measure, Timing, time_linear
from labelkin.bench import _linear as linear
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
