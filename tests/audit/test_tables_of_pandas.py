"""Tables as pandas and spreadsheets write them: labels with a fraction, names with commas, columns that are no scores."""

from pathlib import Path

import numpy as np
import pytest

from labelkin import InputError
from labelkin.audit import audit, decide_file
from labelkin.cli._decision_options import column_names
from labelkin.cli._option_groups import words


def write(path: Path, header: str, labels: list[str]) -> Path:
    """Write a table in which each sample's first score is .7, and the label follows."""
    path.write_text("\n".join([header, *(f".7,.2,.1,{label}" for label in labels)]) + "\n", encoding="utf-8")
    return path


def test_whole_numbers_with_a_fraction_are_those_numbers(tmp_path: Path):
    found = audit(write(tmp_path / "t.csv", "p0,p1,p2,y", ["0.0", "0.0", "2.0"]), kind="probs")
    assert (found.basics.accuracy, found.basics.mistakes) == (pytest.approx(2 / 3), 1)
    named = audit(write(tmp_path / "n.csv", "10,20,30,y", ["10.0", "20.0", "30"]), kind="probs")
    assert named.basics.mistakes == 2
    own = audit(write(tmp_path / "o.csv", "1.0,2.0,3.0,y", ["1.0", "1.0", "3.0"]), kind="probs")
    assert own.basics.mistakes == 1  # the names of the classes have the fraction
    with pytest.raises(InputError, match=r"target: 3 labels are not among the 3 classes: '0\.0', '0\.5', '1\.0'"):
        audit(write(tmp_path / "h.csv", "p0,p1,p2,y", ["0.0", "0.5", "1.0"]), kind="probs")


def test_a_name_with_a_comma_between_semicolons(tmp_path: Path):
    (tmp_path / "t.csv").write_text("owl, barn;owl, snowy;y\n0,7;0,3;owl, barn\n0,6;0,4;owl, snowy\n")
    found = audit(tmp_path / "t.csv", kind="probs")
    assert found.classes == ("owl, barn", "owl, snowy")
    assert np.isclose(found.basics.accuracy, 0.5)


def test_columns_that_are_no_scores_are_left_out_by_name(tmp_path: Path):
    """An id of text or numbers, and a date; `decide` copies them. The labeled file need not have them."""
    rows = ["C1,1001,.7,.3", "C2,1004,.2,.8"]
    new, labeled = tmp_path / "new.csv", tmp_path / "labeled.csv"
    new.write_text("\n".join(["customer,number,cat,dog", *rows]) + "\n")
    labeled.write_text("customer,cat,dog,y\n" + "C3,.6,.4,cat\nC4,.3,.7,dog\nC5,.8,.2,dog\n" * 20)
    costs = {"cat": {"cat": 0, "dog": 9}, "dog": {"cat": 1, "dog": 0}}
    found = decide_file(
        new,
        tmp_path / "out.csv",
        kind="probs",
        costs=costs,
        labeled=labeled,
        temperature=1,
        ignore=["customer", "number"],
    )
    assert found.samples == 2
    written = [line.split(",")[:3] for line in (tmp_path / "out.csv").read_text().splitlines()]
    assert written == [["customer", "number", "decision"], ["C1", "1001", "cat"], ["C2", "1004", "cat"]]
    assert audit(labeled, kind="probs", ignore="customer").classes == ("cat", "dog")
    with pytest.raises(
        InputError, match=r"or name the columns with the scores \(--columns\), or those without \(--ignore"
    ):
        audit(labeled, kind="probs")
    with pytest.raises(InputError, match=r"ignore: .* has no 'custome', only .*. Did you mean 'customer'"):
        audit(labeled, kind="probs", ignore=["custome"])
    with pytest.raises(InputError, match="has arrays, not columns"):
        audit({"y": [0, 1], "probs": np.eye(2)}, ignore=["customer"])


def test_names_with_a_comma_on_the_command_line():
    assert words('"owl, barn", b') == ["owl, barn", "b"]
    assert words(" a ,, b") == ["a", "b"]
    assert words('five "5",b') == ['five "5"', "b"]
    assert column_names('"owl, barn",b') == ["owl, barn", "b"]
    assert audit({"y": [0, 1], "probs": np.eye(2)}, classes='"owl, barn",crane').classes == ("owl, barn", "crane")
