"""The table: what its figures are, worked out again from the runs' own files."""

import csv
import io
import json
from math import isnan
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest
import torch
from scipy import stats

import labelkin
from labelkin import InputError
from labelkin.comparison import Comparison, Row, summarize
from labelkin.comparison._statistics import better_by_chance, bootstrap, front, paired, seeds_to_settle, student
from labelkin.comparison._table import (
    COLUMNS,
    comparison_as_csv,
    comparison_as_markdown,
    table_cells,
    table_columns,
    table_headings,
)
from labelkin.runs import Store
from support.commands import run_in

SEEDS = (0, 1, 2)
SETTINGS = {"epochs": 3, "lr": 5e-3, "data_options": {"subset": 0.4}}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    out = tmp_path_factory.mktemp("compared")
    objectives = ["label-embedding", "one-hot", "adaptive-labels"]
    return labelkin.compare(objectives=objectives, seeds=SEEDS, out=out, **SETTINGS)


def finals(folder: Path, objective: str) -> list[dict[str, float]]:
    return [json.loads((run_in(folder, objective, seed) / "final.json").read_text()) for seed in SEEDS]


def curve(folder: Path, objective: str) -> list[float]:
    """Test accuracy by epoch, averaged over seeds."""
    read = []
    for seed in SEEDS:
        with (run_in(folder, objective, seed) / "metrics.csv").open(newline="") as file:
            read.append([float(row["test_accuracy"]) for row in csv.DictReader(file)])
    return [mean(epoch) for epoch in zip(*read, strict=True)]


@pytest.mark.long
def test_differences_are_paired_by_seed(compared):
    for row in compared.rows:
        pairs = zip(finals(compared.folder, row.label), finals(compared.folder, "one-hot"), strict=True)
        apart = [ours["accuracy"] - theirs["accuracy"] for ours, theirs in pairs]
        assert row.difference == pytest.approx(mean(apart))
        assert row.difference_spread == pytest.approx(stdev(apart))
        assert row.accuracy == pytest.approx(mean(f["accuracy"] for f in finals(compared.folder, row.label)))
        assert (row.runs, row.seeds) == (len(SEEDS), SEEDS)
        for name in ("severity", "ahd5", "ece", "crm_ahd5", "structure"):
            assert getattr(row, name) == pytest.approx(mean(f[name] for f in finals(compared.folder, row.label)))


def test_a_seed_trained_twice_is_one_seed(compared):
    runs = [run for own in compared.records.values() for run in own]
    again = [run._replace(config={**run.config, "settings": {**run.config["settings"], "threads": 2}}) for run in runs]
    assert summarize([*runs, *again]).rows == compared.rows
    newer = runs[0]._replace(config={**runs[0].config, "revision": 99})
    assert summarize([*runs, newer]).records[newer.label][0].config["revision"] == 99


def test_when_the_mean_curve_reaches_the_references_best(compared):
    best = max(curve(compared.folder, "one-hot"))
    for row in compared.rows:
        late = [i + 1 for i, accuracy in enumerate(curve(compared.folder, row.label)) if accuracy >= best]
        assert row.epochs_to_reference == (late[0] if late else None)
        if late:
            assert row.epochs_saved == pytest.approx(1 - late[0] / 3)
            assert row.seconds_to_reference == pytest.approx(row.seconds * late[0] / 3)
    assert compared.rows[1].epochs_to_reference is not None


def test_the_same_table_in_every_form(compared):
    lines = comparison_as_markdown(compared).splitlines()
    shown = table_columns(compared)
    empty = {"BLEU", "seeds to settle", "epochs to {reference}'s best", "seconds to it", "temperature"}
    assert set(COLUMNS) - set(shown) <= empty
    assert lines[0] == f"| {' | '.join(table_headings(compared, shown))} |"
    assert "against one-hot" in lines[0]
    assert lines[3] == f"| {' | '.join(table_cells(compared.rows[1], shown))} |"
    assert "+0.00 [+0.00, +0.00]" in lines[3]
    read = list(csv.DictReader(io.StringIO(comparison_as_csv(compared))))
    assert [float(line["accuracy"]) for line in read] == [row.accuracy for row in compared.rows]
    for row in compared.rows:
        assert row.label in str(compared)
        assert f"<td>{row.label}</td>" in compared._repr_html_()


def test_finished_runs_are_not_repeated(compared):
    files = {path: path.stat().st_mtime_ns for path in compared.folder.rglob("*") if path.is_file()}
    again = labelkin.compare(objectives=["one-hot"], seeds=SEEDS, out=compared.folder, **SETTINGS)
    assert again.rows[0].accuracy == compared.rows[1].accuracy
    assert files == {path: path.stat().st_mtime_ns for path in compared.folder.rglob("*") if path.is_file()}


def test_runs_of_two_settings_are_not_one_comparison(compared):
    records = Store(compared.folder).records()
    longer = records[0]._replace(config={**records[0].config, "settings": {**records[0].settings, "epochs": 9}})
    with pytest.raises(InputError, match="expected runs of one setting, got 2"):
        summarize([*records, longer])


def test_a_seed_without_its_pair_is_left_out_of_the_difference_alone(compared):
    records = [r for r in Store(compared.folder).records() if (r.label, r.seed) != ("one-hot", 1)]
    row = next(row for row in summarize(records).rows if row.label == "label-embedding")
    ours, theirs = finals(compared.folder, "label-embedding"), finals(compared.folder, "one-hot")
    assert row.runs == 3
    assert row.difference == pytest.approx(mean(ours[s]["accuracy"] - theirs[s]["accuracy"] for s in (0, 2)))


# What a few seeds can show


@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_the_interval_is_the_wider_of_students_and_the_bootstraps(count: int):
    given = np.random.default_rng(count).normal(0.01, 0.02, count)
    found = paired(given.tolist())
    low, high = stats.t.interval(0.95, count - 1, given.mean(), stats.sem(given))
    inner = bootstrap(given.tolist())
    assert found.low == pytest.approx(min(low, inner[0]))
    assert found.high == pytest.approx(max(high, inner[1]))
    assert given.min() <= inner[0] < given.mean() < inner[1] <= given.max()


@pytest.mark.parametrize(("count", "shown"), [(2, False), (3, False), (6, False), (7, True)])
def test_differences_that_are_all_the_same_are_no_proof(count: int, shown: bool):
    """Two seeds that miss the same two of 359 samples more: Student's half-width in units of the difference is t / sqrt(n)."""
    found = paired([-2 / 359] * count)
    assert found.shown == shown
    assert found.low == pytest.approx(-2 / 359 * (1 + student(count - 1) / count**0.5))
    assert paired([0.0] * count)[:4] == (0, 0, 0, 0)


def test_the_bootstrap_is_scipys():
    given = np.random.default_rng(0).exponential(1.0, 30)
    theirs = stats.bootstrap((given,), np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    assert bootstrap(given.tolist()) == pytest.approx((theirs.low, theirs.high), abs=0.02)


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(0)
    held = sum((found := paired(generator.normal(0.3, 1.0, 4).tolist())).low <= 0.3 <= found.high for _ in range(300))
    assert held >= 0.92 * 300


@pytest.mark.long
@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0])
def test_so_many_seeds_show_the_difference_four_times_of_five(shift: float):
    count = seeds_to_settle(shift, 1.0)
    generator = np.random.default_rng(1)
    shown = [stats.ttest_1samp(generator.normal(shift, 1.0, count), 0).pvalue < 0.05 for _ in range(2000)]
    assert 0.74 < np.mean(shown) < 0.93


def test_a_difference_that_thousands_of_seeds_would_not_show_has_no_number():
    assert seeds_to_settle(0.0, 1.0) is None
    assert seeds_to_settle(1e-4, 1.0) is None
    assert seeds_to_settle(-1e-200, 1.0) is None  # its square is no float


def test_the_front_is_what_no_other_beats():
    points = [(0.9, 2.0), (0.8, 1.0), (0.85, 2.5), (0.9, 2.0), (0.7, 1.5)]
    assert front(points) == [True, True, False, True, False]


def row(label: str, low: float, high: float, runs: int = 3, settle: int | None = None) -> Row:
    return Row(
        label=label,
        objective=label,
        runs=runs,
        seeds=tuple(range(runs)),
        accuracy=0.9,
        accuracy_spread=0.01,
        difference=(low + high) / 2 if not isnan(low) else 0.1,
        difference_low=low,
        difference_high=high,
        seeds_to_settle=settle,
    )


ONE_HOT = row("one-hot", 0, 0)


def said(*rows: Row, reference: str | None = "one-hot") -> str:
    verdict = Comparison(list(rows), reference, "digits", "given", Path(), {}, []).verdict
    return " ".join([str(verdict), *verdict.details])


def test_the_verdict_says_how_many_seeds_would_settle_it():
    rows = [ONE_HOT, row("a", -0.01, 0.01, settle=40), row("b", -0.01, 0.02, settle=9)]
    assert said(*rows).endswith("About 9 seeds would show the difference of b if it is this large.")
    assert "seeds would" not in said(*rows, row("c", 0.01, 0.02, settle=2))  # what is shown needs no more seeds


def test_the_verdict_says_that_test_data_are_what_is_needed():
    rows = [ONE_HOT, row("a", -0.01, 0.01)._replace(samples_to_settle=4000)]
    needed = "more test data is what is needed: about 4,000 test samples with 3 seeds if it is this large."
    assert said(*rows).endswith(f"More seeds would not show the difference of a; {needed}")


def test_every_column_has_a_cell():
    assert len(table_cells(ONE_HOT, list(COLUMNS))) == len(COLUMNS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"options": {"semantic-smoothing": {"relation": torch.eye(10)}}},
            "relation: expected a number, a string or a list",
        ),
        ({"taxonomy": labelkin.Taxonomy.from_nested(["a", "b"])}, "taxonomy: expected a name"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_anything_is_written(wrong: dict, message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message):
        labelkin.compare(objectives=["semantic-smoothing"], out=tmp_path / "runs", epochs=1, **wrong)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("rivals", "said"), [(0, "0.0"), (1, "0.0"), (14, "0.4"), (40, "1.0")])
def test_one_in_forty_looks_better_by_chance(rivals: int, said: str):
    assert better_by_chance(rivals) == said
