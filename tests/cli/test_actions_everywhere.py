"""One file of costs with actions: decide, predict, serve, export and audit choose the same answers and name them alike."""

import csv
import io
import json
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import labelkin
from labelkin import InputError, Taxonomy, audit_predictions
from labelkin.decide import Rule
from labelkin.runs import RunFolder, load_run
from support import reference
from support.commands import call, refused
from support.later import later_or_skip

INPUTS = labelkin.data.load("digits").test.inputs[:200]
DIGITS = [str(digit) for digit in range(10)]
TREE = {"round": ["0", "6", "8", "9"], "straight": ["1", "4", "7"], "open": ["2", "3", "5"]}
ACTIONS = ("ask a person", "wait")
RUNS = ("tree", "built")  # with a tree that has names, and with one that was built from the data
Rows = list[dict[str, Any]]


def cost(true: str, answer: str) -> float:
    """To miss an 8 costs 5; to wait is cheap for 0, 1 and 2."""
    if answer in ACTIONS:
        return 0.35 if answer == "ask a person" else 0.1 if true < "3" else 0.8
    return 0.0 if true == answer else 5.0 if true == "8" else 1.0


COSTS = {true: {answer: cost(true, answer) for answer in (*DIGITS, *ACTIONS)} for true in DIGITS}
MATRIX = torch.tensor([list(row.values()) for row in COSTS.values()], dtype=torch.float64)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("actions")
    Taxonomy.from_nested(TREE).save(folder / "tree.json")
    options: dict[str, Any] = {"epochs": 1, "calibration": 0.1}
    labelkin.train("digits", "one-hot", out=folder / "tree", taxonomy=folder / "tree.json", **options)
    labelkin.train("digits", "one-hot", out=folder / "built", **options)
    np.save(folder / "x.npy", INPUTS.numpy())
    order = ["wait", *DIGITS[::-1], "ask a person"]  # columns are found by name, and actions keep the order of the file
    rows = [",".join([true, *(str(cost(true, answer)) for answer in order)]) for true in DIGITS[3:] + DIGITS[:3]]
    (folder / "costs.csv").write_text("\n".join([",".join(["", *order]), *rows]))
    return folder


def by_a_loop(run: Path) -> tuple[list[list[float]], list[int]]:
    """The calibrated probabilities, and the answers of least expected cost."""
    final = RunFolder(run).final
    assert final is not None
    probs = (load_run(run).predict(INPUTS).scores.double() / final["temperature"]).softmax(-1).tolist()
    return probs, [reference.answers_by_cost(row, MATRIX.tolist())[0] for row in probs]


def predicted(home: Path, run: str, name: str = "p.csv", *options: Any) -> tuple[str, Rows]:
    told = call("predict", home / run, home / "x.npy", "-o", home / name, "--costs", home / "costs.csv", *options)
    assert told.exit_code == 0, told.stderr
    if name.endswith(".jsonl"):
        return told.stdout, [json.loads(line) for line in (home / name).read_text().splitlines()]
    with (home / name).open(newline="") as file:
        return told.stdout, list(csv.DictReader(file))


def decided(home: Path, run: str) -> tuple[str, Rows]:
    """What `labelkin decide` writes for the scores of a run."""
    model, final = load_run(home / run), RunFolder(home / run).final
    assert final is not None
    np.savez(home / "scores.npz", logits=model.predict(INPUTS).scores.double().numpy(), classes=np.array(model.classes))
    tree = () if model.tree_built else ("--taxonomy", home / "tree.json")
    command = ("decide", home / "scores.npz", "-o", home / "d.csv", "--costs", home / "costs.csv", "--explain", *tree)
    told = call(*command, "--temperature", repr(final["temperature"]))
    assert told.exit_code == 0, told.stderr
    with (home / "d.csv").open(newline="") as file:
        return told.stdout, list(csv.DictReader(file))


def goes_to(told: str) -> list[str]:
    return [line for line in told.splitlines() if " go to " in line]


@pytest.mark.long
@pytest.mark.parametrize("run", RUNS)
def test_predict_writes_what_decide_writes(home: Path, run: str):
    probs, answers = by_a_loop(home / run)
    (told, rows), (said, wanted) = predicted(home, run, "p.csv", "--explain"), decided(home, run)
    names = (*DIGITS, *ACTIONS)
    assert [row["class"] for row in rows] == [names[at] for at in answers]
    assert {"ask a person", "wait"} < {row["class"] for row in rows}
    assert [row["class"] for row in rows] == [row["decision"] for row in wanted]
    assert [row["kind"] for row in rows] == [row["decision_kind"] for row in wanted]
    assert [row["why"] for row in rows] == [row["decision_path"] for row in wanted]
    for row, other, values, at in zip(rows, wanted, probs, answers, strict=True):
        if at >= len(DIGITS):
            assert (row["kind"], row["probability"], row["path"]) == ("action", "", "")
            assert other["decision_probability"] == ""
        else:
            assert row["kind"] == "class"
            assert float(row["probability"]) == pytest.approx(values[at], abs=1e-6)
            assert float(other["decision_probability"]) == pytest.approx(values[at], rel=1e-5)
            assert bool(row["path"]) == (run == "tree")
    counts = [sum(at == 10 + k for at in answers) for k in range(2)]
    assert goes_to(told) == [f"{counts[k]} ({counts[k] / 2:.1f} %) go to '{ACTIONS[k]}'." for k in (1, 0)]
    assert goes_to(said) == goes_to(told)


@pytest.mark.long
def test_lines_of_json_have_null_where_an_action_has_nothing(home: Path):
    _, rows = predicted(home, "tree", "p.jsonl", "--all-probs")
    probs, answers = by_a_loop(home / "tree")
    for row, values, at in zip(rows, probs, answers, strict=True):
        assert (row["probability"] is None) == (row["path"] is None) == (row["kind"] == "action") == (at >= 10)
        assert [row[f"p_{digit}"] for digit in DIGITS] == pytest.approx(values, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("run", RUNS)
def test_serve_answers_as_predict_does(home: Path, run: str):
    later_or_skip("fastapi")
    from starlette.testclient import TestClient

    from labelkin.serve import create_app

    _, rows = predicted(home, run, "p.jsonl", "--explain")
    shown = [next(k for k, row in enumerate(rows) if row["class"] == name) for name in ACTIONS]
    app = create_app(home / run, costs=home / "costs.csv")
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/api/model").json()["actions"] == ["wait", "ask a person"]
        for at in {*shown, *range(12)}:
            file = io.BytesIO()
            Image.fromarray(INPUTS[at, 0].numpy()).save(file, "PNG")
            found = client.post("/api/predict", files={"photo": ("x.png", file.getvalue())}).json()
            answer, row = found["answer"], rows[at]
            assert answer == found["rules"]["crm"]
            assert (answer["name"], answer["kind"]) == (row["class"], row["kind"])
            assert answer["why"] == row["why"]
            assert answer["probability"] == (None if row["kind"] == "action" else pytest.approx(row["probability"]))
            assert (answer["path"] is None) == (row["path"] is None)
            assert found["rules"]["argmax"]["name"] == found["best"][0]["name"]
            assert found["rules"]["argmax"]["kind"] == "class"


@pytest.mark.long
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_an_exported_file_answers_as_predict_does(home: Path, run: str, suffix: str):
    if suffix == "onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    path = home / f"{run}.{suffix}"
    told = call("export", home / run, "-o", path, "--costs", home / "costs.csv")
    assert told.exit_code == 0, told.stderr
    pixels = INPUTS.permute(0, 2, 3, 1).expand(-1, -1, -1, 3).contiguous()
    if suffix == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path))
        names = [output.name for output in session.get_outputs()]
        found = dict(zip(names, map(torch.from_numpy, session.run(None, {"inputs": pixels.numpy()})), strict=True))
        about = json.loads(session.get_modelmeta().custom_metadata_map["labelkin"])
    else:
        extra = {"labelkin.json": ""}
        found = torch.export.load(path, extra_files=extra).module()(pixels)
        about = json.loads(extra["labelkin.json"])
    assert about["actions"] == ["wait", "ask a person"]
    names = about["nodes"] + about["actions"]
    _, rows = predicted(home, run)
    assert [names[node] for node in found["node"].tolist()] == [row["class"] for row in rows]
    for at, row in enumerate(rows):
        acted = row["kind"] == "action"
        assert (int(found["class_index"][at]) == -1) == isnan(float(found["probability"][at])) == acted
        assert (int(found["path"][at].max()) == -1) == acted
        assert acted or about["classes"][int(found["class_index"][at])] == row["class"]
    assert not found["fell_back"].any()  # an action is not less specific than a class


@pytest.mark.long
def test_the_audit_of_a_run_counts_what_predict_chooses(home: Path):
    np.save(home / "all.npy", labelkin.data.load("digits").test.inputs.numpy())
    told = call("predict", home / "tree", home / "all.npy", "-o", home / "all.csv", "--costs", home / "costs.csv")
    found = audit_predictions(home / "tree", costs=home / "costs.csv")
    counted = [
        f"{part.samples} ({100 * part.samples / 359:.1f} %) go to {part.name!r}." for part in found.crm[-2].actions
    ]
    assert found.crm[-2].temperature == 1  # the run's own probabilities are calibrated
    assert goes_to(told.stdout) == counted


@pytest.mark.parametrize("run", RUNS)
def test_python_takes_costs_of_actions_in_every_form(home: Path, run: str):
    model, (probs, answers) = load_run(home / run), by_a_loop(home / run)
    temperature = model.calibration.temperature
    own = Rule("crm", model.taxonomy, MATRIX, temperature=temperature, actions=ACTIONS)
    np.savez(home / "costs.npz", costs=MATRIX.numpy(), classes=np.array(DIGITS), actions=np.array(ACTIONS))
    for found in (
        model.predict(INPUTS, costs=home / "costs.csv"),
        model.predict(INPUTS, costs=COSTS, decide="crm"),
        model.predict(INPUTS, costs=str(home / "costs.npz")),
        model.predict(INPUTS, decide=own),
        model.predict(INPUTS, decide=model.rule(costs=COSTS)),
    ):
        assert found.classes == [(*DIGITS, *ACTIONS)[at] for at in answers]
        assert found.positions.tolist() == [at if at < 10 else -1 for at in answers]
        assert found.probabilities is not None
        for at, given, row in zip(answers, found.probabilities.tolist(), probs, strict=True):
            assert isnan(given) if at >= 10 else given == pytest.approx(row[at], abs=1e-6)
        assert found.rule is not None
        assert found.nodes is not None
        assert found.rule.kinds(found.nodes) == ["class" if at < 10 else "action" for at in answers]
        assert found.rule.names(found.nodes) == found.classes
        for why, at, row in zip(model.explain(found), answers, probs, strict=True):
            assert why is not None
            if at >= 10:
                paid = torch.tensor(row, dtype=torch.float64) @ MATRIX
                best = int(paid[:10].argmin())
                assert why == f"expected cost: {ACTIONS[at - 10]} {paid[at]:.4g}, {best} {paid[best]:.4g}"
    empty = model.predict(INPUTS[:0], costs=COSTS)
    assert (empty.classes, model.explain(empty)) == ([], [])


def test_a_rule_that_cannot_choose_actions_names_none(home: Path):
    model = load_run(home / "built")
    rule = Rule("argmax", model.taxonomy, MATRIX, temperature=1.0, actions=ACTIONS)
    found = model.predict(INPUTS, decide=rule)
    assert found.classes == model.predict(INPUTS).classes
    assert model.explain(found) == [None] * len(INPUTS)


@pytest.mark.parametrize("command", ["predict", "export", "serve"])
def test_what_a_run_cannot_decide_is_refused_in_a_sentence(home: Path, tmp_path: Path, command: str):
    output: tuple[Any, ...] = {
        "predict": (home / "x.npy", "-o", tmp_path / "p.csv"),
        "export": ("-o", tmp_path / "m.onnx"),
        "serve": ("--port", "0"),
    }[command]

    def told(text: str, *options: Any) -> str:
        (tmp_path / "costs.csv").write_text(text)
        return refused(command, home / "tree", *output, "--costs", tmp_path / "costs.csv", *options)

    lines = (home / "costs.csv").read_text()
    assert "actions: 'round' is a node of the tree as well" in told(lines.replace("wait", "round"))
    assert "no row for the class '2', which is only a column" in told(lines.rsplit("\n", 1)[0])
    assert "costs: apply to the rule 'crm', got 'fallback'" in told(lines, "--threshold", "0.9")
    assert "costs: apply to the rule 'crm', got 'argmax'" in told(lines, "--decide", "argmax")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["costs.csv"]


def test_metrics_of_a_run_have_no_place_for_actions(home: Path):
    told = refused("evaluate", home / "tree", "--costs", home / "costs.csv")
    assert "costs: expected a column for each class alone, got 'wait', 'ask a person' as well; training and its" in told
    assert "give them to labelkin audit, decide, predict, serve or export" in told


def test_columns_after_the_classes_need_names(home: Path):
    for given in (MATRIX, MATRIX.numpy(), MATRIX.tolist()):
        with pytest.raises(
            InputError, match=r"costs: expected names for the columns after the 10 classes, .* \(10, 12\)"
        ):
            load_run(home / "tree").rule(costs=given)
    for few in (MATRIX[:9, :9], MATRIX[:9, :9].numpy()):
        with pytest.raises(InputError, match="costs: expected 10 x 10 for 10 classes, got 9 x 9"):
            load_run(home / "tree").rule(costs=few)
    gains = MATRIX[:, :10].neg()  # a matrix without names may have negative costs, as before
    assert load_run(home / "tree").rule(costs=gains).costs is gains


@pytest.mark.long
def test_an_earlier_file_of_predictions_is_replaced(home: Path, tmp_path: Path):
    """Files of earlier versions have no column `kind`."""
    target = tmp_path / "p.csv"
    target.write_text("input,row,class,probability,path\n")
    assert call("predict", home / "tree", home / "x.npy", "-o", target).exit_code == 0
    assert target.read_text().startswith("input,row,class,probability,path,kind\n")
    with target.open(newline="") as file:
        assert {row["kind"] for row in csv.DictReader(file)} == {"class"}
    told = call("predict", home / "tree", home / "x.npy", "-o", target, "--threshold", "0.9")
    assert " go to " not in told.stdout
    with target.open(newline="") as file:
        kinds = {row["class"]: row["kind"] for row in csv.DictReader(file)}
    for name, kind in kinds.items():
        assert kind == ("none" if name == "root" else "ancestor" if name in TREE else "class")
    assert {"none", "ancestor", "class"} == set(kinds.values())
