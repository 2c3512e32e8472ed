"""The example of docs/deciding.md runs, and prints what the page says."""

import re
from pathlib import Path

import pytest
import torch

from labelkin import decide
from support.commands import call

PAGE = (Path(__file__).parents[2] / "docs" / "deciding.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+\.\d+|\d+")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def assert_close(told: str, page: str) -> None:
    """The same words, and numbers within a few percent: they depend on scikit-learn's solver."""
    assert NUMBER.sub("#", told) == NUMBER.sub("#", page)
    for found, expected in zip(NUMBER.findall(told), NUMBER.findall(page), strict=True):
        assert float(found) == pytest.approx(float(expected), rel=0.1, abs=1)


@pytest.mark.long
def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    prepare, in_python = blocks("python")
    (tree,) = blocks("json")
    Path("tree.json").write_text(tree)
    names: dict[str, object] = {}
    exec(prepare, names)
    safe, rows, cheaper = blocks("text")
    for command, printed in zip(blocks("sh"), (safe, cheaper), strict=True):
        arguments = [word.strip("'") for word in command.split()[1:]]
        assert_close(call(*arguments).stdout, printed)
    start = "".join(line + "\n" for line in Path("safe.csv").read_text().splitlines()[: len(rows.splitlines())])
    assert_close(start, rows)
    exec(in_python, names)
    answers, reasons = names["answers"], names["reasons"]
    assert isinstance(answers, torch.Tensor)
    assert isinstance(reasons, list)
    written = [line.split(",")[-1] for line in Path("safe.csv").read_text().splitlines()[1:]]
    same = [str(reason) == text for reason, text in zip(reasons, written, strict=True)]
    assert sum(same) > 0.95 * len(same)  # the file has five decimals
    assert f"print(reasons[0]): {reasons[0]}" in in_python
    assert isinstance(names["shift"], decide.Shift)
    assert not names["shift"].shifted


def test_every_name_of_the_page_exists():
    for name in re.findall(r"decide\.(\w+)\(", PAGE):
        assert hasattr(decide, name), name
