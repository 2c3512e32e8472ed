"""Costs of one's own, not symmetric: in decisions, metrics, the expected-cost term, verdicts and `evaluate`."""

import json
from math import isnan

import pytest
import torch

import labelkin
from labelkin import InputError, Taxonomy
from labelkin.decide import Rule
from labelkin.runs import RunFolder, RunSpec, Store, run_id
from labelkin.training import Settings, costs_for
from labelkin.training._final_metrics import Calibration, decide_test
from support.commands import call, refused
from support.numeric import positions, values

QUICK = ("--epochs", 2, "--batch-size", 64, "--subset", 0.5, "--calibration", 0.2)
NAMES = [str(k) for k in range(10)]


def cost(true: int, answer: int) -> float:
    """To miss an 8 costs 20, any other mistake 1."""
    return 0.0 if true == answer else 20.0 if true == 8 else 1.0


@pytest.fixture
def costs(tmp_path):
    order = NAMES[::-1]  # the order in the file does not matter
    rows = [",".join([true, *(str(cost(int(true), int(answer))) for answer in order)]) for true in order]
    path = tmp_path / "costs.csv"
    path.write_text("\n".join([",".join(["true", *order]), *rows]))
    return path


def matrix(classes=10):
    return torch.tensor([[cost(i, j) for j in range(classes)] for i in range(classes)], dtype=torch.float64)


@pytest.mark.parametrize("tree", [None, Taxonomy.from_groups({"x": ["a", "b"], "y": ["c", "d"]})])
def test_decisions_by_costs_are_those_of_a_slow_loop(tree):
    scores, target, table = values(0, 30, 4), positions(1, 4, 30), values(2, 4, 4).abs()
    found = decide_test(scores, target, tree, Calibration(1.5, 60), table)
    answers, paid, best_paid = [], [], []
    for row, true in zip(scores.tolist(), target.tolist(), strict=True):
        probs = torch.softmax(torch.tensor(row, dtype=torch.float64) / 1.5, -1).tolist()
        expected = [sum(probs[t] * float(table[t, a]) for t in range(4)) for a in range(4)]
        answers.append(expected.index(min(expected)))
        paid.append(float(table[true, answers[-1]]))
        best_paid.append(float(table[true, row.index(max(row))]))
    assert found.outputs["answer"].tolist() == answers
    assert found.outputs["cost"].tolist() == pytest.approx(paid)
    assert found.outputs["argmax_cost"].tolist() == pytest.approx(best_paid)
    assert found.metrics["decided_cost"] == pytest.approx(sum(paid) / 30)
    assert isnan(found.metrics["decided_severity"]) == (tree is None)


def test_distances_as_costs_change_nothing():
    tree = Taxonomy.from_groups({"x": ["a", "b"], "y": ["c", "d"]})
    scores, target = values(0, 30, 4), positions(1, 4, 30)
    by_tree = decide_test(scores, target, tree, Calibration(1.0, 60))
    same = decide_test(scores, target, tree, Calibration(1.0, 60), torch.from_numpy(tree.distance("height")))
    assert by_tree.metrics == pytest.approx(same.metrics)


def test_a_run_decides_by_its_costs_and_evaluates_by_them(costs, tmp_path):
    run, plain = tmp_path / "run", tmp_path / "plain"
    base = ("train", "digits", "--objective", "one-hot", *QUICK, "--json")
    with_costs = json.loads(call(*base, "--costs", costs, "--out", run).stdout)
    without = json.loads(call(*base, "--out", plain).stdout)
    assert with_costs["accuracy"] == without["accuracy"]  # the network is the same
    decisions = Store(tmp_path).find("run").decisions()
    assert decisions is not None
    target, answer = (torch.from_numpy(each.astype("int64")) for each in (decisions.target, decisions.answer))
    assert float(matrix()[target, answer].mean()) == pytest.approx(with_costs["decided_cost"], abs=1e-6)
    assert with_costs["decided_cost"] < with_costs["argmax_cost"]  # an 8 is answered where one is likely
    assert int((answer == 8).sum()) > int((decisions.argmax == 8).sum())
    costs.unlink()  # the run keeps them
    assert labelkin.evaluate(run).metrics["decided_cost"] == pytest.approx(with_costs["decided_cost"], abs=1e-6)
    kept = labelkin.load_run(run).rule("crm").costs  # predict, export and serve decide by them too
    assert kept is not None
    assert torch.equal(kept.double(), matrix())
    assert labelkin.load_run(plain).rule("crm").costs is None


@pytest.mark.long
def test_evaluate_takes_other_costs(costs, tmp_path):
    run = tmp_path / "plain"
    assert call("train", "digits", "--objective", "one-hot", *QUICK, "--out", run).exit_code == 0
    told = json.loads(call("evaluate", run, "--costs", costs, "--json").stdout)
    direct = labelkin.evaluate(run, costs=costs).metrics
    assert told["decided_cost"] == pytest.approx(direct["decided_cost"])
    assert told["argmax_cost"] != pytest.approx(labelkin.evaluate(run).metrics["argmax_cost"])
    (tmp_path / "few.csv").write_text("true,0,1\n0,0,1\n1,1,0\n")
    assert "no row for the classes '2'" in refused("evaluate", run, "--costs", tmp_path / "few.csv")


@pytest.mark.long
def test_the_expected_cost_term_takes_the_costs(costs, tmp_path):
    run = tmp_path / "run"
    base = ("train", "digits", "--objective", "one-hot", *QUICK, "--set", "one-hot.expected_cost=0.5")
    assert call(*base, "--costs", costs, "--out", run).exit_code == 0
    objective = labelkin.load_run(run).model.objective
    assert objective.expected_cost == 0.5
    assert RunFolder(run).setup["options"]["costs"].tolist() == matrix().tolist()
    own = call(*base, "--set", f"one-hot.costs={costs}", "--out", tmp_path / "own")  # by class name, as an option
    assert own.exit_code == 0, own.stderr
    assert RunFolder(tmp_path / "own").setup["options"]["costs"].tolist() == matrix().tolist()
    first, second = (labelkin.load_run(tmp_path / name).model.state_dict() for name in ("run", "own"))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.long
def test_a_comparison_by_costs_decides_without_a_taxonomy(costs, tmp_path):
    base = ("compare", "digits", "--objectives", "one-hot,label-smoothing", "--seeds", "0,1", *QUICK, "--costs", costs)
    told = call(*base, "--out", tmp_path / "runs")
    assert told.exit_code == 0, told.stderr
    assert f"mean cost of the decision by {costs}" in told.stdout
    found = json.loads(call(*base, "--out", tmp_path / "runs", "--json").stdout)
    assert found["costs"] == str(costs)
    assert not found["built_tree"]
    assert "ost" in found["verdict"]["sentence"]


def test_ids_follow_the_content_of_the_costs(costs, tmp_path):
    plain = run_id(RunSpec())
    first = run_id(RunSpec(settings=Settings(costs=str(costs))))
    copy = tmp_path / "copy.csv"
    copy.write_text(costs.read_text())
    assert run_id(RunSpec(settings=Settings(costs=str(copy)))) == first != plain
    copy.write_text(costs.read_text().replace("20.0", "30.0"))
    assert run_id(RunSpec(settings=Settings(costs=str(copy)))) != first
    told = refused("train", "digits", "--objective", "one-hot", "--costs", "nowhere.csv", "--out", tmp_path / "run")
    assert "costs: there is no file 'nowhere.csv'" in told


def test_a_run_refuses_rules_whose_answers_are_no_nodes_of_its_tree(costs, tmp_path):
    call("train", "digits", "--objective", "one-hot", *QUICK, "--out", tmp_path / "run")
    predictor, inputs = labelkin.load_run(tmp_path / "run"), labelkin.data.load("digits").test.inputs[:5]
    wide = torch.cat([matrix(), torch.full((10, 1), 0.01, dtype=torch.float64)], 1)
    with pytest.raises(InputError, match=r"costs: expected names for the columns after the 10 classes, .* \(10, 11\)"):
        predictor.predict(inputs, costs=wide)
    other = predictor.taxonomy.reorder(predictor.classes[::-1])
    for rule, got in ((Rule("argmax"), "no tree"), (Rule("argmax", other), "another tree")):
        with pytest.raises(InputError, match=f"decide: expected a rule over the tree of this run, got one with {got}"):
            predictor.predict(inputs, decide=rule)
    temperature = predictor.calibration.temperature
    own = predictor.predict(inputs, decide=Rule("crm", predictor.taxonomy, matrix(), temperature=temperature))
    assert own.classes == predictor.predict(inputs, costs=matrix()).classes


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            ["a,1,0.2", "b,0.3,1"],
            r"the right answer always costs most \(1 in row 1, and 0\.2 for.*not similarities",
        ),
        (["a,0,0", "b,0,0"], "expected that some mistake costs more than the right answer, got none"),
        (["a,2,2", "b,1,1"], "expected that some mistake costs more than the right answer, got none"),
    ],
)
def test_tables_that_are_no_costs_are_refused(rows, problem, tmp_path):
    file = tmp_path / "costs.csv"
    file.write_text("\n".join([",a,b", *rows]))
    with pytest.raises(InputError, match=problem):
        costs_for(file, ("a", "b"))


def test_a_right_answer_may_have_a_cost(tmp_path):
    file = tmp_path / "costs.csv"
    file.write_text(",a,b\na,1,4\nb,2,2\n")
    assert costs_for(file, ("b", "a")).tolist() == [[2, 2], [4, 1]]
    file.write_text(",a,b\na,0,1\nb,0,3\n")  # "a" is free, whatever is true
    assert costs_for(file, ("a", "b")).tolist() == [[0, 1], [0, 3]]
