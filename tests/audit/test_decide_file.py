"""Decisions on files: the same as in memory, in constant memory, and never over a file of someone else."""

import csv
import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin import InputError, Taxonomy, decide
from labelkin.audit import _decide_file, _decide_rules, _read_files, audit, decide_file

TREE = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "vehicle": ["car", "bus"]})
CLASSES = TREE.classes


def scores_of(samples: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits that are twice too large, and true classes."""
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(samples, 5, generator=generator, dtype=torch.float64)
    target = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(-1)
    return 2 * logits, target


def write_csv(path: Path, logits: Tensor, target: Tensor | None = None, *, header: tuple[str, ...] = CLASSES) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", *header) if target is None else ("id", "label", *header))
        for i, row in enumerate(logits.tolist()):
            writer.writerow((f"s{i}", *row) if target is None else (f"s{i}", CLASSES[int(target[i])], *row))
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_read_files, "MOST_ROWS", 7)


def decided(tmp_path: Path, logits: Tensor, **options: Any) -> list[dict[str, str]]:
    source, output = write_csv(tmp_path / "in.csv", logits), tmp_path / "out.csv"
    found = decide_file(source, output, kind="logits", columns=CLASSES, taxonomy=TREE, **options)
    rows = rows_of(output)
    assert found.samples == len(rows) == len(logits)
    assert [row["id"] for row in rows] == [f"s{i}" for i in range(len(logits))]
    assert list(rows[0])[:4] == ["id", "decision", "decision_kind", "decision_probability"]
    assert [found.classes, found.ancestors, found.none] == [
        sum(row["decision_kind"] == kind for row in rows) for kind in ("class", "ancestor", "none")
    ]
    return rows


def expected_rows(nodes: Tensor, probs: Tensor) -> list[tuple[str, str, float]]:
    below = decide.node_probs(probs, TREE)
    return [
        (
            TREE.names[node],
            "none" if node == 0 else "class" if TREE.is_leaf[node] else "ancestor",
            float(f"{float(below[i, node]):.6g}"),
        )
        for i, node in enumerate(nodes.tolist())
    ]


def written_rows(rows: list[dict[str, str]]) -> list[tuple[str, str, float]]:
    return [(row["decision"], row["decision_kind"], float(row["decision_probability"])) for row in rows]


def leaves(classes: Tensor) -> Tensor:
    return torch.from_numpy(TREE.leaves.copy())[classes]


@pytest.mark.usefixtures("small_chunks")
def test_each_rule_decides_as_in_memory(tmp_path: Path):
    logits, _ = scores_of(40)
    probs = (logits / 2).softmax(-1)
    found = decided(tmp_path, logits, temperature=2.0)
    assert written_rows(found) == expected_rows(leaves(decide.least_cost(probs, TREE)), probs)
    found = decided(tmp_path, logits, temperature=2.0, rule="argmax", explain=True)
    assert written_rows(found) == expected_rows(leaves(decide.argmax(probs)), probs)
    reasons = decide.explain(probs, TREE, decide.argmax(probs), answer_as="classes")
    assert [row["decision_path"] for row in found] == [str(reason) for reason in reasons]
    found = decided(tmp_path, logits, temperature=2.0, threshold=0.6)
    nodes = decide.fallback(decide.node_probs(probs, TREE), TREE, 0.6)
    assert written_rows(found) == expected_rows(nodes, probs)
    assert {row["decision_kind"] for row in found} == {"class", "ancestor", "none"}


@pytest.mark.usefixtures("small_chunks")
def test_costs_decide_before_the_tree(tmp_path: Path):
    logits, _ = scores_of(40)
    costs = np.random.default_rng(0).random((5, 5)) * (1 - np.eye(5))
    source, output = write_csv(tmp_path / "in.csv", logits), tmp_path / "out.csv"
    with (tmp_path / "costs.csv").open("w", newline="") as file:
        order = [3, 1, 0, 4, 2]
        writer = csv.writer(file)
        writer.writerow(["", *(CLASSES[k] for k in order)])
        writer.writerows([CLASSES[k], *(repr(float(costs[k, j])) for j in order)] for k in order)
    for taxonomy in (None, TREE):
        found = decide_file(
            source, output, kind="logits", columns=CLASSES, costs=tmp_path / "costs.csv", taxonomy=taxonomy
        )
        best = decide.least_cost(logits.softmax(-1), costs)
        assert [row["decision"] for row in rows_of(output)] == [CLASSES[k] for k in best.tolist()]
        assert found.changed == int((best != logits.argmax(-1)).sum()) > 0


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("confidence", [None, 0.8])
@pytest.mark.parametrize("by", ["all", "predicted", "true"])
def test_a_coverage_splits_the_labeled_samples(tmp_path: Path, by: Any, confidence: float | None):
    """The temperature from one half, the threshold from the other; columns in another order."""
    logits, _ = scores_of(60)
    held_out, target = scores_of(400, seed=1)
    order = [4, 2, 0, 1, 3]
    labeled = write_csv(tmp_path / "held.csv", held_out[:, order], target, header=tuple(CLASSES[k] for k in order))
    source, output = write_csv(tmp_path / "in.csv", logits), tmp_path / "out.csv"
    asked: dict[str, Any] = {"coverage": 0.9, "confidence": confidence, "labeled": labeled, "by": by, "seed": 3}
    found = decide_file(source, output, kind="logits", columns=CLASSES, taxonomy=TREE, **asked)
    halves = decide.split_halves(400, 3)
    scale = decide.Temperature().fit(held_out[halves.fitted], target[halves.fitted])
    assert found.temperature == pytest.approx(scale.value)
    assert found.temperature == pytest.approx(2, rel=0.3)
    after = decide.node_probs(scale.apply(held_out[halves.measured]).softmax(-1), TREE)
    safe = decide.GuaranteedFallback(0.1, by, confidence=confidence).fit(after, target[halves.measured], TREE)
    assert found.thresholds == pytest.approx(safe.thresholds)
    probs = scale.apply(logits).softmax(-1)
    assert written_rows(rows_of(output)) == expected_rows(safe.apply(decide.node_probs(probs, TREE), TREE), probs)
    assert found.shifted is False


def test_a_given_temperature_leaves_all_labeled_samples_for_the_threshold(tmp_path: Path):
    logits, target = scores_of(100)
    labeled = write_csv(tmp_path / "held.csv", logits, target)
    source, output = write_csv(tmp_path / "in.csv", logits), tmp_path / "out.csv"
    options: dict[str, Any] = {"kind": "logits", "columns": CLASSES, "taxonomy": TREE, "labeled": labeled}
    found = decide_file(source, output, coverage=0.9, temperature=2.0, **options)
    nodes = decide.node_probs((logits / 2).softmax(-1), TREE)
    assert found.thresholds == pytest.approx(decide.GuaranteedFallback(0.1).fit(nodes, target, TREE).thresholds)
    found = decide_file(source, output, **options)  # without a coverage, the temperature has them all
    assert found.rule == "crm"
    assert found.temperature == pytest.approx(decide.Temperature().fit(logits, target).value)


@pytest.mark.long
def test_the_promise_is_kept_from_files(tmp_path: Path):
    """Right, or the root, in 90 % of the new samples up to the spread of one split."""
    logits, target = scores_of(4000)
    held_out, true = scores_of(2000, seed=1)
    labeled = write_csv(tmp_path / "held.csv", held_out, true)
    rows = decided(tmp_path, logits, coverage=0.9, labeled=labeled)
    right = [
        TREE.node(row["decision"]) in TREE.ancestors(int(TREE.leaves[y])) for row, y in zip(rows, target, strict=True)
    ]
    assert 0.87 < sum(right) / 4000 < 0.93
    assert sum(row["decision_kind"] == "class" for row in rows) > 500


def test_other_samples_than_the_labeled_ones_give_a_warning(tmp_path: Path):
    held_out, true = scores_of(500, seed=1)
    labeled = write_csv(tmp_path / "held.csv", held_out, true)
    with pytest.warns(UserWarning, match="differ from the calibration samples: the distributions of the"):
        decided(tmp_path, 0.3 * scores_of(500)[0], coverage=0.9, labeled=labeled)


def test_all_formats_give_the_same_decisions(tmp_path: Path):
    logits, target = scores_of(30)
    probs = logits.softmax(-1)
    names = [f"s{i}" for i in range(30)]
    np.savez(tmp_path / "in.npz", probs=probs.numpy(), id=np.array(names), target=target.numpy(), classes=CLASSES)
    with (tmp_path / "in.jsonl").open("w") as file:
        for name, row in zip(names, probs.tolist(), strict=True):
            file.write(json.dumps({"id": name, "probs": row}) + "\n")
    write_csv(tmp_path / "in.csv", probs, target, header=tuple(f"p_{name}" for name in CLASSES))
    options = {"in.npz": {}, "in.jsonl": {"classes": CLASSES}, "in.csv": {"columns": "p_*", "kind": "probs"}}
    answers = {}
    for name, option in options.items():
        output = tmp_path / f"{name}.out.csv"
        decide_file(tmp_path / name, output, taxonomy=TREE, **option)  # type: ignore[arg-type]
        rows = rows_of(output)
        answers[name] = [(row["id"], *written) for row, written in zip(rows, written_rows(rows), strict=True)]
    assert answers["in.npz"] == answers["in.jsonl"] == answers["in.csv"]
    assert [row["target"] for row in rows_of(tmp_path / "in.npz.out.csv")] == [str(y) for y in target.tolist()]
    assert [row["label"] for row in rows_of(tmp_path / "in.csv.out.csv")] == [CLASSES[y] for y in target.tolist()]


def test_a_probability_of_0_stays_0_at_any_temperature(tmp_path: Path):
    (tmp_path / "in.csv").write_text("cat,dog,cow,car,bus\n0.5,0.5,0,0,0\n0,0,0,0,1\n")
    decide_file(tmp_path / "in.csv", tmp_path / "out.csv", kind="probs", taxonomy=TREE, temperature=50.0)
    assert written_rows(rows_of(tmp_path / "out.csv")) == [("cat", "class", 0.5), ("bus", "class", 1.0)]


def test_decisions_do_not_depend_on_the_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    logits, _ = scores_of(53)
    held_out, true = scores_of(100, seed=1)
    labeled = write_csv(tmp_path / "held.csv", held_out, true)
    monkeypatch.setattr(_decide_rules, "MOST_COMPARED", 20)
    texts, compared = [], []
    monkeypatch.setattr(_decide_file, "warn_of_shift", lambda _, sample: compared.append(sample) or False)
    for size in (1, 10, 4096):
        monkeypatch.setattr(_read_files, "MOST_ROWS", size)
        decided(tmp_path, logits, coverage=0.8, labeled=labeled)
        texts.append((tmp_path / "out.csv").read_text())
    assert texts[0] == texts[1] == texts[2]
    assert torch.equal(compared[0], compared[2])


def test_a_sample_of_a_stream_is_uniform(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_decide_rules, "MOST_COMPARED", 100)
    sample = _decide_rules.Sample(2, seed=0)
    for start in range(0, 10_000, 500):
        sample.add(torch.arange(start, start + 500, dtype=torch.float64).unsqueeze(-1).expand(-1, 2))
    values = sample.values[:, 0]
    assert len(values) == len(values.unique()) == 100
    assert 4000 < float(values.mean()) < 6000
    assert sample.values.shape == (100, 2)


MEMORY = """
import resource, sys
from labelkin import Taxonomy
from labelkin.audit import decide_file
tree = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "vehicle": ["car", "bus"]})
peaks = []
for source in sys.argv[2:]:
    found = decide_file(source, sys.argv[1], kind="probs", taxonomy=tree, explain=True)
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(found.samples, *peaks)
"""


@pytest.mark.long
def test_ten_times_the_rows_need_the_same_memory(tmp_path: Path):
    """60,000 rows of text are 3 MB in the file, and more than 30 MB as Python strings."""
    pytest.importorskip("resource", reason="Windows does not have it")
    probs = torch.rand(1000, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    lines = [
        "{:.6f},{:.6f},{:.6f},{:.6f},{:.6f}\n".format(*row) for row in (probs / probs.sum(-1, keepdim=True)).tolist()
    ]
    for name, times in (("short.csv", 6), ("long.csv", 60)):
        with (tmp_path / name).open("w") as file:
            file.write(",".join(CLASSES) + "\n")
            for _ in range(times):
                file.writelines(lines)
    command = [sys.executable, "-c", MEMORY, tmp_path / "out.csv", tmp_path / "short.csv", tmp_path / "long.csv"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    told = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, check=True)
    samples, short, long = (int(word) for word in told.stdout.split())
    assert samples == 60_000
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 60_001
    assert (long - short) / 1024 < 8


# Files of others.


def test_its_own_output_is_replaced_and_nothing_else(tmp_path: Path):
    logits, _ = scores_of(5)
    decided(tmp_path, logits)
    decided(tmp_path, logits, explain=True)
    decided(tmp_path, logits, rule="argmax")
    (tmp_path / "mine.csv").write_text("id,decision\ns0,cat\n")
    for text in ("id,decision\ns0,cat\n", "decision,decision_kind,decision_probability,note\n"):
        (tmp_path / "mine.csv").write_text(text)
        with pytest.raises(InputError, match="exists and was not written by labelkin decide"):
            decide_file(tmp_path / "in.csv", tmp_path / "mine.csv", kind="logits", columns=CLASSES, taxonomy=TREE)
        assert (tmp_path / "mine.csv").read_text() == text


def test_an_input_is_never_replaced(tmp_path: Path):
    logits, target = scores_of(40)
    decided(tmp_path, logits)
    source = write_csv(tmp_path / "labeled.csv", logits, target)
    (tmp_path / "link.csv").symlink_to(tmp_path / "out.csv")
    text = (tmp_path / "out.csv").read_text()
    for inputs in ({"source": tmp_path / "out.csv"}, {"source": source, "labeled": tmp_path / "link.csv"}):
        with pytest.raises(InputError, match="one of the inputs"):
            decide_file(output=tmp_path / "out.csv", taxonomy=TREE, columns=CLASSES, kind="logits", **inputs)  # type: ignore[arg-type]
    assert (tmp_path / "out.csv").read_text() == text


def test_an_error_in_a_late_row_leaves_the_old_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_read_files, "MOST_ROWS", 2)
    logits, _ = scores_of(9)
    decided(tmp_path, logits)
    before = (tmp_path / "out.csv").read_text()
    lines = (tmp_path / "in.csv").read_text().splitlines()
    for bad, message in (
        ("s,1,2,3,4,five", "line 10: .*'bus'"),
        ("s,1,2,3,4,nan", "first in line 10"),
        ("s,1", "line 10"),
    ):
        (tmp_path / "in.csv").write_text("\n".join([*lines[:9], bad]) + "\n")
        with pytest.raises(InputError, match=message):
            decide_file(tmp_path / "in.csv", tmp_path / "out.csv", kind="logits", columns=CLASSES, taxonomy=TREE)
    assert (tmp_path / "out.csv").read_text() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.csv", "out.csv"]


# Bad input.


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no tree": ({"taxonomy": None}, "the rule 'crm' needs costs; pass --taxonomy or --costs"),
    "fallback without a threshold": ({"rule": "fallback"}, "needs either a coverage"),
    "coverage and threshold": ({"coverage": 0.9, "threshold": 0.5, "labeled": "held.csv"}, "leave one of them out"),
    "fallback without a tree": ({"taxonomy": None, "threshold": 0.5}, "the rule 'fallback' answers with nodes"),
    "coverage without samples": ({"coverage": 0.9}, "pass --labeled FILE"),
    "coverage of crm": (
        {"rule": "crm", "coverage": 0.9, "labeled": "held.csv"},
        "coverage: applies to the rule 'fallback', got 'crm'",
    ),
    "coverage of 1": ({"coverage": 1, "labeled": "held.csv"}, "only the root is always right"),
    "coverage of 95": ({"coverage": 95, "labeled": "held.csv"}, r"coverage: expected a number in \(0, 1\]"),
    "temperature": ({"temperature": 0}, r"temperature: expected a number in \(0"),
    "threshold": ({"threshold": 2}, r"threshold: expected a number in \[0, 1\]"),
    "rule": ({"rule": "best"}, "rule: expected one of 'argmax', 'crm', 'fallback', got 'best'"),
    "few labeled": ({"coverage": 0.99, "labeled": "held.csv"}, "at least 99 calibration samples"),
    "labeled with other classes": (
        {"source": "p.csv", "coverage": 0.9, "labeled": "p-other.csv", "columns": "p_*"},
        "only one of them has 'bus', 'tram'",
    ),
    "labeled without true classes": ({"coverage": 0.9, "labeled": "in.csv"}, "target: .* has none of"),
    "path without a tree": ({"taxonomy": None, "rule": "argmax", "explain": True}, "explain: .* pass --taxonomy"),
    "labels": ({"kind": "labels"}, "predicted labels; decisions need logits or probabilities"),
    "logits as probabilities": ({"kind": "probs"}, "look like logits"),
    "output": ({"output": "out.txt"}, "expected a name that ends in .csv"),
    "folder of the output": ({"output": "new/out.csv"}, "out.csv: there is no folder 'new'; create it first"),
    "folder of the input": ({"source": "."}, "this is a folder; .* labelkin predict"),
    "scope of no guarantee": ({"by": "true"}, "by: it is that of a coverage, which is missing"),
    "missing": ({"source": "inn.csv"}, "there is no such file. Did you mean 'in.csv'"),
    "header alone": ({"source": "empty.csv"}, "a header but no rows"),
    "classes": ({"classes": ["a", "b"]}, "classes: expected 5 names, one for each score, got 2"),
    "taken": ({"source": "taken.csv"}, "the output has a column 'decision' of its own"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_a_sentence(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    options, message = REFUSED[case]
    logits, target = scores_of(50)
    write_csv(Path("in.csv"), logits)
    write_csv(Path("held.csv"), logits, target)
    for name, last in (("p.csv", "bus"), ("p-other.csv", "tram")):
        write_csv(Path(name), logits, target, header=tuple(f"p_{c}" for c in (*CLASSES[:4], last)))
    Path("empty.csv").write_text("id,cat,dog,cow,car,bus\n")
    Path("taken.csv").write_text("decision,cat,dog,cow,car,bus\nx,1,2,3,4,5\n")
    given: dict[str, Any] = {
        "source": "in.csv",
        "output": "out.csv",
        "kind": "logits",
        "taxonomy": TREE,
        "columns": CLASSES,
    }
    with pytest.raises(InputError, match=message) as caught:
        decide_file(**(given | options))
    assert "\n" not in str(caught.value)
    assert not Path("out.csv").exists()


def test_logits_that_look_like_probabilities_are_questioned(tmp_path: Path):
    probs = scores_of(5)[0].softmax(-1)
    with pytest.warns(UserWarning, match="pass --kind probs"):
        decided(tmp_path, probs)


def test_a_guarantee_that_answers_nothing_says_so(tmp_path: Path):
    logits = torch.tensor([[800.0, 0, 0, 0, 0]], dtype=torch.float64).repeat(40, 1)
    labeled = write_csv(tmp_path / "held.csv", logits, torch.full((40,), 4))
    rows = decided(tmp_path, logits, coverage=0.9, temperature=1.0, labeled=labeled)
    assert {row["decision"] for row in rows} == {"root"}
    assert {float(row["decision_probability"]) for row in rows} == {1.0}
    assert not math.isnan(float(rows[0]["decision_probability"]))


# Names of the scores in the file, and names that the caller gives.


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
@pytest.mark.parametrize("classes", [["dog", "cat", "car"], "taxonomy"])
def test_names_of_the_scores_in_another_order_are_refused(tmp_path: Path, suffix: str, classes: Any):
    tree = Taxonomy.from_nested({"vehicle": ["car"], "pet": ["dog", "cat"]})
    source, probs = tmp_path / f"in{suffix}", [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]
    np.savez(tmp_path / "in.npz", probs=probs, classes=["cat", "dog", "car"], target=["cat", "car"])
    (tmp_path / "in.csv").write_text("target,cat,dog,car\ncat,.7,.2,.1\ncar,.1,.2,.7\n")
    for call in (
        lambda: decide_file(source, tmp_path / "out.csv", kind="probs", taxonomy=tree, classes=classes),
        lambda: audit(source, kind="probs", taxonomy=tree, classes=classes),
    ):
        with pytest.raises(
            InputError, match="classes: the scores have names of their own, which are these in another order"
        ):
            call()
    same, other = ["cat", "dog", "car"], ["dog", "horse", "cart"]
    assert audit(source, kind="probs", taxonomy=tree, classes=same).basics.accuracy == 1
    renamed = Taxonomy.from_nested({"vehicle": ["cart"], "animal": ["dog", "horse"]})
    decide_file(source, tmp_path / "out.csv", kind="probs", taxonomy=renamed, classes=other)
    assert [row["decision"] for row in csv.DictReader((tmp_path / "out.csv").open())] == ["dog", "cart"]


def test_labeled_samples_are_put_into_the_order_of_the_names_that_are_given(tmp_path: Path):
    names, order = np.array(["cat", "dog", "car"]), [2, 0, 1]
    draw = torch.Generator().manual_seed(0)
    target = torch.randint(3, (200,), generator=draw)
    logits = (2 * torch.randn(200, 3, generator=draw) + 2 * F.one_hot(target, 3)).double()
    np.savez(tmp_path / "in.npz", logits=logits)
    np.savez(tmp_path / "same.npz", logits=logits, target=names[target], classes=names)
    np.savez(tmp_path / "other.npz", logits=logits[:, order], target=names[target], classes=names[order])
    np.savez(tmp_path / "renamed.npz", logits=logits, target=target, classes=["a", "b", "c"])
    found = [
        decide_file(
            tmp_path / "in.npz", tmp_path / "out.csv", costs=1 - np.eye(3), classes=names, labeled=tmp_path / labeled
        ).temperature
        for labeled in ("same.npz", "other.npz", "renamed.npz")
    ]
    assert 1 < found[0] < 5
    assert found == pytest.approx([found[0]] * 3)


def test_numbers_as_labels_of_scores_in_another_order_are_refused(tmp_path: Path):
    """They could be positions in either file; `audit` reads them as those of the file, and `decide` read the other's."""
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    tables = {"in": (["cat", "dog", "car"], probs), "same": (["cat", "dog", "car"], probs)}
    for name, (classes, rows) in {**tables, "other": (["car", "cat", "dog"], probs[:, [2, 0, 1]])}.items():
        lines = [",".join(map(str, (row.argmax(), *row))) for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join(["label", *classes]), *lines]))
    tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "thing": ["car"]})
    assert audit(tmp_path / "other.csv", kind="probs").basics.accuracy == 1

    options: dict[str, Any] = {"kind": "probs", "taxonomy": tree, "temperature": 1.5, "coverage": 0.9}
    decide_file(tmp_path / "in.csv", tmp_path / "out.csv", labeled=tmp_path / "same.csv", **options)
    with pytest.raises(InputError, match=r"labeled: .* has numbers as labels, and the classes in another order"):
        decide_file(tmp_path / "in.csv", tmp_path / "out.csv", labeled=tmp_path / "other.csv", **options)


def test_labeled_scores_with_the_names_of_other_scores_are_refused(tmp_path: Path):
    target = np.arange(30) % 3
    np.savez(tmp_path / "in.npz", probs=np.eye(3)[target])
    np.savez(tmp_path / "held.npz", probs=np.eye(3)[target], target=target, classes=["dog", "cat", "bike"])
    options: dict[str, Any] = {"costs": 1 - np.eye(3), "classes": ["cat", "dog", "car"]}
    with pytest.raises(InputError, match=r"labeled: .* only one of them has 'bike', 'car'"):
        decide_file(tmp_path / "in.npz", tmp_path / "out.csv", labeled=tmp_path / "held.npz", **options)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_bytes_are_written_as_text(tmp_path: Path, suffix: str):
    """Arrays of bytes, as HDF5 files have them, and columns of bytes, as some writers of Parquet store text."""
    ids, probs, source = [b"s1", "Köln".encode()], np.array([[0.75, 0.25], [0.25, 0.75]]), tmp_path / f"in{suffix}"
    if suffix == ".npz":
        np.savez(source, probs=probs, id=np.array(ids), classes=["cat", "dog"])
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pyarrow.table({"id": ids, "cat": probs[:, 0], "dog": probs[:, 1]}), source
        )
    columns = None if suffix == ".npz" else ["cat", "dog"]
    decide_file(source, tmp_path / "out.csv", kind="probs", costs=1 - np.eye(2), columns=columns)
    assert [row["id"] for row in rows_of(tmp_path / "out.csv")] == ["s1", "Köln"]
