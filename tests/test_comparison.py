"""The table: what its figures are, worked out again from the runs' own files."""

import csv
import json
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch

import labelkin
from labelkin import InputError
from labelkin.experiments import Comparison, Row
from labelkin.experiments.table import HEADINGS, as_markdown, cells, verdict

SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> labelkin.experiments.Comparison:
    out = tmp_path_factory.mktemp("compared")
    objectives = ["label-embedding", "one-hot", "adaptive-labels"]
    return labelkin.compare(
        objectives=objectives, seeds=SEEDS, out=out, epochs=3, lr=5e-3, data_options={"subset": 0.4}
    )


def finals(folder: Path, objective: str) -> list[dict[str, float]]:
    return [json.loads((folder / objective / f"seed-{seed}" / "final.json").read_text()) for seed in SEEDS]


def curve(folder: Path, objective: str) -> list[float]:
    """Test accuracy by epoch, averaged over seeds."""
    read = []
    for seed in SEEDS:
        with (folder / objective / f"seed-{seed}" / "metrics.csv").open(newline="") as file:
            read.append([float(row["test_accuracy"]) for row in csv.DictReader(file)])
    return [mean(epoch) for epoch in zip(*read, strict=True)]


def test_differences_are_paired_by_seed(compared):
    for row in compared.rows:
        pairs = zip(finals(compared.folder, row.objective), finals(compared.folder, "one-hot"), strict=True)
        apart = [ours["accuracy"] - theirs["accuracy"] for ours, theirs in pairs]
        assert row.difference == pytest.approx(mean(apart))
        assert row.difference_spread == pytest.approx(stdev(apart))
        assert row.accuracy == pytest.approx(mean(f["accuracy"] for f in finals(compared.folder, row.objective)))
        assert row.runs == len(SEEDS)


def test_when_the_mean_curve_reaches_the_references_best(compared):
    best = max(curve(compared.folder, "one-hot"))
    for row in compared.rows:
        late = [i + 1 for i, accuracy in enumerate(curve(compared.folder, row.objective)) if accuracy >= best]
        assert row.epochs_to_reference == (late[0] if late else None)
    assert compared.rows[1].epochs_to_reference is not None


def test_the_same_table_in_every_form(compared):
    lines = as_markdown(compared).splitlines()
    assert lines[0] == f"| {' | '.join(HEADINGS)} |"
    assert lines[3] == f"| {' | '.join(cells(compared.rows[1]))} |"
    assert "+0.00 ± 0.00" in lines[3]
    for row in compared.rows:
        assert row.objective in str(compared)
        assert f"<td>{row.objective}</td>" in compared._repr_html_()


def test_finished_runs_are_not_repeated_and_others_not_mixed_in(compared):
    files = {path: path.stat().st_mtime_ns for path in compared.folder.rglob("*") if path.is_file()}
    again = labelkin.compare(
        objectives=["one-hot"], seeds=SEEDS, out=compared.folder, epochs=3, lr=5e-3, data_options={"subset": 0.4}
    )
    assert again.rows[0].accuracy == compared.rows[1].accuracy
    assert files == {path: path.stat().st_mtime_ns for path in compared.folder.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="epochs 3, not 4"):
        labelkin.compare(
            objectives=["one-hot"], seeds=SEEDS, out=compared.folder, epochs=4, lr=5e-3, data_options={"subset": 0.4}
        )


def row(objective: str, difference: float, spread: float, runs: int = 3) -> Row:
    return Row(objective, runs, 0.9, 0.01, difference, spread, 1.0, 1.0, None, 1.0)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [row("one-hot", 0, 0), row("a", 0.02, 0.005), row("b", -0.02, 0.005)],
            "Better than one-hot: a. Worse than one-hot: b.",
        ),
        # 4.303 / sqrt(3) = 2.484 standard deviations are the half-width at three seeds.
        (
            [row("one-hot", 0, 0), row("a", 0.0249, 0.01), row("b", 0.0248, 0.01)],
            "Better than one-hot: a. No difference",
        ),
        ([row("one-hot", 0, 0), row("a", 0.01, 0.01)], "No difference to one-hot is shown. (3 seeds"),
        ([row("one-hot", 0, float("nan"), 1), row("a", 0.3, float("nan"), 1)], "One seed cannot tell a difference"),
        ([row("a", float("nan"), float("nan"))], "Without one-hot"),
    ],
)
def test_the_verdict_goes_as_far_as_the_seeds(rows: list[Row], sentence: str):
    assert verdict(Comparison(rows, Path(), "given")).startswith(sentence)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"options": {"semantic-smoothing": {"relation": torch.eye(10)}}}, "relation"),
        ({"taxonomy": labelkin.Taxonomy.from_nested(["a", "b"])}, "taxonomy"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_anything_is_written(wrong: dict, name: str, tmp_path: Path):
    with pytest.raises(InputError, match=f"{name}: a recorded run takes numbers"):
        labelkin.compare(objectives=["semantic-smoothing"], out=tmp_path / "runs", epochs=1, **wrong)
    assert not (tmp_path / "runs").exists()
