"""`labelkin decide` as a person types it, on real digits."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from support.commands import FOUND, call, refused

TREE = {
    "loop": {"one": ["0", "6", "9"], "two": ["8"]},
    "open": {"curved": ["2", "3", "5"], "straight": ["1", "4", "7"]},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logits of digits by a model that saw 100 of them; a random half of the rest is labeled."""
    folder = tmp_path_factory.mktemp("digits")
    order = np.random.default_rng(0).permutation(len(FOUND.target))
    inputs, target = FOUND.data[order] / 16, FOUND.target[order]
    logits = LogisticRegression(max_iter=500).fit(inputs[:100], target[:100]).decision_function(inputs)
    for name, rows in (("held-out.csv", range(100, 900)), ("new.csv", range(900, len(target)))):
        with (folder / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("digit", *(f"p_{k}" for k in range(10))))
            writer.writerows((target[i], *logits[i]) for i in rows)
    (folder / "tree.json").write_text(json.dumps(TREE))
    return folder


def arguments(files: Path, output: Path, *more: object) -> list[object]:
    return [
        *("decide", files / "new.csv", "-o", output, "--kind", "logits", "--columns", "p_*"),
        *("--taxonomy", files / "tree.json", *more),
    ]


def test_right_or_unanswered_as_often_as_promised(files: Path, tmp_path: Path):
    output = tmp_path / "out.csv"
    more = ("--target", "digit", "--labeled", files / "held-out.csv", "--coverage", "0.95", "--explain")
    told = call(*arguments(files, output, *more)).stdout.splitlines()
    assert told[0] == f"Wrote 897 decisions to {output}"
    assert told[1].endswith("the root (no answer).")
    assert told[2].startswith("Temperature 0.")
    assert told[3].startswith("A node is answered from a probability of 0.")
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    paths = {
        digit: (top, group, digit) for top, groups in TREE.items() for group, some in groups.items() for digit in some
    }
    right = [row["decision"] in ("root", *paths[row["digit"]]) for row in rows]
    assert 0.91 < sum(right) / len(rows) < 0.99
    assert all(
        row["decision_path"].endswith(f"{row['decision']} {float(row['decision_probability']):.2f}") for row in rows
    )
    by_json = json.loads(call(*arguments(files, output, *more, "--json")).stdout)
    assert by_json["classes"] == sum(row["decision_kind"] == "class" for row in rows) > 400
    assert by_json["shifted"] is False


def test_least_cost_is_the_default_and_changes_some_decisions(files: Path, tmp_path: Path):
    told = call(*arguments(files, tmp_path / "out.csv")).stdout.splitlines()
    assert told[0].startswith("Wrote 897 decisions")
    assert told[1].endswith("differ from the most probable class.")
    plain = json.loads(call(*arguments(files, tmp_path / "out.csv", "--rule", "argmax", "--json")).stdout)
    assert plain["changed"] == 0
    assert plain["temperature"] == 1


def test_a_confidence_answers_less(files: Path, tmp_path: Path):
    more = (*arguments(files, tmp_path / "out.csv"), "--target", "digit", "--labeled", files / "held-out.csv")
    mean = json.loads(call(*more, "--coverage", "0.9", "--json").stdout)
    sure = json.loads(call(*more, "--coverage", "0.9", "--confidence", "0.99", "--json").stdout)
    assert sure["temperature"] == mean["temperature"]
    assert sure["thresholds"]["root"] > mean["thresholds"]["root"]
    assert sure["classes"] < mean["classes"]
    assert "add one, such as 0.95 (--coverage 0.95)" in refused(*more, "--confidence", "0.9")


def test_refusals_are_sentences_with_exit_code_2(files: Path, tmp_path: Path):
    assert "pass --labeled FILE" in refused(*arguments(files, tmp_path / "out.csv", "--coverage", "0.9"))
    assert "one of the inputs" in refused(*arguments(files, files / "new.csv"))
    mine = tmp_path / "mine.csv"
    mine.write_text("a,b\n1,2\n")
    assert "was not written by labelkin decide" in refused(*arguments(files, mine))
    assert mine.read_text() == "a,b\n1,2\n"


def test_a_guarantee_by_predicted_subtree_lists_a_threshold_for_each(files: Path, tmp_path: Path):
    more = ("--target", "digit", "--labeled", files / "held-out.csv", "--coverage", "0.97", "--by", "predicted")
    told = call(*arguments(files, tmp_path / "out.csv", *more)).stdout
    assert "A node below loop is answered from a probability of" in told
    assert "A node below open is answered from a probability of" in told


def test_a_coverage_that_the_classes_reach_needs_no_ancestor(files: Path, tmp_path: Path):
    more = ("--target", "digit", "--labeled", files / "held-out.csv", "--coverage", "0.7")
    told = call(*arguments(files, tmp_path / "out.csv", *more)).stdout
    assert "100.0 % are a class" in told
    assert "A class is always answered; fewer are wrong than the coverage allows." in told


def write_costs(path: Path, **actions: float) -> Path:
    """Costs of 1 for a mistake, and the same for all digits for each action."""
    digits = [str(k) for k in range(10)]
    rows = [[true, *(float(true != answer) for answer in digits), *actions.values()] for true in digits]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["", *digits, *actions], *rows])
    return path


def test_uncertain_digits_go_to_review(files: Path, tmp_path: Path):
    """With costs of 0 and 1 and a review for .3, exactly the digits of less than 70 %."""
    costs, output = write_costs(tmp_path / "costs.csv", review=0.3), tmp_path / "out.csv"
    base = ("decide", files / "new.csv", "-o", output, "--kind", "logits", "--columns", "p_*", "--costs", costs)
    more = ("--target", "digit", "--labeled", files / "held-out.csv", "--classes", ",".join("0123456789"))
    told = call(*base, *more, "--explain").stdout.splitlines()
    found = json.loads(call(*base, *more, "--explain", "--json").stdout)
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (files / "new.csv").open(newline="") as file:
        logits = np.array([[float(row[f"p_{k}"]) for k in range(10)] for row in csv.DictReader(file)])
    scaled = np.exp((logits - logits.max(1, keepdims=True)) / found["temperature"])
    probs = scaled / scaled.sum(1, keepdims=True)
    assert np.abs(probs.max(1) - 0.7).min() > 1e-9
    assert [row["decision"] for row in rows] == [str(row.argmax()) if row.max() > 0.7 else "review" for row in probs]
    reviewed = [row for row in rows if row["decision_kind"] == "action"]
    assert {row["decision"] for row in reviewed} == {"review"}
    assert {row["decision_probability"] for row in reviewed} == {""}
    assert all(row["decision_path"].startswith("expected cost: review 0.3, ") for row in reviewed)
    assert found["actions"] == {"review": len(reviewed)}
    assert found["classes"] == len(rows) - len(reviewed) > len(reviewed) > 20
    assert told[2] == f"{len(reviewed)} ({100 * len(reviewed) / len(rows):.1f} %) go to 'review'."
    sure = [row for row in rows if row["decision_kind"] == "class"]
    wrong = sum(row["decision"] != row["digit"] for row in sure) / len(sure)
    assert wrong < 0.5 * np.mean(probs.argmax(1) != [int(row["digit"]) for row in rows])
    assert "no column for the class '3'" in refused(
        *base[:-1], write_text(tmp_path / "typo.csv", costs.read_text().replace(",3,", ",three,", 1)), *more
    )


def write_text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_help_names_actions_only_where_they_are_taken():
    for command in ("audit", "decide", "predict", "export", "serve", "evaluate", "train", "compare"):
        told = " ".join(call(command, "--help").stdout.replace("│", " ").split())
        taken = command not in ("evaluate", "train", "compare")
        assert ("Columns without a row are answers that are not classes" in told) == taken
