"""Benchmarks on small sizes, where ours and the literal forms must agree, and the full size against its limits."""

import inspect
import json
import math

import pytest
from typer.testing import CliRunner

from labelkin import InputError, metrics
from labelkin.bench import (
    Timing,
    time_fleet,
    time_many_labels,
    time_metrics,
    time_naa,
    time_training,
    time_tree_losses,
)
from labelkin.bench import _metrics as bench_metrics
from labelkin.bench import (
    _naa as naa,
)
from labelkin.bench import (
    _result as result,
)
from labelkin.bench._measure import Pass, fresh_pass, timed
from labelkin.cli._bench import app
from support.clock import unit_seconds

GIB = 2**30
GUARD = 400  # units of work; about 20 seconds on a current machine


@pytest.fixture
def no_process(monkeypatch):
    for module in (bench_metrics, naa):
        monkeypatch.setattr(module, "fresh_pass", lambda name, sizes, threads: Pass(threads, 1.0, 1.0, 2, 1))


@pytest.mark.usefixtures("no_process")
def test_metrics_agree_with_their_literal_forms():
    found = time_metrics(samples=200, classes=40, repeats=1, threads=1)
    assert found.sizes == {"samples": 200, "classes": 40, "superclasses": 4}
    for row in found.rows:
        if row.literal is None:
            assert row.name == "superclass_accuracy_by_kmeans"
            continue
        assert row.literal.difference < 1e-9, row.name
        assert row.literal.share == 1
        assert row.ratio == row.literal.timing.median / row.ours.median
    rows = {row.name: row for row in found.rows}
    assert set(rows["hierarchical_f1"].peers) == {"hiclass"}
    assert set(rows["accuracy"].peers) == {"scikit-learn", "torchmetrics"}


def test_the_warm_up_does_not_count():
    times = iter([0.0, 100.0, 100.0, 101.0, 101.0, 104.0, 104.0, 106.0])  # calls of 100, 1, 3 and 2 seconds
    assert timed(lambda: None, 3, warm_up=1, clock=lambda: next(times)) == Timing(2.0, 1.0, 3.0, 3)


def test_every_metric_has_its_benchmark():
    functions = {name for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))}
    assert {name.partition(",")[0] for name in bench_metrics.CASES} == functions


@pytest.mark.usefixtures("no_process")
def test_naa_agrees_with_its_equations():
    found = time_naa(samples=60, classes=4, features=7, repeats=1, threads=1)
    literal = [row.literal for row in found.rows if row.literal is not None]
    assert len(literal) == 2
    assert all(slow.difference < 1e-12 for slow in literal)


def test_a_literal_form_that_takes_long_runs_on_a_part_and_is_extrapolated(monkeypatch):
    counts = []

    def timed(call, repeats, warm_up):
        call()
        return Timing(1.0, 0.5, 2.0, repeats)

    def run(count):
        counts.append(count)
        return [1.0] * count

    monkeypatch.setattr(result, "timed", timed)
    found = result.slow(run, lambda count: [1.25] * count, units=1000, repeats=3)
    assert set(counts) == {10}
    assert found == (Timing(100.0, 50.0, 200.0, 3), 0.01, 0.25)
    assert result.slow(run, run, units=1000, repeats=3, work=lambda count: count**2).timing.median == 10_000
    counts.clear()
    assert result.slow(run, run, units=3, repeats=3).share == 1
    assert set(counts) == {3}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.5], 0.5),
        ([math.nan, 2.0], [math.nan, 2.0], 0),
        ([math.nan, 2.0], [1.0, 2.0], math.inf),
        ([1.0], [1.0, 2.0], math.inf),
    ],
)
def test_difference(left, right, expected):
    assert result.difference(left, right) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "sizes"),
    [
        ("metrics", {"samples": 10_000, "classes": 1_000}),
        ("naa", {"samples": 10_000, "classes": 100, "features": 512}),
    ],
)
def test_the_full_size_keeps_within_time_and_memory(benchmark: str, sizes: dict[str, int]):
    """By CPU time on one thread, in which waiting for a core does not count."""
    found = fresh_pass(benchmark, sizes, threads=1)
    assert 1 < found.cpu_seconds / unit_seconds() < GUARD, found
    assert found.before_bytes < found.peak_bytes < 2 * GIB
    assert found.threads == 1


@pytest.mark.long
def test_a_fresh_process_that_fails_says_why():
    with pytest.raises(InputError, match=r"bench metrics: the new process failed: .*claases"):
        fresh_pass("metrics", {"samples": 10, "claases": 5}, threads=1)


def test_tree_losses_beside_flat_cross_entropy():
    found = time_tree_losses("cifar100", batch=4, repeats=1)
    assert (found.nodes, found.classes, found.batch) == (121, 100, 4)
    assert len(found.losses) == 5
    for loss, timing in found.losses.items():
        assert found.times_flat(loss) == timing.median / found.flat.median
        assert found.times_floor(loss) == timing.median / found.floor.median


@pytest.mark.long
@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize(
    ("arguments", "heading"),
    [
        (("metrics", "--samples", "100", "--classes", "30"), "metrics: 100 samples, 30 classes, 3 superclasses; "),
        (("naa", "--samples", "20", "--classes", "4", "--features", "3"), "naa: 20 samples, 4 classes, 3 features; "),
        (("tree-losses", "cifar10", "--batch", "2"), "tree losses: cifar10, "),
        (
            ("many-labels", "--labels", "90", "--features", "4", "--tokens", "6", "--optimizer"),
            "many labels: 90 labels, ",
        ),
    ],
)
def test_the_command_prints_a_table_and_json(arguments, heading: str):
    printed = CliRunner().invoke(app, [*arguments, "--repeats", "1"])
    assert printed.exit_code == 0, printed.output
    assert printed.stdout.startswith(heading)
    asked = CliRunner().invoke(app, [*arguments, "--repeats", "1", "--json"])
    found = json.loads(asked.stdout)
    assert (found[0] if isinstance(found, list) else found)["benchmark"] == arguments[0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: time_metrics(samples=10), "samples: expected a whole number of at least 100, got 10"),
        (lambda: time_naa(samples=5, classes=10), "samples: expected a whole number of at least 10, got 5"),
        (lambda: time_tree_losses("cifar100", batch=0), "batch: expected a whole number of at least 1, got 0"),
        (lambda: time_many_labels(labels=1), "labels: expected a whole number of at least 2, got 1"),
    ],
)
def test_sizes_that_cannot_be_are_refused(call, sentence: str):
    with pytest.raises(InputError, match=sentence):
        call()


@pytest.mark.long
def test_training_times_count_steps_and_evaluations():
    found = time_training(["one-hot"], backbone="tiny-cnn", samples=320, batch=64, epochs=3, precision="32-true")
    row = found.rows[0]
    assert (row.objective, row.way, row.note) == ("one-hot", "plain", None)
    assert row.epoch > 0
    assert row.end > 0
    assert row.first_step > 0
    assert row.loss < 6


@pytest.mark.long
def test_fleet_times_are_throughputs_of_the_same_training(tmp_path):
    found = time_fleet("label-smoothing", members=3, backbone="mlp", samples=120, batch=32, epochs=2, size=8)
    assert min(found.alone, found.alone_end, found.fleet, found.fleet_end, found.begun) > 0
    assert found.throughput == pytest.approx(
        3 * (found.alone + found.alone_end) / (found.fleet + found.fleet_end), rel=1e-9
    )
    assert 0 <= found.loss_difference < 1e-4
    file = tmp_path / "fleet.json"
    options = ("--members", 2, "--backbone", "mlp", "--samples", 120, "--epochs", 2, "--size", 8)
    shown = CliRunner().invoke(app, ["fleet", *map(str, options), "-o", str(file)])
    assert "x the throughput of one after another" in shown.stdout
    assert "Convolutions: grouped." in shown.stdout.replace("\n", " ")
    assert json.loads(file.read_text())["members"] == 2
    with pytest.raises(InputError, match="members: expected a whole number of at least 2, got 1"):
        time_fleet(members=1)
