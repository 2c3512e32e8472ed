"""`labelkin bench losses` on small sizes: every case runs and agrees with float64, and a failure stops no other case."""

import json

import pytest
from typer.testing import CliRunner

from labelkin import InputError
from labelkin.bench import _loss_cases as loss_cases
from labelkin.bench import time_losses
from labelkin.cli._bench import app

SMALL = ["losses", "--device", "cpu", "--small", "--repeats", "1"]


def test_every_case_runs_and_agrees_with_float64(tmp_path):
    out = tmp_path / "losses.json"
    printed = CliRunner().invoke(app, [*SMALL, "-o", str(out)])
    assert printed.exit_code == 0, printed.output
    assert printed.stdout.startswith("losses: cpu, ")
    found = json.loads(out.read_text())
    assert found["benchmark"] == "losses"
    assert found["failures"] == {}
    assert len(found["rows"]) == len(list(loss_cases.cases("cpu", None, small=True))) == 21
    for row in found["rows"]:
        assert row["loss_error"] < 1e-5
        assert row["grad_error"] < 1e-5
        assert row["ratio"] == row["ours"]["call"] / row["flat"]["call"]
        assert row["case"] in printed.stdout


def test_only_names_the_cases_and_json_goes_to_the_output():
    printed = CliRunner().invoke(app, [*SMALL, "--only", "HXE", "--dtype", "bfloat16", "--json", "--cpu-time"])
    found = json.loads(printed.stdout)
    assert {row["case"].partition(",")[0] for row in found["rows"]} == {"HXE"}
    assert {row["dtype"] for row in found["rows"]} == {"bfloat16"}


def test_trees_come_from_a_folder(tmp_path):
    (tmp_path / "imagenet.csv").write_text("root,a\nroot,b\nroot,c\na,d\na,e\n")
    planned = list(loss_cases.cases("cpu", tmp_path, small=False))
    assert planned[0][0] == "conditional softmax, imagenet"
    assert planned[0][2](8).classes == 4


def test_a_case_that_fails_stops_no_other(monkeypatch):
    def fails(*_: object) -> None:
        raise RuntimeError("no such case")

    plan = [case for case in loss_cases.cases("cpu", None, small=True) if "HXE" in case[0]]
    monkeypatch.setattr(loss_cases, "cases", lambda *_, small: [("broken", 8, fails), *plan])
    printed = CliRunner().invoke(app, SMALL)
    assert printed.exit_code == 1
    assert "Failed: broken, batch 8: RuntimeError: no such case" in printed.stdout
    assert printed.stdout.count("HXE") == len(plan) == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"device": "tpu"}, "device: expected one of 'cpu', 'cuda', got 'tpu'"),
        ({"dtype": "float8"}, "dtype: expected one of 'float32', 'bfloat16', got 'float8'"),
        ({"repeats": 0}, "repeats: expected a whole number of at least 1, got 0"),
    ],
)
def test_options_that_cannot_be_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        time_losses(**{"device": "cpu", "small": True, **options})
