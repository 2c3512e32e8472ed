"""The temperature of a run is used wherever its probabilities are: predict, evaluate, export, audit and the report."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError, Taxonomy
from labelkin.audit import audit
from labelkin.data import load
from labelkin.report._inspect_run import RunData, RunInspector
from labelkin.runs import RunFolder, Store, evaluate, export_model, load_run, write_predictions
from labelkin.runs._answers import answers
from support.commands import call, refused

INPUTS = load("digits").test.inputs
TREE = {"round": ["0", "6", "8", "9"], "straight": ["1", "4", "7"], "open": ["2", "3", "5"]}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibrated")
    Taxonomy.from_nested(TREE).save(folder / "tree.json")
    for name in ("one-hot", "static-labels"):
        labelkin.train("digits", name, out=folder / name, epochs=1, calibration=0.1)
    labelkin.train("digits", "one-hot", out=folder / "given", epochs=1, calibration=0.1, taxonomy=folder / "tree.json")
    labelkin.train("digits", "static-labels", out=folder / "plain", epochs=1, calibration=0)
    np.save(folder / "x.npy", INPUTS.numpy())
    return folder


def temperature(run: Path) -> float:
    final = RunFolder(run).final
    assert final is not None
    assert final["calibration_samples"] == 144
    assert abs(final["temperature"] - 1) > 0.05  # else the tests below would see nothing
    return float(final["temperature"])


@pytest.mark.parametrize("name", ["one-hot", "static-labels"])
def test_predicted_probabilities_are_the_softmax_of_scores_over_the_temperature(name: str, home: Path):
    found = load_run(home / name).predict(INPUTS)
    expected = torch.softmax(found.scores.double() / temperature(home / name), -1)
    assert found.all_probabilities is not None
    assert found.probabilities is not None
    torch.testing.assert_close(found.all_probabilities, expected.float())
    torch.testing.assert_close(found.probabilities, expected.amax(-1).float())
    assert found.positions.tolist() == found.scores.argmax(-1).tolist()


def test_each_rule_gives_its_answers(home: Path):
    model = load_run(home / "given")
    probs = model.predict(INPUTS).all_probabilities
    assert probs is not None
    distance = model.taxonomy.distance("height")
    by_cost = model.predict(INPUTS, decide="crm")
    expected = probs.double().numpy() @ distance
    chosen = expected[np.arange(len(probs)), by_cost.positions.numpy()]
    assert (chosen <= expected.min(1) + 1e-6).all()
    costs = torch.ones(10, 10) - torch.eye(10)
    costs[:, 3] = 0  # naming a 3 is free
    assert set(model.predict(INPUTS, decide="crm", costs=costs).classes) == {"3"}
    sure = model.predict(INPUTS, decide="fallback", threshold=0.9)
    assert sure.probabilities is not None
    inner = sure.positions < 0
    assert 0 < int(inner.sum()) < len(inner)
    assert (sure.probabilities[~torch.tensor([name == "root" for name in sure.classes])] >= 0.9).all()
    assert {name for name, below in zip(sure.classes, inner.tolist(), strict=True) if below} <= {"root", *TREE}
    loose = model.predict(INPUTS, decide="fallback", threshold=0.0)
    assert (loose.positions >= 0).all()


def test_the_default_threshold_of_a_fallback_is_a_half():
    tree = Taxonomy.from_nested(TREE)
    probs = torch.softmax(torch.randn(50, 10, generator=torch.Generator().manual_seed(0)), -1)
    plain, half = (answers(probs.log(), probs, tree, "fallback", threshold=value) for value in (None, 0.5))
    assert torch.equal(plain.nodes, half.nodes)


def test_options_of_another_rule_and_missing_probabilities_are_refused(home: Path):
    model = load_run(home / "one-hot")
    with pytest.raises(InputError, match="threshold: applies to the rule 'fallback', got 'crm'"):
        model.predict(INPUTS, decide="crm", threshold=0.5)
    with pytest.raises(InputError, match="costs: apply to the rule 'crm', got 'argmax'"):
        model.predict(INPUTS, costs=torch.eye(10))
    with pytest.raises(InputError, match="was built from its data"):
        model.predict(INPUTS, decide="fallback")
    with pytest.raises(InputError, match="decide: expected"):
        model.predict(INPUTS, decide="best")  # type: ignore[arg-type]
    plain = load_run(home / "plain")
    assert plain.predict(INPUTS).probabilities is None
    with pytest.raises(InputError, match="'crm' needs probabilities"):
        plain.predict(INPUTS, decide="crm")
    with pytest.raises(InputError, match="has no probabilities"):
        write_predictions(home / "plain", [home / "x.npy"], home / "p.csv", all_probs=True)


def test_the_command_writes_answers_of_a_rule_and_all_probabilities(home: Path, tmp_path: Path):
    command = ("predict", home / "given", home / "x.npy", "-o")
    assert (
        call(*command, tmp_path / "p.csv", "--decide", "fallback", "--threshold", "0.9", "--all-probs").exit_code == 0
    )
    rows = list(csv.DictReader((tmp_path / "p.csv").open()))
    found = load_run(home / "given").predict(INPUTS, decide="fallback", threshold=0.9)
    assert [row["class"] for row in rows] == found.classes
    inner = next(row for row in rows if row["class"] in TREE)
    assert inner["path"] == f"root/{inner['class']}"
    assert list(rows[0])[5:] == [f"p_{k}" for k in range(10)]
    assert all(sum(float(row[f"p_{k}"]) for k in range(10)) == pytest.approx(1, abs=1e-4) for row in rows)
    header = "," + ",".join(map(str, range(10)))
    (tmp_path / "costs.csv").write_text("\n".join([header, *(f"{k}," + ",".join("0111111111") for k in range(10))]))
    assert call(*command, tmp_path / "q.jsonl", "--decide", "crm", "--costs", tmp_path / "costs.csv").exit_code == 0
    assert {json.loads(line)["class"] for line in (tmp_path / "q.jsonl").read_text().splitlines()} == {"0"}
    assert "applies to the rule 'fallback'" in refused(*command, tmp_path / "r.csv", "--threshold", "0.5")
    assert "there is no file" in refused(
        *command, tmp_path / "r.csv", "--decide", "crm", "--costs", tmp_path / "none.csv"
    )


def test_evaluation_repeats_the_calibrated_decisions(home: Path):
    record = Store(home).find("one-hot")
    assert record.final is not None
    final = {name: value for name, value in record.final.items() if name != "epoch"}
    assert evaluate(record.path).metrics == pytest.approx(final, abs=1e-4, nan_ok=True)


@pytest.mark.parametrize("name", ["one-hot", "static-labels"])
def test_the_temperature_is_inside_the_exported_program(name: str, home: Path, tmp_path: Path):
    export_model(home / name, tmp_path / "model.pt2")
    log_probs = torch.export.load(tmp_path / "model.pt2").module()(INPUTS)
    expected = load_run(home / name).predict(INPUTS).all_probabilities
    torch.testing.assert_close(log_probs.exp(), expected, atol=1e-4, rtol=1e-3)


def test_a_run_is_audited_with_its_own_tree_and_calibrated_scores(home: Path):
    found, final = audit(home / "given"), RunFolder(home / "given").final
    assert final is not None
    assert found.kind == "logits"
    assert found.basics.accuracy == pytest.approx(final["accuracy"])
    assert found.calibration is not None
    assert found.calibration.ece == pytest.approx(final["decided_ece"], abs=1e-4)
    assert found.hierarchy is not None
    assert found.hierarchy.severity == pytest.approx(final["severity"])
    assert found.classes == tuple("0123456789")
    assert audit(home / "one-hot").hierarchy is None  # its tree was built from the data
    assert audit(home / "one-hot", taxonomy=home / "tree.json").hierarchy is not None
    assert audit(home / "plain").kind == "labels"
    told = call("audit", home / "given", "--json")
    assert json.loads(told.stdout)["samples"] == 359


def test_a_folder_without_outputs_is_not_audited(home: Path, tmp_path: Path):
    call("runs", "pack", home, "-o", tmp_path / "all.zip")
    call("runs", "unpack", tmp_path / "all.zip", "-o", tmp_path / "there")
    assert "no stored outputs" in refused("audit", tmp_path / "there/given")
    assert "not the folder of a run" in refused("audit", tmp_path)


def test_the_reliability_figure_shows_calibrated_probabilities(home: Path):
    record = Store(home).find("one-hot")
    assert record.final is not None
    mistakes = RunInspector(record, RunData(record.config))._mistakes()
    assert mistakes.calibration is not None
    assert mistakes.calibration.error == pytest.approx(record.final["decided_ece"], abs=1e-6)
    assert mistakes.temperature == record.final["temperature"]
