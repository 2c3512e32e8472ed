"""What the audit refuses, in one sentence each; the command line; groups that are no numbers."""

import json
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from test_audit import real, real_probs
from typer.testing import CliRunner

from labelkin import InputError, Taxonomy, metrics
from labelkin.audit import audit, decide_file
from labelkin.cli._audit import audit as command
from labelkin.cli._errors import ErrorGroup
from labelkin.training._cost_files import costs_for, has_names

app = typer.Typer(cls=ErrorGroup, pretty_exceptions_enable=False)
app.command("audit")(command)
app.callback()(lambda: None)


def call(*arguments: Any) -> Any:
    result = CliRunner().invoke(app, ["audit", *map(str, arguments)], prog_name="labelkin")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*arguments: Any) -> str:
    result = call(*arguments)
    assert result.exit_code == 2, (result.stdout, result.stderr)
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    return str(result.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The real predictions, a tree with words for digits, and the same with a slip of the pen."""
    logits, y = real()
    np.savez(tmp_path / "logits.npz", target=y, logits=logits)
    np.savez(tmp_path / "probs.npz", target=y, probs=real_probs())
    (tmp_path / "probs.csv").write_text(table("target,cat,dog,cow", ["cat,.7,.2,.1", "dog,.3,.3,.4", "cow,.1,.1,.8"]))
    (tmp_path / "tree.json").write_text('{"pet": ["cat", "dog"], "farm": ["cow", "pig"]}')
    (tmp_path / "digits.json").write_text('{"low": ["0", "1", "2", "3", "4"], "high": ["5", "6", "7", "8", "9"]}')
    return tmp_path


def table(*lines: Any) -> str:
    return "\n".join([lines[0], *lines[1]]) + "\n"


# The command.


@pytest.mark.long
def test_json_is_json_and_what_the_function_finds(folder: Path):
    np.savez(folder / "perfect.npz", target=np.arange(10).repeat(3), probs=np.eye(10).repeat(3, 0))

    def forbidden(constant: str) -> None:
        raise AssertionError(constant)

    result = call(folder / "perfect.npz", "--taxonomy", folder / "digits.json", "--json")
    found = json.loads(result.stdout, parse_constant=forbidden)
    assert result.exit_code == 0
    assert found["hierarchy"]["severity"] is None  # no mistakes
    assert found["basics"]["accuracy"] == 1
    printed = json.loads(call(folder / "logits.npz", "--taxonomy", folder / "digits.json", "--json").stdout)
    function = audit(folder / "logits.npz", taxonomy=folder / "digits.json")
    assert printed["hierarchy"]["severity"] == function.hierarchy.severity
    assert Taxonomy.from_newick(printed["structure"]["tree"]) == function.structure.tree
    assert set(printed) == set(function._fields) - {"predictions", "tree"}


def test_text_and_every_option(folder: Path):
    (folder / "costs.csv").write_text(table("true,cat,dog,cow", ["cat,0,1,2", "dog,1,0,3", "cow,2,3,0"]))
    (folder / "names.txt").write_text("cat\ndog\ncow\n")
    np.savez(folder / "odd.npz", truth=np.array([0, 1, 2]), out=3 * np.eye(3)[[0, 2, 2]])
    said = call(
        *(folder / "odd.npz", "--kind", "logits", "--target", "truth", "--scores", "out", "--top", 1, "--seed", 1),
        *("--classes", folder / "names.txt", "--costs", folder / "costs.csv", "--taxonomy", folder / "tree.json"),
    )
    assert said.exit_code == 0
    assert "dog   cow        1      3" in said.stdout
    assert "dropped 1 class not in the predictions" in said.stdout
    (folder / "labels.csv").write_text(table("y,guess", ["cat,dog", "cat,cat", "pig,cow"]))
    labels = call(folder / "labels.csv", "--kind", "labels", "--predicted", "guess", "--taxonomy", folder / "tree.json")
    assert "33.33 %" in labels.stdout
    picked = call(folder / "probs.csv", "--kind", "probs", "--columns", "cow,dog,cat")
    assert "66.67 %" in picked.stdout


@pytest.mark.long
def test_percentages_called_logits_are_questioned():
    percent, target = 100 * real_probs(), real()[1]
    with pytest.warns(UserWarning, match="if these are percentages, divide them by 100 and pass --kind probs"):
        audit({"target": target, "logits": percent})
    for logits in (percent - 1, percent / 2):
        assert not [note for note in audit({"target": target, "logits": logits}).notes if "percent" in note]


@pytest.mark.filterwarnings("always:logits")
def test_probabilities_called_logits_are_a_note_and_no_error(folder: Path):
    result = call(folder / "probs.npz", "--kind", "logits", "--scores", "probs")
    assert result.exit_code == 0
    assert "Note: logits: all values are between 0 and 1 and every row sums to 1" in result.stderr
    with pytest.warns(UserWarning, match="pass --kind probs"):
        found = audit({"target": np.arange(3), "logits": np.eye(3)})
    assert any("pass --kind probs" in note for note in found.notes)


@pytest.mark.long
def test_a_shipped_tree_and_its_own_order_of_classes(folder: Path):
    by_name = call(folder / "logits.npz", "--taxonomy", "cifar10", "--classes", "taxonomy", "--json")
    assert json.loads(by_name.stdout)["classes"][:2] == ["airplane", "automobile"]


# Refusals.


def save(folder: Path, **arrays: Any) -> Path:
    logits, y = real()
    np.savez(folder / "bad.npz", **{"target": y, "logits": logits, **arrays})
    return folder / "bad.npz"


def changed(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    other = array.astype(np.float64).copy()
    other[place] = value
    return other


@pytest.mark.parametrize(
    ("arrays", "options", "sentence"),
    [
        (
            lambda: {"logits": real_probs() * changed(np.ones((1297, 1)), [3, 8], 0.6)},
            "probs",
            "got 2 of 1297 that do not",
        ),
        (lambda: {"logits": changed(real_probs(), (5, 0), 0.5)}, "probs", "(sample 5 sums to"),
        (dict, "probs", "which look like logits or log-probabilities; pass --kind logits"),
        (lambda: {"logits": 100 * real_probs()}, "probs", "which look like percentages; divide them by 100."),
        (lambda: {"logits": changed(real()[0], (7, [1, 2]), np.nan)}, "logits", "2 values missing, NaN or infinite"),
        (lambda: {"logits": changed(real()[0], (7, 1), np.nan)}, "logits", "in column 1 (1), first in sample 7"),
        (lambda: {"target": real()[1] + 3}, "logits", "positions from 0 to 9, got 10, 11, 12"),
        (lambda: {"target": np.array(["cat"] * 1297)}, "logits", "the labels are names ('cat'), but"),
        (lambda: {"target": real()[1] - 1}, "logits", "'-1'"),
        (lambda: {"target": changed(real()[1], 4, 0.5)}, "logits", "target in sample 4: expected a class name"),
        (lambda: {"target": real()[1][:-1]}, "logits", "expected 1,296 rows"),
        (lambda: {"predicted": real()[1][:-1]}, "labels", "expected 1,297 labels in"),
        (lambda: {"logits": real()[0][0]}, "logits", "expected numbers of shape (n, K)"),
        (lambda: {"target": real()[0]}, "logits", "expected one class name or whole number per sample"),
        (lambda: {"target": [], "logits": np.zeros((0, 3))}, "logits", "has no samples"),
        (lambda: {"classes": ["a", "b"]}, "logits", "expected 10 names, one for each score, got 2"),
        (lambda: {"classes": ["a"] * 10}, "logits", "duplicate name 'a'"),
    ],
)
def test_arrays_that_are_wrong(folder: Path, arrays: Any, options: str, sentence: str):
    names = ["--scores", "logits"] if options == "probs" else []
    assert sentence in refused(save(folder, **arrays()), "--kind", options, *names)


def test_what_it_is_must_be_said(folder: Path):
    assert "does not name the kind of its predictions" in refused(folder / "probs.csv")
    assert "it has several of the names 'logits', 'probs', 'predicted': 'logits', 'predicted'" in refused(
        save(folder, predicted=real()[1])
    )
    assert "Invalid value for '--kind'" in call(folder / "probs.csv", "--kind", "prob").stderr
    with pytest.raises(InputError, match=r"kind: expected one of .* Did you mean 'probs'"):
        audit(folder / "probs.csv", kind="prob")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--target", "targit"], "has no 'targit', only 'logits', 'target'. Did you mean 'target'?"),
        (["--scores", "logit"], "Did you mean 'logits'?"),
        (["--kind", "labels"], "predicted: "),
        (["--columns", "a,b"], "has arrays, not columns; name the array with the scores (--scores)"),
        (
            ["--taxonomy", "cifar10"],
            "10 of 10 not in the taxonomy: '0', '1', '2', '3', '4' and 5 more; pass the class names",
        ),
        (["--taxonomy", "cifar11"], "Did you mean 'cifar10'"),
        (["--classes", "a,b"], "expected 10 names, one for each score, got 2"),
        (["--classes", "names.tyt"], "expected a,b,c, a text file with one name per line, or 'taxonomy'"),
        (["--classes", "taxonomy"], "pass a taxonomy as well"),
        (["--top", "0"], "top: expected a whole number of at least 1"),
        (["--seed", "-1"], "seed: expected a whole number of at least 0"),
    ],
)
def test_names_that_are_wrong(folder: Path, options: list[str], sentence: str):
    assert sentence in refused(folder / "logits.npz", *options)


@pytest.mark.parametrize(
    ("suffix", "content", "options", "sentence"),
    [
        (".csv", "", [], "the file is empty"),
        (".npz", "", [], "the file is empty"),
        (".csv", "target,cat,dog\n", ["--kind", "probs"], "a header but no rows"),
        (".jsonl", "\n\n", ["--kind", "probs"], "the table is empty"),
        (".npz", "no numpy", [], "numpy"),
        (".tsv", "target\tcat", [], "expected a name that ends in .npz, .csv, .jsonl, .parquet"),
        (".csv", "target,cat,dog\ncat,.5,.5\ndgo,.5,.5\n", ["--kind", "probs"], "'dgo' (similar: 'dog')"),
        (".csv", "target,cat,dog\ncat,.5,.5\ndog,,.5\n", ["--kind", "probs"], "in column cat (1), first in line 3"),
        (".csv", "target,cat,dog\n,.5,.5\n", ["--kind", "probs"], "target in line 2: expected a class name"),
        (
            ".csv",
            "target,cat,dog\ncat,.5,.5\ndog,.9,.5\n",
            ["--kind", "probs"],
            "got 1 of 2 that do not (line 3 sums to 1.4)",
        ),
        (
            ".csv",
            "target,file,cat,dog\ncat,a.png,1,0\n",
            ["--kind", "probs"],
            "expected a number in column 'file', got 'a.png'",
        ),
        (".csv", "truth,cat,dog\ncat,.5,.5\n", ["--kind", "probs"], "has none of 'y', 'targets', 'target'"),
        (".csv", "y,label,cat,dog\ncat,cat,.5,.5\n", ["--kind", "probs"], "has 'y', 'label'; name the one"),
        (".csv", "targe,cat,dog\ncat,.5,.5\n", ["--kind", "probs"], "Did you mean 'targe'?"),
        (".csv", "target,cat,dog\ncat,.5,.5\n", ["--kind", "probs", "--columns", "cat,dgo"], "Did you mean 'dog'?"),
        (".csv", "target,cat,dog\ncat,.5,.5\n", ["--kind", "probs", "--columns", "p_*"], "got 'p_*'"),
        (".csv", "target,predicted\ncat,cat\n", ["--kind", "probs"], "pass --kind labels"),
        (".csv", "target,guess\ncat,cat\n", ["--kind", "labels"], "name another (--predicted)"),
        (".csv", "target,probs\ncat,.5\n", [], "expected a list of numbers in column 'probs'"),
        (".csv", "target,cat,dog\ncat,.5\n", ["--kind", "probs"], "line 2: expected 3 values"),
        (
            ".jsonl",
            '{"y": 0, "probs": [1, 0]}\n{"y": 0, "probs": [1]}\n',
            [],
            "line 2: expected 2 scores, as in line 1, got 1",
        ),
        (".jsonl", '{"y": 0, "probs": [1, "x"]}\n', [], "expected a number in column 'probs', got 'x'"),
        (".jsonl", '{"y": 0, "probs": [[1, 2], [3, 4]]}\n', [], "expected a list of numbers in column 'probs'"),
        (".jsonl", '{"y": 0, "probs": [null, 1]}\n', [], "1 value missing, NaN or infinite"),
        (".jsonl", '{"y": null, "predicted": 1}\n', [], "target in line 1: expected a class name"),
        (".parquet", "no parquet", ["--kind", "probs"], "not a readable parquet file"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, suffix: str, content: str, options: list[str], sentence: str):
    file = tmp_path / f"bad{suffix}"
    file.write_text(content)
    assert sentence in refused(file, *options)


def test_a_file_that_is_not_there(folder: Path):
    assert "there is no such file. Did you mean 'logits.npz'?" in refused(folder / "logit.npz")


def test_classes_that_the_taxonomy_lacks_are_listed_with_what_is_near(folder: Path):
    file = folder / "p.csv"
    file.write_text(table("target,kat,dog,sheep", ["kat,.7,.2,.1", "dog,.3,.3,.4"]))
    said = refused(file, "--kind", "probs", "--taxonomy", folder / "tree.json")
    assert (
        "2 of 3 not in the taxonomy: 'kat' (similar: 'cat'), 'sheep'; correct the names, or add them to the tree."
        in said
    )
    file.write_text(table("target,cat,farm", ["cat,.7,.3"]))
    assert "'farm' is an inner node" in refused(file, "--kind", "probs", "--taxonomy", folder / "tree.json")
    file.write_text(table("target,predicted", ["cat,dgo"]))
    assert "'dgo' (similar: 'dog')" in refused(file, "--taxonomy", folder / "tree.json")
    file.write_text(table("target,predicted", ["0,1"]))
    said = refused(file, "--taxonomy", folder / "tree.json")
    assert "pass the class names in the order of the scores" in said
    assert "--classes taxonomy" not in said  # the order of the tree need not be that of the scores


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "c.csv",
            "true,cat,dog,cow\ncat,0,-1,2\ndog,1,0,3\ncow,2,3,0\n",
            "not negative, got -1 for the true class 'cat' and the answer 'dog'",
        ),
        ("c.csv", "true,cat,dog\ncat,0,1\ndog,1,0\n", "no row for the class 'cow'"),
        ("c.csv", "true,kat,dog,cow\nkat,0,1,2\ndog,1,0,3\ncow,2,3,0\n", "no row for the class 'cat' (similar: 'kat')"),
        (
            "c.csv",
            "t,bat,kat,cow\nbat,0,1,2\nkat,1,0,3\ncow,2,3,0\n",
            "no row for the classes 'cat' (similar: 'kat', 'bat'), 'dog';",
        ),
        (
            "c.csv",
            "t,cat,dog,cow,pig\ncat,0,1,1,1\ndog,1,0,1,1\ncow,1,1,0,1\npig,1,1,1,0\n",
            "expected only the 3 classes of the predictions, got 'pig'",
        ),
        ("c.csv", "true,cat,dog,cow\ndog,0,1,2\ndog,1,0,3\ncow,2,3,0\n", "classes: duplicate name 'dog'"),
        ("c.csv", "true,cat,dog,cow\ncat,0,1,2\n", "classes: expected at least 2 names, got 1"),
        ("c.csv", "true,cat,dog,cow\ncat,0,1\ndog,1,0,3\ncow,2,3,0\n", "3 names in its header, but 2 numbers"),
        (
            "c.csv",
            "true,cat,dog,cow\ncat,0,x,2\ndog,1,0,3\ncow,2,3,0\n",
            "c.csv: expected a number for the true class 'cat' and the answer 'dog', got 'x'",
        ),
        (
            "c.csv",
            "true,cat,dog,cow\ncat,0,nan,2\ndog,1,0,3\ncow,2,3,0\n",
            "expected finite numbers, got nan at [0, 1]",
        ),
        ("c.csv", "", "is empty"),
        ("c.txt", "", "expected a .csv or .npz file"),
    ],
)
def test_costs_that_are_wrong(folder: Path, name: str, content: str, sentence: str):
    (folder / name).write_text(content)
    said = refused(folder / "probs.csv", "--kind", "probs", "--costs", folder / name)
    assert said.startswith("Error: costs: ")
    assert sentence in said


def test_costs_without_names_or_of_another_size(folder: Path):
    np.savez(folder / "c.npz", costs=np.ones((3, 3)))
    assert "must have the arrays" in refused(folder / "probs.csv", "--kind", "probs", "--costs", folder / "c.npz")
    with pytest.raises(InputError, match="expected 10 x 10 for 10 classes"):
        audit(folder / "logits.npz", costs=1 - np.eye(3))
    assert "there is no file" in refused(folder / "logits.npz", "--costs", folder / "d.npz")


@pytest.mark.parametrize("groups", [["pet", "pet", "farm"], "abc", None, [[0], [1, 2]]])
def test_groups_of_classes_are_numbers(groups: Any):
    probs, target = torch.eye(3), torch.arange(3)
    with pytest.raises(InputError, match="groups: expected a group number for each class"):
        metrics.superclass_accuracy(probs, target, groups)
    with pytest.raises(InputError, match="groups: "):
        metrics.superclass_accuracy_by_kmeans(probs, probs, target, groups)


# The guide.


@pytest.mark.long
def test_the_guides_example_says_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All but the figures, which follow scikit-learn's solver, word for word; and its lines of Python."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    parts = {
        kind: re.findall(rf"```{kind}\n(.*?)```", text, flags=re.DOTALL) for kind in ("python", "json", "sh", "text")
    }
    monkeypatch.chdir(tmp_path)
    Path("tree.json").write_text(parts["json"][0])
    names: dict[str, Any] = {}
    for code in parts["python"]:
        exec(code, names)
    printed = call(*shlex.split(parts["sh"][1])[2:]).stdout
    assert _words(printed) == _words(parts["text"][0])
    assert names["found"].basics.mistakes == pytest.approx(133, abs=5)


def _words(text: str) -> set[str]:
    """What lines begin with, up to the first figure; the learned tree's lines left out."""
    starts = (re.split(r"[-+\d]", line)[0].strip() for line in text.splitlines() if "──" not in line)
    return {start for start in starts if start and "undefined" not in start}


def test_rows_of_costs_may_stand_in_another_order_than_columns(folder: Path):
    (folder / "a.csv").write_text("true,cat,dog,cow\ncat,0,1,2\ndog,3,0,4\ncow,5,6,0\n")
    (folder / "b.csv").write_text("true,dog,cow,cat\ncow,6,0,5\ncat,1,2,0\ndog,0,4,3\n")
    one, other = (costs_for(folder / name, ["cat", "dog", "cow"]) for name in ("a.csv", "b.csv"))
    assert one.tolist() == other.tolist() == [[0, 1, 2], [3, 0, 4], [5, 6, 0]]


# Input that can be read, but was not meant like that.


def shuffled(folder: Path) -> tuple[Path, Path, np.ndarray]:
    """Real logits without names, and a tree whose file lists the digits in another order than the scores have."""
    logits, y = real()
    names = np.array([f"d{k}" for k in range(10)])
    (folder / "other.json").write_text(
        json.dumps({"loop": ["d0", "d6", "d9", "d8"], "open": ["d2", "d3", "d5", "d1", "d4", "d7"]})
    )
    np.savez(folder / "numbers.npz", target=y, logits=logits)
    np.savez(folder / "named.npz", target=names[y], logits=logits)
    return folder / "numbers.npz", folder / "named.npz", names


@pytest.mark.long
def test_the_order_of_a_tree_is_not_assumed_to_be_that_of_the_scores(folder: Path):
    numbers, named, names = shuffled(folder)
    tree = ("--taxonomy", folder / "other.json")
    said = refused(numbers, *tree)
    assert "pass the class names in the order of the scores" in said
    said = refused(numbers, *tree, "--classes", "taxonomy")
    assert (
        "numbers cannot show that the order of the tree (0 = 'd0', 1 = 'd6', 2 = 'd9', 3 = 'd8', 4 = 'd2', ...)" in said
    )
    said = call(numbers, *tree, "--classes", ",".join(names)).stdout
    assert "Check first" not in said
    assert "Classes are in the order given (0 = 'd0', 1 = 'd1', 2 = 'd2', 3 = 'd3', 4 = 'd4', ...)." in said
    with pytest.warns(UserWarning, match=r"is no better than chance .* \(0 = 'd0', 1 = 'd6', 2 = 'd9'"):
        found = audit(named, taxonomy=folder / "other.json", classes="taxonomy")
    assert "Check first\n  The accuracy of" in str(found)
    assert any(note.startswith("Classes are in the order of the tree (0 = 'd0', 1 = 'd6'") for note in found.notes)


@pytest.mark.long
def test_named_labels_without_named_scores_ask_for_names(folder: Path):
    _, named, _ = shuffled(folder)
    said = refused(named)
    assert "target: the labels are names ('d0', 'd1', 'd2' and 7 more), but" in said
    assert (
        "does not say which score is of which class; pass the class names in the order of the scores (--class" in said
    )


@pytest.mark.long
def test_columns_that_are_no_classes_are_named(tmp_path: Path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 20)
    names = ["cat", "dog", "cow"]
    others = {
        "id": (np.arange(20), "its values number the rows"),
        "case": (rng.permutation(2000)[:20], "its values are whole numbers that all differ"),
        "entropy": (rng.random(20), "without it, the probabilities of each row sum to 1"),
        "fold": (rng.integers(0, 3, 20), "no sample has it as its label"),
    }
    for column, (values, why) in others.items():
        kind = "probs" if column == "entropy" else "logits"
        lines = [
            f"{names[k % 3]},{value},{','.join(map(str, row))}"
            for k, (value, row) in enumerate(zip(values, probs, strict=True))
        ]
        (tmp_path / "p.csv").write_text(table(f"target,{column},cat,dog,cow", lines))
        said = refused(tmp_path / "p.csv", "--kind", kind)
        assert f"columns: {column!r} in {tmp_path / 'p.csv'} does not look like a class ({why})" in said
        assert "(--columns), perhaps 'cat', 'dog', 'cow'" in said
        assert audit(tmp_path / "p.csv", kind=kind, columns=names).classes == tuple(names)


def test_a_class_may_be_called_id(tmp_path: Path):
    lines = ["id,0,.6,.4", "cat,1,.2,.8", "id,2,.5,.5", "cat,3,.1,.9"]
    (tmp_path / "p.csv").write_text(table("target,id,dog,cat", lines))
    assert audit(tmp_path / "p.csv", kind="logits").classes == ("id", "dog", "cat")


@pytest.mark.parametrize(
    ("count", "right", "asked"), [(40, 4, True), (40, 9, False), (400, 50, True), (400, 80, False), (5, 0, False)]
)
def test_an_accuracy_at_chance_is_questioned(count: int, right: int, asked: bool):
    target = np.arange(count) % 10
    predicted = np.where(np.arange(count) < right, target, (target + 3) % 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = audit({"target": target, "predicted": predicted})
    assert bool(found.doubts) == asked
    assert not any("scores" in doubt for doubt in found.doubts)  # there are none


# What to do.


def advised(costs: Any = None, **options: Any) -> Any:
    logits, y = real()
    return audit({"target": y, "logits": logits}, costs=costs, **options)


@pytest.mark.long
def test_the_advice_is_in_the_costs_and_on_samples_that_chose_nothing(folder: Path):
    costs = 1.0 - np.eye(10)
    costs[:, 3] = costs[3, :] = 0.0  # deciding 3 never costs anything
    found = advised(costs)
    by_loop = [part for part in found.crm if part.costs == "costs"][-1]
    assert found.advice.rule == "crm"
    assert (found.advice.by, found.advice.samples, found.advice.change) == ("costs", 649, by_loop.cost)
    first = str(found).partition("Quality")[0]
    assert "Decide by the least expected cost (labelkin decide --rule crm --temperature" in first
    assert f"falls from {by_loop.cost.before:.3f} to 0.000" in first
    assert "measured on 649 samples that did not choose the temperature" in first
    assert advised(1.0 - np.eye(10)).advice.rule == "argmax"
    assert advised().advice.sentence.startswith("Say what mistakes cost")
    assert advised(taxonomy=folder / "digits.json").advice.by == "taxonomy"
    assert advised(costs, taxonomy=folder / "digits.json").advice.by == "costs"


def test_naming_the_predicted_labels_says_what_they_are(tmp_path: Path):
    (tmp_path / "p.csv").write_text(table("target,guess", ["cat,dog", "cat,cat", "dog,dog"]))
    assert "66.67 %" in call(tmp_path / "p.csv", "--predicted", "guess").stdout


# Arrays as other libraries make them.


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (np.array(["car", "cat", "dog"]), np.array(["car", "cat", "dog"], dtype=object)),  # scikit-learn and pandas
        (list(np.array(["car", "cat", "dog"])), ["car", "cat", "dog"]),
        (np.array(["car", "cat", "dog"], dtype=object), np.array([b"car", b"cat", b"dog"])),
    ],
)
def test_class_names_and_labels_may_be_arrays(tmp_path: Path, names: Any, labels: Any):
    tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "vehicle": ["car"]})
    probs = [[0.8, 0.1, 0.1], [0.1, 0.3, 0.6], [0.1, 0.2, 0.7]]
    found = audit({"target": labels, "probs": probs}, classes=names, taxonomy=tree)
    assert found.classes == ("car", "cat", "dog")
    assert {type(name) for name in found.classes} == {str}
    assert found.notes == ("Classes are in the order given (0 = 'car', 1 = 'cat', 2 = 'dog').",)
    assert found.predictions.target.tolist() == [0, 1, 2]
    np.savez(tmp_path / "probs.npz", probs=probs)
    decided = decide_file(tmp_path / "probs.npz", tmp_path / "out.csv", taxonomy=tree, classes=names)
    assert decided.classes == 3
    assert "np.str_" not in (tmp_path / "out.csv").read_text()


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        ([3, 5, 7], np.array([7, 5, 3])),
        (np.array([3.0, 5.0, 7.0]), np.array([7.0, 5.0, 3.0])),
        ([3.0, 5.0, 7.0], np.array([7, np.float32(5), "3"], dtype=object)),
    ],
)
@pytest.mark.parametrize("as_array", [False, True])
def test_class_names_may_be_numbers(names: Any, labels: Any, as_array: bool):
    probs = [[0.8, 0.1, 0.1], [0.1, 0.3, 0.6], [0.1, 0.2, 0.7]]
    arrays: dict[str, Any] = {"target": labels, "probs": probs}
    found = audit({**arrays, "classes": names}) if as_array else audit(arrays, classes=names)
    assert (found.classes, found.predictions.target.tolist()) == (("3", "5", "7"), [2, 1, 0])


def test_truth_values_are_the_classes_of_that_name():
    found = audit(
        {"target": np.array([True, False]), "probs": [[0.3, 0.7], [0.9, 0.1]]}, classes=np.array([False, True])
    )
    assert (found.classes, found.basics.accuracy) == (("False", "True"), 1.0)


@pytest.mark.parametrize("missing", [None, float("nan"), [1], object()])
def test_objects_that_are_no_labels(missing: Any):
    target = np.array(["a", "b", None], dtype=object)
    target[2] = missing
    with pytest.raises(InputError, match="target in sample 2: expected a class name or a whole number, got"):
        audit({"target": target, "probs": np.eye(3)}, classes=["a", "b", "c"])


@pytest.mark.parametrize("names", [("01", "02", "03"), ("1.0", "2.0", "3.0")])
def test_numbers_that_are_names_or_positions_of_other_classes_are_refused(names: tuple[str, ...]):
    probs = np.eye(3)[[0, 1, 1]]
    with pytest.raises(InputError, match=f"target: '1' may be the class '{names[0]}', or the position of '{names[1]}'"):
        audit({"target": [1, 2, 2], "probs": probs}, classes=names)
    assert audit({"target": [0, 1, 1], "probs": probs}, classes=names).basics.accuracy == 1  # no class is called 0
    assert audit({"target": ["00", "1"], "probs": np.eye(2)}, classes=("00", "01")).basics.accuracy == 1  # the same


@pytest.mark.parametrize("columns", [None, "*"])
def test_row_names_are_no_class(tmp_path: Path, columns: str | None):
    rows = ["12,cat,.7,.2,.1", "5,dog,.3,.3,.4", "7,cow,.1,.1,.8"]
    (tmp_path / "p.csv").write_text(table(",target,cat,dog,cow", rows))
    assert audit(tmp_path / "p.csv", kind="probs", columns=columns).classes == ("cat", "dog", "cow")
    out = tmp_path / "out.csv"
    decide_file(tmp_path / "p.csv", out, kind="probs", costs=1 - np.eye(3), columns=columns)
    assert out.read_text().splitlines()[:2] == [
        ",target,decision,decision_kind,decision_probability",
        "12,cat,cat,class,0.7",
    ]


@pytest.mark.parametrize(
    "content",
    [
        ";cat;dog;cow\ncat;0;1,5;2\ndog;1;0;3\ncow;2;3;0\n",
        "true\tcat\tdog\tcow\ncat\t0\t1.5\t2\ndog\t1\t0\t3\ncow\t2\t3\t0\n",
        "\ufeff;dog;cat;cow\r\ndog;0;1;3\r\ncow;3;2;0\r\ncat;1,5;0;2\r\n",
    ],
)
def test_costs_may_have_the_separators_of_other_tables(tmp_path: Path, content: str):
    (tmp_path / "c.csv").write_text(content, encoding="utf-8", newline="")
    assert has_names(tmp_path / "c.csv")
    found = costs_for(tmp_path / "c.csv", ["cat", "dog", "cow"])
    assert found.tolist() == [[0, 1.5, 2], [1, 0, 3], [2, 3, 0]]


def test_names_of_costs_may_be_bytes(tmp_path: Path):
    np.savez(tmp_path / "c.npz", costs=[[0, 2], [1, 0]], classes=np.array([b"cat", b"dog"]))
    assert costs_for(tmp_path / "c.npz", ["dog", "cat"]).tolist() == [[0, 1], [2, 0]]
