"""Tables of costs with answers that are not classes: the same from a file, a DataFrame and a mapping, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labelkin import InputError
from labelkin.decide import least_cost
from labelkin.training import costs_for, costs_in_order, read_costs
from support.commands import refused

TEXT = """true,dog,ask,cat,wait
cat,1,0.25,0,3
dog,0,0.5,4,3
"""


class Frame:
    """What is used of a pandas DataFrame: labels as one-dimensional arrays, numbered from 0 by default, and the numbers."""

    def __init__(self, numbers: Any, index: Any = None, columns: Any = None) -> None:
        self.numbers = np.array(numbers)
        rows, width = self.numbers.shape
        self.index, self.columns = np.array(index or range(rows)), np.array(columns or range(width))

    def to_numpy(self) -> Any:
        return self.numbers

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numbers


FRAME = Frame([[1, 0.25, 0, 3], [0, 0.5, 4, 3]], ["cat", "dog"], ["dog", "ask", "cat", "wait"])
BY_NAME = {"cat": {"dog": 1, "ask": 0.25, "wait": 3}, "dog": {"ask": 0.5, "cat": 4, "wait": 3}}


def written(folder: Path, text: str = TEXT) -> Path:
    path = folder / "costs.csv"
    path.write_text(text)
    return path


def npz(folder: Path, **arrays: Any) -> Path:
    path = folder / "costs.npz"
    np.savez(path, **arrays)
    return path


def archived(folder: Path) -> Path:
    numbers = [[0, 4, 0.5, 3], [1, 0, 0.25, 3]]
    return npz(folder, costs=numbers, classes=["dog", "cat"], actions=["ask", "wait"])


@pytest.mark.parametrize("make", [written, archived, lambda _: FRAME, lambda _: BY_NAME])
def test_columns_without_a_row_are_actions_and_stay_last(make: Any, tmp_path: Path):
    table = read_costs(make(tmp_path))
    assert set(table.names or ()) == {"cat", "dog"}
    assert table.actions == ("ask", "wait")
    found = costs_in_order(table, ["cat", "dog"])
    assert found.costs.tolist() == [[0, 1, 0.25, 3], [4, 0, 0.5, 3]]
    assert (found.names, found.actions) == (("cat", "dog"), ("ask", "wait"))
    assert costs_in_order(table, ["dog", "cat"]).costs.tolist() == [[0, 4, 0.5, 3], [1, 0, 0.25, 3]]


def test_a_frame_without_names_is_a_matrix_and_a_mapping_may_be_square():
    plain = Frame([[0, 1], [4, 0]])
    assert read_costs(plain).names is None
    assert costs_for(plain, ["a", "b"]).tolist() == [[0, 1], [4, 0]]
    assert costs_for({"b": {"a": 4}, "a": {"b": 1}}, ["a", "b"]).tolist() == [[0, 1], [4, 0]]
    named = Frame([[0, 4], [1, 0]], ["b", "a"], ["b", "a"])
    assert costs_for(named, ["a", "b"]).tolist() == [[0, 1], [4, 0]]  # by name, not by position


def test_numbers_are_read_however_they_lie_in_memory():
    numbers = np.array([[0, 1], [4, 0]])
    for given in (numbers[::-1, ::-1][::-1, ::-1], numbers.T.copy().T, numbers.astype(">f8")):
        assert read_costs(given).costs.tolist() == [[0, 1], [4, 0]]
    assert read_costs(numbers[::-1, ::-1]).costs.tolist() == [[0, 4], [1, 0]]
    assert least_cost(torch.tensor([[0.3, 0.7]]), numbers[::-1, ::-1]).tolist() == [0]
    assert least_cost(torch.tensor([[0.3, 0.7]]), numbers).tolist() == [1]
    for index in (["a", "b"], None):  # columns of several dtypes
        assert read_costs(Frame(numbers.astype(object), index, index)).costs.tolist() == [[0, 1], [4, 0]]
    with pytest.raises(InputError, match="expected a DataFrame of numbers, got a cell that is none"):
        read_costs(Frame(np.array([[0, "x"], [4, 0]], dtype=object), ["a", "b"], ["a", "b"]))


def test_a_table_of_pandas_is_read_by_name():
    pandas = pytest.importorskip("pandas")
    found = read_costs(pandas.DataFrame(FRAME.numbers, ["cat", "dog"], ["dog", "ask", "cat", "wait"]))
    assert costs_in_order(found, ["cat", "dog"]).costs.tolist() == [[0, 1, 0.25, 3], [4, 0, 0.5, 3]]
    assert read_costs(pandas.DataFrame([[0, 1], [4, 0]])).names is None


REFUSED: dict[str, tuple[str, str]] = {
    "a column is misspelled": (
        ",cats,dog\ncat,0,1\ndog,1,0\n",
        r"no column for the class 'cat' \(similar: 'cats'\); rows are",
    ),
    "a row is misspelled": (",cat,dog\ncats,0,1\ndog,1,0\n", r"no column for the class 'cats' \(similar: 'cat'\)"),
    "a row is missing": (
        ",cat,dog,cow\ncat,0,1,2\ncow,1,1,0\n",
        "no row for the class 'dog', which is only a column; add one",
    ),
    "an answer twice": (",cat,dog,ask,ask\ncat,0,1,2,2\ndog,1,0,2,2\n", "answers: duplicate name 'ask'"),
    "a class twice": (",cat,dog,ask\ncat,0,1,2\ncat,1,0,2\ndog,1,0,2\n", "classes: duplicate name 'cat'"),
    "an answer without a name": (",cat,dog,\ncat,0,1,2\ndog,1,0,2\n", "answers: expected non-empty strings"),
    "one class": (",cat,ask\ncat,0,1\n", "classes: expected at least 2 names, got 1"),
    "a cost is missing": (
        ",cat,dog,ask\ncat,0,1\ndog,1,0,2\n",
        "has 3 names in its header, but 2 numbers in the row 'cat'",
    ),
    "no number": (
        ",cat,dog,ask\ncat,0,1,x\ndog,1,0,2\n",
        "expected a number for the true class 'cat' and the answer 'ask', got 'x'",
    ),
    "a negative cost": (",cat,dog,ask\ncat,0,1,-1\ndog,1,0,2\n", "expected numbers that are not negative, got -1"),
    "an infinite cost": (",cat,dog,ask\ncat,0,1,inf\ndog,1,0,2\n", "expected finite numbers, got inf"),
    "similarities": (",cat,dog,ask\ncat,1,0.2,5\ndog,0.2,1,5\n", "the right answer always costs most"),
    "equal classes": (
        ",cat,dog,ask\ncat,1,1,5\ndog,1,1,5\n",
        "expected that some mistake costs more than the right answer",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_tables_that_cannot_be_right_are_refused(case: str, tmp_path: Path):
    text, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        costs_in_order(read_costs(written(tmp_path, text)), ["cat", "dog"])


def test_matrices_without_names_for_their_actions_are_refused(tmp_path: Path):
    wide = [[0, 1, 0.3], [1, 0, 0.3]]
    for matrix in (wide, np.array(wide), torch.tensor(wide), Frame(wide)):
        with pytest.raises(
            InputError, match=r"costs: expected names for the columns after the 2 classes.*shape \(2, 3\); pass"
        ):
            read_costs(matrix)
    with pytest.raises(InputError, match=r"expected a square matrix.*\(3, 2\)"):
        read_costs([[0, 1], [1, 0], [1, 1]])
    with pytest.raises(InputError, match=r"2 classes and 0 names of actions, but costs of shape \(2, 3\)"):
        read_costs(npz(tmp_path, costs=wide, classes=["cat", "dog"]))
    with pytest.raises(InputError, match="answers: duplicate name 'cat'"):
        read_costs(npz(tmp_path, costs=wide, classes=["cat", "dog"], actions=["cat"]))
    with pytest.raises(InputError, match="no cost of the answer 'ask' for the true class 'dog'; add it"):
        read_costs({"cat": {"dog": 1, "ask": 2}, "dog": {"cat": 1}})
    with pytest.raises(InputError, match="names: duplicate name '1'"):
        read_costs({1: {"2": 3}, "1": {"2": 5}, "2": {"1": 1}})
    with pytest.raises(InputError, match="names: duplicate name '2'"):
        read_costs({"1": {2: 3, "2": 5}, "2": {"1": 1}})
    with pytest.raises(InputError, match=r"expected a mapping {true class: {answer: cost}}, got 1 for 'cat'"):
        read_costs({"cat": 1, "dog": 2})


def test_training_comparison_and_evaluation_refuse_actions(tmp_path: Path):
    names = [str(k) for k in range(10)]
    rows = [",".join([true, *("0" if true == answer else "1" for answer in names), "0.4"]) for true in names]
    costs = written(tmp_path, "\n".join([",".join(["", *names, "ask"]), *rows]))
    message = (
        "costs: expected a column for each class alone, got 'ask' as well; training and its metrics have no place for answers "
        "that are not classes, so leave them out here, and give them to labelkin audit, decide, predict, serve or export."
    )
    with pytest.raises(InputError, match=message):
        costs_for(costs, names)
    quick = ("digits", "--epochs", "1", "--costs", costs)
    assert message in refused("train", *quick, "--objective", "one-hot", "--out", tmp_path / "run")
    assert message in refused("compare", *quick, "--objectives", "one-hot", "--out", tmp_path / "runs")
    term = ("--set", "one-hot.expected_cost=0.5", "--set", f"one-hot.costs={costs}")
    assert message in refused("train", *quick[:3], "--objective", "one-hot", *term, "--out", tmp_path / "run")
