"""Decisions of files with answers that are not classes: names, kinds, probabilities and reasons, as in memory."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from labelkin import InputError, Taxonomy, decide
from labelkin.audit import FileDecisions, _read_files, decide_file
from support import reference

TREE = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"]}, "vehicle": ["car"]})
CLASSES = ("car", "cat", "dog")
COSTS = {"cat": {"dog": 1, "car": 4, "ask": 0.6, "wait": 2}, "dog": {"cat": 1, "car": 4, "ask": 0.6, "wait": 0.1}}
COSTS["car"] = {"cat": 9, "dog": 9, "ask": 0.6, "wait": 2}
MATRIX = [[COSTS[true].get(answer, 0) for answer in (*CLASSES, "ask", "wait")] for true in CLASSES]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_read_files, "MOST_ROWS", 7)


def probabilities() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return (2 * torch.randn(60, 3, generator=generator, dtype=torch.float64)).softmax(-1)


def decided(folder: Path, **options: Any) -> tuple[FileDecisions, list[dict[str, str]]]:
    source, output = folder / "in.csv", folder / "out.csv"
    lines = [",".join(map(repr, row)) for row in probabilities().tolist()]
    source.write_text("\n".join([",".join(CLASSES), *lines]))
    found = decide_file(source, output, kind="probs", **{"costs": COSTS, **options})
    with output.open(newline="") as file:
        return found, list(csv.DictReader(file))


@pytest.mark.parametrize("tree", [None, TREE])
def test_actions_are_written_as_a_loop_decides(tmp_path: Path, tree: Taxonomy | None):
    found, rows = decided(tmp_path, taxonomy=tree)
    names = (*CLASSES, "ask", "wait")
    answers = [reference.answers_by_cost(row, MATRIX)[0] for row in probabilities().tolist()]
    assert set(answers) == {0, 1, 2, 3, 4}
    assert [row["decision"] for row in rows] == [names[at] for at in answers]
    assert [row["decision_kind"] for row in rows] == ["action" if at > 2 else "class" for at in answers]
    for row, probs, at in zip(rows, probabilities().tolist(), answers, strict=True):
        assert row["decision_probability"] == ("" if at > 2 else f"{probs[at]:.6g}")
    assert found.actions == {"ask": answers.count(3), "wait": answers.count(4)}
    assert (found.classes, found.ancestors, found.none) == (sum(at < 3 for at in answers), 0, 0)
    likely = [row.index(max(row)) for row in probabilities().tolist()]
    assert found.changed == sum(a != b for a, b in zip(answers, likely, strict=True))
    assert found.samples == 60


def test_reasons_by_costs_without_actions_and_without_a_tree(tmp_path: Path):
    costs = {true: {answer: cost for answer, cost in row.items() if answer in CLASSES} for true, row in COSTS.items()}
    _, rows = decided(tmp_path, costs=costs, explain=True)
    matrix = [row[: len(CLASSES)] for row in MATRIX]
    for row, probs in zip(rows, probabilities().tolist(), strict=True):
        expected = [sum(p * line[k] for p, line in zip(probs, matrix, strict=True)) for k in range(len(CLASSES))]
        best, second = sorted(range(len(CLASSES)), key=expected.__getitem__)[:2]
        assert row["decision_path"] == (
            f"expected cost: {CLASSES[best]} {expected[best]:.4g}, {CLASSES[second]} {expected[second]:.4g}"
        )


def test_reasons_of_actions(tmp_path: Path):
    _, rows = decided(tmp_path, taxonomy=TREE, explain=True)
    for row, probs in zip(rows, probabilities().tolist(), strict=True):
        costs = [math.fsum(p * line[at] for p, line in zip(probs, MATRIX, strict=True)) for at in range(5)]
        best = min(range(3), key=costs.__getitem__)
        if row["decision_kind"] == "action":
            cost = costs[3 if row["decision"] == "ask" else 4]
            assert (
                row["decision_path"]
                == f"expected cost: {row['decision']} {cost:.4g}, {CLASSES[best]} {costs[best]:.4g}"
            )
            assert cost < costs[best]
        else:
            assert row["decision_path"].endswith(f"> {row['decision']} {float(row['decision_probability']):.2f}")
    _, bare = decided(tmp_path, explain=True)
    for with_tree, row in zip(rows, bare, strict=True):
        assert row["decision"] == with_tree["decision"]
        if row["decision_kind"] == "action":
            assert row["decision_path"] == with_tree["decision_path"]
        else:
            assert row["decision_path"].startswith(f"expected cost: {row['decision']} ")
            assert ", ask " in row["decision_path"] or ", wait " in row["decision_path"]


def test_without_actions_nothing_is_said_of_them(tmp_path: Path):
    square = {true: {answer: cost for answer, cost in row.items() if answer in CLASSES} for true, row in COSTS.items()}
    found, rows = decided(tmp_path, costs=square)
    assert found.actions is None
    assert {row["decision_kind"] for row in rows} == {"class"}
    with pytest.warns(UserWarning, match="costs: the rule 'argmax' does not use them"):
        argmax, rows = decided(tmp_path, rule="argmax")
    assert argmax.actions is None  # it cannot choose them
    assert {row["decision_kind"] for row in rows} == {"class"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": MATRIX}, "costs: expected names for the columns after the 3 classes"),
        (
            {"costs": {true: {**row, "pet": 1} for true, row in COSTS.items()}, "taxonomy": TREE},
            "'pet' is a node of the tree",
        ),
        ({"rule": "argmax", "explain": True}, "explain: the path of an answer is a path in a tree; pass --taxonomy"),
    ],
)
def test_what_cannot_be_told_is_refused(tmp_path: Path, options: Any, message: str):
    with pytest.raises(InputError, match=message):
        decided(tmp_path, **options)
    assert not (tmp_path / "out.csv").exists()


def test_the_same_in_memory(tmp_path: Path):
    _, rows = decided(tmp_path)
    names = (*CLASSES, "ask", "wait")
    best = decide.least_cost(probabilities(), torch.tensor(MATRIX))
    assert [row["decision"] for row in rows] == [names[at] for at in best.tolist()]
