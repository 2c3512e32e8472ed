"""Results of runs in one small file, and back."""

import json
import shutil
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

import labelkin
from labelkin import InputError
from labelkin.runs import Store, pack_runs, unpack_runs
from labelkin.runs._decisions import Decisions, packed_decisions
from labelkin.runs._pack import LARGEST
from support.commands import call, refused


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "runs"
    for seed in (0, 1):
        for name in ("one-hot", "label-smoothing"):
            labelkin.train("digits", name, out=folder / f"{name}-{seed}", epochs=1, seed=seed, calibration=0.1)
    return folder


@pytest.mark.long
def test_what_was_packed_is_listed_compared_and_exported_as_before(store: Path, tmp_path: Path):
    told = call("runs", "pack", store, "-o", tmp_path / "all.zip")
    assert "Wrote 4 runs" in told.stdout
    assert "Wrote 4 runs" in call("runs", "unpack", tmp_path / "all.zip", "-o", tmp_path / "there").stdout
    for command in (["list"], ["compare"]):
        ours, theirs = (
            json.loads(call("runs", *command, folder, "--json").stdout) for folder in (store, tmp_path / "there")
        )
        assert json.dumps(ours).replace(str(store), "") == json.dumps(theirs).replace(str(tmp_path / "there"), "")
    for folder, file in ((store, "a.json"), (tmp_path / "there", "b.json")):
        call("runs", "export", folder, "-o", tmp_path / file)
    ours, theirs = (json.loads((tmp_path / name).read_text())["runs"] for name in ("a.json", "b.json"))
    assert ours == theirs
    for before, after in zip(Store(store).records(), Store(tmp_path / "there").records(), strict=True):
        for one, other in zip(before.decisions(), after.decisions(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert before.history() == after.history()
    assert not list((tmp_path / "there").rglob("*.safetensors"))


def test_packing_is_reproducible_and_unpacking_twice_changes_nothing(store: Path, tmp_path: Path):
    for name in ("a.zip", "b.zip"):
        assert pack_runs(store, tmp_path / name) == 4
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    first, second = (unpack_runs(tmp_path / "a.zip", tmp_path / "there") for _ in range(2))
    assert (len(first.written), len(first.known)) == (4, 0)
    assert (len(second.written), len(second.known)) == (0, 4)


def test_a_run_of_ten_thousand_samples_takes_less_than_200_kilobytes(store: Path, tmp_path: Path):
    shutil.copytree(store / "one-hot-0", tmp_path / "runs/one")
    random = np.random.default_rng(0)
    target, wrong, other = random.integers(0, 1000, (3, 10_000)).astype(np.int32)  # half of them wrong
    answer = np.where(random.random(10_000) < 0.5, target, wrong)
    argmax = np.where(random.random(10_000) < 0.8, answer, other)
    costs = random.integers(0, 18, (2, 10_000)).astype(np.float32)
    found = Decisions(target, answer, argmax, costs[0], costs[1], 1.3, 2500)
    (tmp_path / "runs/one/decisions.npz").write_bytes(packed_decisions(found))
    pack_runs(tmp_path / "runs", tmp_path / "one.zip")
    assert (tmp_path / "one.zip").stat().st_size < 200_000


def archive(path: Path, files: dict[str, str]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as written:
        for name, content in files.items():
            written.writestr(name, content)
    return path


CONFIG = json.dumps({"version": 1, "data": "digits", "id": "0123"})
GOOD = {"run/config.json": CONFIG, "run/final.json": "{}"}


@pytest.mark.parametrize(
    "name",
    ["../config.json", "/config.json", "a/../config.json", "../../config.json", "config.json", "a/b/config.json",
     "a\\b/config.json", "C:/config.json", "run/model.safetensors", "run/.bashrc", "run/", "./config.json",
     "//config.json", "a//config.json"],
)  # fmt: skip
def test_a_path_that_leaves_its_folder_is_refused_before_anything_is_written(name: str, tmp_path: Path):
    file = archive(tmp_path / "bad.zip", {**GOOD, name: CONFIG})
    with pytest.raises(InputError, match="is not a file of a run"):
        unpack_runs(file, tmp_path / "there/runs")
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"run/config.json": CONFIG}, "lacks 'final.json'"),
        ({"run/config.json": "{}", "run/final.json": "{}"}, "not that of a run"),
        ({"run/config.json": CONFIG, "run/final.json": "{"}, "is damaged"),
        ({}, "contains no runs"),
    ],
)
def test_a_file_without_whole_runs_is_refused(files: dict[str, str], told: str, tmp_path: Path):
    file = archive(tmp_path / "bad.zip", files)
    assert told in refused("runs", "unpack", file, "-o", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_what_is_no_archive_is_refused(tmp_path: Path):
    (tmp_path / "bad.zip").write_text("no archive")
    for file in ("bad.zip", "missing.zip", "."):
        with pytest.raises(InputError, match=r"not written by `labelkin runs pack`|no such file"):
            unpack_runs(tmp_path / file, tmp_path / "there")
    with pytest.raises(InputError, match=r"ends in \.zip"):
        pack_runs(tmp_path, tmp_path / "all.tar")
    (tmp_path / "empty").mkdir()
    assert "no finished runs" in refused("runs", "pack", tmp_path / "empty", "-o", tmp_path / "all.zip")


def test_a_file_that_expands_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert LARGEST < 1 << 30
    monkeypatch.setattr("labelkin.runs._pack.LARGEST", 1000)
    file = archive(tmp_path / "big.zip", {**GOOD, "run/metrics.csv": "0" * 2000})
    with pytest.raises(InputError, match="expected at most 1,000"):
        unpack_runs(file, tmp_path / "there")


def test_a_folder_with_something_else_is_not_touched(tmp_path: Path):
    file = archive(tmp_path / "one.zip", GOOD)
    (tmp_path / "there/run").mkdir(parents=True)
    (tmp_path / "there/run/notes.txt").write_text("mine")
    with pytest.raises(InputError, match="something other than this run"):
        unpack_runs(file, tmp_path / "there")
    (tmp_path / "there/run/config.json").write_text(CONFIG)
    with pytest.raises(InputError, match="this run, unfinished"):
        unpack_runs(file, tmp_path / "there")
    assert sorted(path.name for path in (tmp_path / "there/run").iterdir()) == ["config.json", "notes.txt"]
