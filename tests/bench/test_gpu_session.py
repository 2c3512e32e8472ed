"""The script for a session on a GPU: what it makes of results, and one benchmark in small size from start to end."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import gpu_session
from gpu_session import Line, Session, Step


def test_targets_are_limits_from_above_or_below():
    assert Line("a", 1.0, 1.0).met
    assert not Line("a", 1.1, 1.0).met
    assert Line("a", 8.0, 8.0, at_least=True).met
    assert not Line("a", 7.9, 8.0, at_least=True).met


def test_losses_are_judged_by_their_time_in_a_graph():
    rows = [
        {"case": "HXE, inat21", "batch": 4096, "ratio": 2.5, "replay_ratio": 0.9},
        {"case": "class targets, dense, K 1000", "batch": 4096, "ratio": 2.5, "replay_ratio": 0.9},
    ]
    found = list(gpu_session.loss_lines({"rows": rows}))
    assert [(line.value, line.limit, line.met) for line in found] == [(0.9, 1.0, True), (0.9, 0.8, False)]
    on_cpu = list(gpu_session.loss_lines({"rows": [{**rows[0], "replay_ratio": None}]}))
    assert [(line.value, line.limit) for line in on_cpu] == [(2.5, 2.0)]


def test_the_table_says_what_is_met(tmp_path: Path):
    session = Session(tmp_path, seconds=0)
    session.lines = [Line("a", 0.5, 1.0, "x"), Line("b", 2.0, 8.0, "x", at_least=True)]
    first, second, last = session.table().splitlines()
    assert first.endswith("<= 1     met (0.50 of the target)")
    assert second.endswith(">= 8     missed (0.25 of the target)")
    assert last == "1 of 2 targets met."


def test_many_runs_are_computed_from_one():
    row = {"objective": "one-hot", "way": "captured", "epoch": 1.0, "end": 0.5, "first_step": 10.0}
    found = list(gpu_session.training_lines((1.3, 1.5), 10)({"backbone": "resnet-18", "rows": [row, row]}))
    assert found[-1].value == 12 * (30 * 1.5 + 10)
    assert not found[-1].met


def test_what_fails_or_has_no_time_is_noted(tmp_path: Path):
    session = Session(tmp_path, seconds=0)
    step = Step("losses", "", "", gpu_session.loss_lines)
    session.bench(step, ["losses"])
    assert session.notes == ["losses: not run, because no time was left"]
    session = Session(tmp_path, seconds=300)
    assert session.call("failing", [sys.executable, "-c", "import sys; sys.exit('broken')"]) == ""
    assert session.notes == ["failing: exit code 1: broken"]
    assert "0 of 0 targets met" in session.table()


@pytest.mark.long
def test_a_benchmark_runs_from_start_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    given = ["--out", str(tmp_path), "--small", "--only", "many-labels", "--seconds", "300"]
    assert gpu_session.main(given) == 0
    assert json.loads((tmp_path / "many-labels.json").read_text())["labels"] == 50
    assert "compressed label embedding: time" in (tmp_path / "table.txt").read_text()
    assert "1 values, small sizes." in capsys.readouterr().out


def test_commands_keep_quoted_words_together():
    assert gpu_session._words("training --way 'compiled and captured' -x") == [
        "training",
        "--way",
        "compiled and captured",
        "-x",
    ]
