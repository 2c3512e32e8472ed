"""Tables as pandas and spreadsheets write them: labels with a fraction, names with commas, columns that are no scores."""

from pathlib import Path

import numpy as np
import pytest

from labelkin import InputError
from labelkin.audit import audit


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
