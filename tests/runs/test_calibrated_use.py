"""The temperature of a run is used wherever its probabilities are: predict, evaluate, export, audit and the report."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError, Taxonomy, decide
from labelkin.audit import audit
from labelkin.data import load
from labelkin.report._inspect_run import RunData, RunInspector
from labelkin.runs import RunFolder, Store, evaluate, export_model, load_run, write_predictions
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


def test_options_of_another_rule_and_missing_probabilities_are_refused(home: Path):
    model = load_run(home / "one-hot")
    with pytest.raises(InputError, match="threshold: applies to the rule 'fallback', got 'crm'"):
        model.predict(INPUTS, decide="crm", threshold=0.5)
    with pytest.raises(InputError, match="costs: apply to the rule 'crm', got 'argmax'"):
        model.predict(INPUTS, decide="argmax", costs=torch.eye(10))
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


@pytest.mark.long
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
    assert list(rows[0])[5:] == ["kind", *(f"p_{k}" for k in range(10))]
    assert all(sum(float(row[f"p_{k}"]) for k in range(10)) == pytest.approx(1, abs=1e-4) for row in rows)
    header = "," + ",".join(map(str, range(10)))
    (tmp_path / "costs.csv").write_text("\n".join([header, *(f"{k}," + ",".join("0111111111") for k in range(10))]))
    assert call(*command, tmp_path / "q.jsonl", "--decide", "crm", "--costs", tmp_path / "costs.csv").exit_code == 0
    assert {json.loads(line)["class"] for line in (tmp_path / "q.jsonl").read_text().splitlines()} == {"0"}
    assert "applies to the rule 'fallback'" in refused(
        *command, tmp_path / "r.csv", "--decide", "crm", "--threshold", "0.5"
    )
    assert "there is no file" in refused(
        *command, tmp_path / "r.csv", "--decide", "crm", "--costs", tmp_path / "none.csv"
    )


@pytest.mark.long
def test_the_commands_say_what_a_guarantee_assumes_and_that_a_run_is_not_calibrated(home: Path, tmp_path: Path):
    labelkin.train("digits", "one-hot", out=tmp_path / "raw", epochs=1, calibration=0)
    raw = call("predict", tmp_path / "raw", home / "x.npy", "-o", tmp_path / "raw.csv")
    assert f"Note: {tmp_path / 'raw'} is not calibrated, because it held out fewer than 50 samples" in raw.stderr
    exported = call("export", tmp_path / "raw", "-o", tmp_path / "raw.pt2")
    assert "raw is not calibrated" in exported.stderr
    for run in ("given", "plain"):  # the second has no probabilities
        assert call("predict", home / run, home / "x.npy", "-o", tmp_path / "p.csv").stderr == ""
    safe = call("predict", home / "given", home / "x.npy", "-o", tmp_path / "safe.csv", "--coverage", "0.9")
    assert "At least 90 % of the answers are right or the root, on average, if the new samples come from" in safe.stderr
    assert "calibrated" not in safe.stderr
    more = ("--coverage", "0.9", "--confidence", "0.95")
    sure = call("predict", home / "given", home / "x.npy", "-o", tmp_path / "safe.csv", *more)
    assert "At least 90 % of the answers are right or the root, with a confidence of 95 %, if the" in sure.stderr
    rows = list(csv.DictReader((tmp_path / "safe.csv").open()))
    assert [row["class"] for row in rows] == load_run(home / "given").predict(
        INPUTS, coverage=0.9, confidence=0.95
    ).classes
    assert call("export", home / "given", "-o", tmp_path / "sure.pt2", *more).exit_code == 0
    extra = {"labelkin.json": ""}
    torch.export.load(tmp_path / "sure.pt2", extra_files=extra)
    assert json.loads(extra["labelkin.json"])["confidence"] == 0.95


@pytest.mark.long
@pytest.mark.parametrize(
    ("share", "advice"),
    [
        (0.0, "train it with --calibration 0.2, or give"),
        (0.3, "train it with more samples, or with a larger --calibration than 0.3, or give"),
        (0.5, "train it with more samples, or give"),
    ],
)
def test_a_run_that_held_out_too_little_is_told_what_would_help(tmp_path: Path, home: Path, share: float, advice: str):
    options = {"epochs": 1, "calibration": share, "taxonomy": home / "tree.json", "data_options": {"subset": 0.06}}
    labelkin.train("digits", "one-hot", out=tmp_path / "run", **options)
    with pytest.raises(InputError, match=re.escape(advice)):
        load_run(tmp_path / "run").predict(INPUTS, coverage=0.9)


def test_a_coverage_takes_temperature_and_threshold_from_different_held_out_samples(home: Path):
    outputs, model = RunFolder(home / "given").outputs(), load_run(home / "given")
    scores, target = outputs["calibration_scores"].double(), outputs["calibration_target"]
    first, second = decide.split_halves(len(target))
    warm = decide.Temperature().fit(scores[first], target[first], prior=1.0).value
    assert warm is not None
    held = decide.node_probs((scores[second] / warm).softmax(-1), model.taxonomy)
    safe = decide.GuaranteedFallback(0.1).fit(held, target[second], model.taxonomy)
    probs = (model.predict(INPUTS).scores.double() / warm).softmax(-1)
    expected = safe.apply(decide.node_probs(probs, model.taxonomy), model.taxonomy)
    found = model.predict(INPUTS, coverage=0.9)
    assert found.nodes is not None
    assert torch.equal(found.nodes, expected)
    assert not torch.equal(found.nodes, expected[0].expand_as(expected))
    again = model.predict(INPUTS, decide=model.rule("fallback", coverage=0.9))
    assert again.nodes is not None
    assert torch.equal(again.nodes, expected)
    surer = model.predict(INPUTS, coverage=0.9, confidence=0.95)
    strict = decide.GuaranteedFallback(0.1, confidence=0.95).fit(held, target[second], model.taxonomy)
    assert surer.nodes is not None
    assert torch.equal(surer.nodes, strict.apply(decide.node_probs(probs, model.taxonomy), model.taxonomy))
    assert not torch.equal(surer.nodes, expected)
    torch.testing.assert_close(found.all_probabilities, probs.float())
    right = [
        node in model.taxonomy.ancestors(int(model.taxonomy.leaves[k]))
        for node, k in zip(expected.tolist(), load("digits").test.targets.tolist(), strict=True)
    ]
    assert np.mean(right) > 0.8  # single splits may fall a little below .9


@pytest.mark.long
def test_a_coverage_that_the_run_cannot_give_is_refused(home: Path, tmp_path: Path):
    labelkin.train("digits", "one-hot", out=tmp_path / "run", epochs=1, calibration=0, taxonomy=home / "tree.json")
    with pytest.raises(InputError, match="stores no held-out samples"):
        load_run(tmp_path / "run").predict(INPUTS, coverage=0.9)
    model = load_run(home / "given")
    with pytest.raises(InputError, match="at least 99 calibration samples besides those for the temperature, got 72"):
        model.predict(INPUTS, coverage=0.99)
    with pytest.raises(InputError, match="only the root is always right"):
        model.predict(INPUTS, coverage=1)
    with pytest.raises(InputError, match="leave one of them out"):
        model.predict(INPUTS, coverage=0.9, threshold=0.5)
    with pytest.raises(InputError, match="pass them to rule"):
        model.predict(INPUTS, decide=model.rule(), coverage=0.9)
    with pytest.raises(InputError, match="pass them to rule"):
        model.predict(INPUTS, decide=model.rule(), confidence=0.9)
    with pytest.raises(InputError, match=r"with a confidence of 0\.9999 needs at least 88 calibration samples"):
        model.predict(INPUTS, coverage=0.9, confidence=0.9999)


def test_the_command_explains_answers_with_a_guarantee(home: Path, tmp_path: Path):
    command = ("predict", home / "given", home / "x.npy", "-o", tmp_path / "p.csv")
    assert call(*command, "--coverage", "0.9", "--explain", "--all-probs").exit_code == 0
    model, rows = load_run(home / "given"), list(csv.DictReader((tmp_path / "p.csv").open()))
    found = model.predict(INPUTS, coverage=0.9)
    assert [row["class"] for row in rows] == found.classes
    assert list(rows[0])[:7] == ["input", "row", "class", "probability", "path", "kind", "why"]
    for row in rows[:40]:
        names = row["path"].split("/")[1:] or ["root"]
        below = {name: sum(float(row[f"p_{k}"]) for k in members) for name, members in TREE.items()}
        every = {"root": 1.0, **below, **{k: float(row[f"p_{k}"]) for k in "0123456789"}}
        assert [step.split(" ")[0] for step in row["why"].split(" > ")] == names
        shown = [float(step.split(" ")[1]) for step in row["why"].split(" > ")]
        assert shown == pytest.approx([every[name] for name in names], abs=0.006)
    assert "has no taxonomy" in refused(
        "predict", home / "one-hot", home / "x.npy", "-o", tmp_path / "q.csv", "--explain"
    )
    assert "has no probabilities" in refused(
        "predict", home / "plain", home / "x.npy", "-o", tmp_path / "q.csv", "--explain"
    )


def test_asymmetric_costs_of_the_command_follow_the_class_names(home: Path, tmp_path: Path):
    """A missed 9 costs 50 and a wrong 9 costs 1; the table lists the classes in another order."""
    names = list("9876543210")
    rows = [[0 if true == given else 50 if true == "9" else 1 for given in names] for true in names]
    lines = [",".join(["", *names]), *(",".join([name, *map(str, row)]) for name, row in zip(names, rows, strict=True))]
    (tmp_path / "costs.csv").write_text("\n".join(lines))
    told = call(
        "predict", home / "given", home / "x.npy", "-o", tmp_path / "p.jsonl", "--costs", tmp_path / "costs.csv"
    )
    assert told.exit_code == 0, told.stderr
    answers = [json.loads(line)["class"] for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    probs = load_run(home / "given").predict(INPUTS).all_probabilities
    assert probs is not None
    expected = []
    for row in probs.double().tolist():
        paid = {j: sum(p * (0 if i == j else 50 if i == 9 else 1) for i, p in enumerate(row)) for j in range(10)}
        expected.append(str(min(paid, key=lambda j: (round(paid[j], 9), -row[j]))))
    assert answers == expected
    assert answers != load_run(home / "given").predict(INPUTS).classes


def test_evaluation_repeats_the_calibrated_decisions(home: Path):
    record = Store(home).find("one-hot")
    assert record.final is not None
    final = {name: value for name, value in record.final.items() if name != "epoch"}
    assert evaluate(record.path).metrics == pytest.approx(final, abs=1e-4, nan_ok=True)


@pytest.mark.long
@pytest.mark.parametrize("name", ["one-hot", "static-labels"])
def test_the_temperature_is_inside_the_exported_program(name: str, home: Path, tmp_path: Path):
    export_model(home / name, tmp_path / "model.pt2")
    pixels = INPUTS.permute(0, 2, 3, 1).expand(-1, -1, -1, 3)
    log_probs = torch.export.load(tmp_path / "model.pt2").module()(pixels)["log_probs"]
    expected = load_run(home / name).predict(INPUTS).all_probabilities
    torch.testing.assert_close(log_probs.exp(), expected, atol=1e-4, rtol=1e-3)


@pytest.mark.long
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
