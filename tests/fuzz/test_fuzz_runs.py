"""Plans, run folders and packed runs that anyone may have written."""

import io
import json
import shutil
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

import labelkin
from labelkin import InputError
from labelkin.comparison import read_plan
from labelkin.runs import Store, pack_runs, unpack_runs
from support.commands import call
from support.fuzzing import changed, damaged, files, fuzz

PLAN: dict[str, Any] = {
    "data": "digits",
    "objectives": {
        "one-hot": None,
        "label-embedding": {"tau": {"grid": [2, 3]}},
        "soft": {"objective": "label-smoothing", "smoothing": 0.1},
    },
    "data_options": {"validation_fraction": 0.1},
    "seeds": [0, 1],
    "training": {"epochs": 3, "lr": 0.1, "schedule": "cosine", "augment": ["flip"]},
    "backbone": "tiny-cnn",
}


@pytest.mark.long
def test_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "plan.yaml"

    def case(rng: Random) -> None:
        file.write_bytes(damaged(yaml.safe_dump(changed(PLAN, rng), allow_unicode=True).encode(), rng))
        before = files(tmp_path)
        try:
            runs = read_plan(file).runs()
        finally:
            assert files(tmp_path) == before
        assert len(runs) >= 1

    fuzz(case)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    labelkin.compare(objectives=["one-hot", "label-smoothing"], seeds=(0,), out=out / "runs", epochs=1, batch_size=512)
    pack_runs(out / "runs", out / "runs.zip")
    return out


@pytest.mark.long
def test_run_folders(made: Path, tmp_path: Path):
    """One damaged run never hides the other one."""
    store = tmp_path / "runs"
    shutil.copytree(made / "runs", store)
    bad, good = sorted(store.iterdir())
    names = ["config.json", "final.json", "timing.json", "metrics.csv", "decisions.npz"]
    whole = {name: (bad / name).read_bytes() for name in names}

    def case(rng: Random) -> None:
        for name, content in whole.items():
            (bad / name).write_bytes(content)
        name = rng.choice([*names, "config.json", "config.json", "config.json"])
        content = whole[name]
        if name.endswith(".json"):
            content = json.dumps(changed(json.loads(content), rng)).encode()
        (bad / name).write_bytes(damaged(content, rng))
        for command in ("list", "compare"):
            told = call("runs", command, store)
            assert told.exit_code == 0, told.stderr
            assert good.name.partition("-seed")[0] in told.stdout
        found = Store(store)
        readable = found.readable()
        if found.problems:
            raise InputError(found.problems[0])
        assert readable

    fuzz(case)


@pytest.mark.long
def test_packed_runs(made: Path, tmp_path: Path):
    packed = tmp_path / "in.zip"

    def case(rng: Random) -> None:
        out = io.BytesIO()
        with zipfile.ZipFile(made / "runs.zip") as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
            for entry in source.infolist():
                content = source.read(entry)
                if entry.filename.endswith("config.json") and rng.random() < 0.2:
                    content = json.dumps(changed(json.loads(content), rng)).encode()
                odd = rng.choice(
                    ("../x/config.json", "/tmp/x/config.json", "a/b/config.json", "..", "a\\b/final.json", "x")
                )
                target.writestr(odd if rng.random() < 0.03 else entry.filename, content)
        packed.write_bytes(damaged(out.getvalue(), rng))
        inside = tmp_path / "place" / "store"
        shutil.rmtree(tmp_path / "place", ignore_errors=True)
        inside.mkdir(parents=True)
        try:
            unpack_runs(packed, inside)
        finally:
            assert files(tmp_path) - {"in.zip", "place", "place/store"} == {
                f"place/store/{name}" for name in files(inside)
            }
        assert call("runs", "list", inside).exit_code == 0

    fuzz(case)
