"""Processes that train at once share one copy of their data."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from labelkin import data
from labelkin.data import Dataset, FileSplit
from labelkin.data._readers.images import ImageForm
from labelkin.runs import DataCache, RunSpec
from labelkin.runs import _workspace as workspace
from labelkin.runs._engines import processes
from labelkin.runs._workspace import FOLDER, shared, sharing
from labelkin.structure import Taxonomy

READ = """
import sys
from pathlib import Path
from labelkin import data
from labelkin.runs._workspace import shared

def load():
    with Path(sys.argv[1]).open("a") as log:
        log.write("read\\n")
    return data.load("digits")

print(shared(lambda: "digits", load).train.inputs.sum().item())
"""


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return data.load("digits")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with sharing() as variables:
        monkeypatch.setenv(FOLDER, variables[FOLDER])
        yield Path(variables[FOLDER])


def refuse() -> Dataset:
    raise AssertionError("the data are read again")


class Foreign:
    """A part that a shared file may not hold."""


def test_a_file_with_other_parts_is_neither_kept_nor_unpickled(digits: Dataset, folder: Path):
    odd = copy.copy(digits)
    object.__setattr__(odd, "taxonomy", Foreign())
    assert shared(lambda: "odd", lambda: odd) is odd
    assert not list(folder.glob("*.pt")) + list(folder.glob("*.part"))
    shared(lambda: "a", lambda: digits)
    (file,) = folder.glob("*.pt")
    torch.save(odd, file)  # as somebody else might
    with pytest.raises(pickle.UnpicklingError, match="Foreign"):
        shared(lambda: "a", refuse)


def test_alone_a_process_reads_its_data(digits: Dataset, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(FOLDER, raising=False)
    assert shared(lambda: "a", lambda: digits) is digits


def test_the_second_process_maps_what_the_first_one_read(digits: Dataset, folder: Path):
    first = shared(lambda: "a", lambda: digits)
    second = shared(lambda: "a", refuse)
    for found in (first, second):
        assert found is not digits
        assert found.classes == digits.classes
        for part in ("train", "test"):
            assert torch.equal(found.splits[part].inputs, digits.splits[part].inputs)
            assert torch.equal(found.splits[part].targets, digits.splits[part].targets)
    assert len(list(folder.glob("*.pt"))) == 1
    other = shared(lambda: "b", lambda: replace(digits, classes=digits.classes[::-1]))
    assert other.classes == digits.classes[::-1]
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert str(folder) in maps.read_text()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_data_with_a_tree_are_shared_too(digits: Dataset, folder: Path, dtype: torch.dtype):
    names = digits.classes
    edges = [("low" if place < 5 else "high", name) for place, name in enumerate(names)]
    tree = Taxonomy.from_edges([("root", "low"), ("root", "high"), *edges])
    expected = tree.distance()  # the tree keeps arrays of its own once it is used
    split = replace(digits.train, inputs=digits.train.inputs.to(dtype))
    given = replace(digits, taxonomy=tree, train=split)
    for load in (lambda: given, refuse):
        found = shared(lambda: "a", load)
        assert found is not given
        assert found.taxonomy == tree
        assert found.taxonomy is not None
        assert np.array_equal(found.taxonomy.distance(), expected)
        assert torch.equal(found.train.inputs, split.inputs)


def test_a_change_stays_in_the_process_that_made_it(digits: Dataset, folder: Path):
    first, second = shared(lambda: "a", lambda: digits), shared(lambda: "a", refuse)
    first.train.inputs[0] = 9
    assert torch.equal(second.train.inputs, digits.train.inputs)


def test_image_files_are_not_copied(digits: Dataset, folder: Path):
    files = FileSplit(paths=(Path("a.png"),) * 10, targets=torch.arange(10), form=ImageForm(1, 8, 8))
    given = replace(digits, train=files)
    assert shared(lambda: "a", lambda: given) is given
    assert not list(folder.glob("*.p*"))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("PytorchStreamWriter failed")])
def test_without_room_for_the_file_a_process_keeps_its_own_copy(
    digits: Dataset, folder: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
):
    def full(value: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(workspace.torch, "save", full)
    assert shared(lambda: "a", lambda: digits) is digits
    assert not list(folder.glob("*.p*"))


def test_the_folder_is_removed():
    with sharing() as variables:
        (Path(variables[FOLDER]) / "a.pt").write_bytes(b"")
    assert not Path(variables[FOLDER]).exists()


def test_workspaces_of_other_data_have_other_files(folder: Path):
    """The key of the file contains how the data are read."""
    sizes = [
        len(DataCache().workspace(RunSpec(data="digits", data_options={"subset": part})).dataset.train)
        for part in (0.5, 0.25, 0.5)
    ]
    assert sizes[0] == sizes[2] > sizes[1]
    assert len(list(folder.glob("*.pt"))) == 2


@pytest.mark.long
def test_of_several_processes_one_reads(tmp_path: Path, folder: Path):
    log = tmp_path / "log"
    begun = [subprocess.Popen([sys.executable, "-c", READ, log], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate(timeout=300)[0] for process in begun}
    assert len(said) == 1
    assert said != {""}
    assert log.read_text().splitlines() == ["read"]


@pytest.mark.parametrize(("count", "shares"), [(1, False), (2, True)])
def test_several_processes_are_told_the_folder(count: int, shares: bool, monkeypatch: pytest.MonkeyPatch):
    seen = []

    class Started(Exception):
        pass

    def start(inbox: object, environment: dict[str, str]) -> None:
        seen.append(environment)
        raise Started

    monkeypatch.setattr(processes, "Worker", start)
    with pytest.raises(Started):
        list(processes.run_in_processes(iter(["job"]), count=count, environment={"A": "1"}))
    assert seen[0]["A"] == "1"
    assert (FOLDER in seen[0]) is shares
