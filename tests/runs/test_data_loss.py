"""labelkin never deletes or overwrites a file that it did not write."""

import hashlib
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from labelkin import InputError
from labelkin.comparison import Plan
from labelkin.comparison import _demo as demo_module
from labelkin.comparison._api import plan_for
from labelkin.data import download_files
from labelkin.data._locate import Download, Place
from labelkin.runs import RunFolder, RunSpec, Store
from labelkin.runs import train_run as train
from labelkin.training import Settings
from support.commands import call, refused

pytestmark = pytest.mark.long

TRAIN = ("train", "digits", "--objective", "one-hot", "--subset", 0.1, "--epochs", 1)
SPEC = RunSpec(settings=Settings(epochs=1), data_options={"subset": 0.1})
REFUSED = "the folder is not empty and does not contain a run"

FILES = {
    "dotfiles": (".env", ".gitignore"),
    "documents": ("notes.txt", "data/train.csv"),
    "names of a run's files": ("setup.safetensors", "metrics.csv", "state-mine.safetensors", "lock"),
    "names like temporary files": (".labelkin-notes", ".labelkin-abc.tmp", ".state.json.a1b2c3d4"),
    "a folder named tensorboard": ("tensorboard/mine.txt",),
}


def put(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"my own {name}\n")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "run"
    train(SPEC, path)
    return path


@pytest.mark.parametrize("names", FILES.values(), ids=FILES)
def test_train_refuses_a_folder_with_other_files_and_changes_nothing(names: tuple[str, ...], tmp_path: Path):
    put(tmp_path, names)
    before = snapshot(tmp_path)
    assert f"{tmp_path}: {REFUSED}" in refused(*TRAIN, "--out", tmp_path)
    for resume in (False, True):
        with pytest.raises(InputError, match=REFUSED):
            train(SPEC, tmp_path, resume=resume)
    with pytest.raises(InputError, match=REFUSED):
        RunFolder.create(tmp_path, {"data": "digits"}, {})
    assert snapshot(tmp_path) == before


def test_train_refuses_the_current_folder_where_it_has_other_files(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, FILES["dotfiles"])
    before = snapshot(tmp_path)
    assert REFUSED in refused(*TRAIN, "--out", ".")
    assert REFUSED in refused(*TRAIN, "--out", ".", "--tensorboard")
    assert snapshot(tmp_path) == before


def test_train_refuses_a_file_as_its_folder(tmp_path: Path):
    put(tmp_path, ("run",))
    assert "run: expected a folder, but this is a file" in refused(*TRAIN, "--out", tmp_path / "run")


@pytest.mark.parametrize("content", ['{"model_type": "bert"}', '{"version": 2, "name": "mine"}', "[1, 2]"])
def test_a_config_of_another_program_is_not_a_run(content: str, tmp_path: Path):
    (tmp_path / "config.json").write_text(content)
    put(tmp_path, FILES["dotfiles"])
    before = snapshot(tmp_path)
    assert "it has no config.json that labelkin wrote" in refused(*TRAIN, "--out", tmp_path)
    with pytest.raises(InputError, match=r"no config\.json that labelkin wrote"):
        train(SPEC, tmp_path, resume=True)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("folder", ["new", "empty", "current"])
def test_new_and_empty_folders_are_taken(folder: str, tmp_path: Path, monkeypatch):
    path = tmp_path / "run"
    if folder != "new":
        path.mkdir()
    if folder == "current":
        monkeypatch.chdir(path)
    call(*TRAIN, "--out", "." if folder == "current" else path)
    assert RunFolder(path).final is not None


def test_a_run_keeps_the_users_files_when_it_continues(tmp_path: Path):
    """Also in a folder where labelkin's own leftovers lie: those go."""

    def stop(row) -> None:
        raise KeyboardInterrupt

    spec = RunSpec(settings=Settings(epochs=2), data_options={"subset": 0.1})
    with pytest.raises(KeyboardInterrupt):
        train(spec, tmp_path, log=stop)
    mine = (".env", ".gitignore", ".labelkin-notes", ".state.json.a1b2c3d4", "state-mine.safetensors", "notes.txt")
    put(tmp_path, mine)
    (tmp_path / ".labelkin-0123456789abcdef.tmp").write_text("half of a st")
    before = snapshot(tmp_path)
    train(spec, tmp_path, resume=True)
    RunFolder(tmp_path).drop_weights()
    after = snapshot(tmp_path)
    assert {name: after.get(name) for name in mine} == {name: before[name] for name in mine}
    assert ".labelkin-0123456789abcdef.tmp" not in after
    assert "model.safetensors" not in after
    assert not [name for name in after if name.startswith("state-0")]


def test_a_run_that_was_killed_before_its_config_was_written_starts_again(tmp_path: Path, finished: Path):
    (tmp_path / "lock").touch()
    (tmp_path / ".labelkin-0123456789abcdef.tmp").write_text("half of a config")
    (tmp_path / "error.txt").write_text("Traceback (most recent call last):\n")
    (tmp_path / "tensorboard").mkdir()
    (tmp_path / "tensorboard" / "events.out.tfevents.1.host").touch()
    (tmp_path / "setup.safetensors").write_bytes((finished / "setup.safetensors").read_bytes())
    train(SPEC, tmp_path)
    assert RunFolder(tmp_path).final is not None


def test_writing_a_file_leaves_dotfiles_beside_it_alone(tmp_path: Path):
    put(tmp_path, FILES["dotfiles"])
    before = snapshot(tmp_path)
    (tmp_path / "run").mkdir()
    train(SPEC, tmp_path / "run")
    assert {name: content for name, content in snapshot(tmp_path).items() if not name.startswith("run")} == before


@pytest.mark.parametrize("way", ["command line", "library"])
def test_removing_a_run_keeps_the_users_files(way: str, tmp_path: Path):
    store = tmp_path / "store"
    for name in ("first", "second"):
        train(SPEC, store / name)
    put(store / "first", ("notes.txt", ".env", "figures/a.png"))
    (first, second) = Store(store).records()
    assert first.id == second.id
    if way == "command line":
        told = call("runs", "rm", "first", "--store", store, "--yes")
        assert told.exit_code == 0
        assert "first: kept 3 files that labelkin did not write: '.env', 'figures/a.png', 'notes.txt'" in told.stderr
        call("runs", "rm", "second", "--store", store, "--yes")
    else:
        assert Store(store).remove(first) == [".env", "figures/a.png", "notes.txt"]
        assert Store(store).remove(second) == []
    assert sorted(snapshot(store)) == ["first/.env", "first/figures/a.png", "first/notes.txt"]
    assert not (store / "second").exists()
    assert Store(store).records() == []


def command_to(run: Path, folder: Path, output: str) -> tuple[object, ...]:
    """The command that writes a file of this name."""
    (folder / "p.csv").write_text("target,cat,dog\ncat,.7,.3\ndog,.2,.8\n")
    (folder / "t.json").write_text('{"pet": ["cat", "dog"], "farm": ["cow"]}')
    np.save(folder / "new.npy", np.zeros((2, 1, 8, 8), np.uint8))
    return {
        "audit.html": ("audit", folder / "p.csv", "--kind", "probs", "--html"),
        "decided.csv": ("decide", folder / "p.csv", "--kind", "probs", "--rule", "argmax", "-o"),
        "predicted.csv": ("predict", run, folder / "new.npy", "-o"),
        "predicted.jsonl": ("predict", run, folder / "new.npy", "-o"),
        "report.html": ("report", run, "-o"),
        "runs.csv": ("runs", "export", run.parent, "-o"),
        "runs.json": ("runs", "export", run.parent, "-o"),
        "runs.zip": ("runs", "pack", run.parent, "-o"),
        "tree.csv": ("taxonomy", "convert", folder / "t.json"),
        "built.json": ("taxonomy", "build", "--groups", folder / "t.json", "-o"),
        "times.json": ("bench", "losses", "--device", "cpu", "--small", "--only", "dense", "--repeats", 1, "-o"),
    }[output]


@pytest.mark.filterwarnings("default:.*is not calibrated:UserWarning")
@pytest.mark.parametrize(
    "name",
    [
        *("audit.html", "decided.csv", "predicted.csv", "predicted.jsonl", "report.html"),
        *("runs.csv", "runs.json", "runs.zip", "tree.csv", "built.json", "times.json"),
    ],
)
def test_an_output_replaces_only_what_the_same_command_wrote(name: str, tmp_path: Path, finished: Path):
    output = tmp_path / name
    command = command_to(finished, tmp_path, name)
    for content in ("my own notes\n", "id,class\n1,cat\n", '{"mine": 1}\n', "<!doctype html>\n<p>mine"):
        output.write_text(content)
        assert f"{output}: this exists and was not written by" in refused(*command, output)
        assert output.read_text() == content
    output.write_text("")  # nothing to lose
    for _ in range(2):  # the second time, over its own file
        told = call(*command, output)
        assert told.exit_code == 0, told.stderr
    assert output.stat().st_size > 20
    output.unlink()
    output.mkdir()
    assert refused(*command, output)


def test_the_demo_removes_its_runs_and_keeps_the_users_files(tmp_path: Path):
    plan: Plan = plan_for("digits", objectives=["one-hot", "label-smoothing"], seeds=(0,), training={"epochs": 1})
    run, other = (tmp_path / run.name for run in plan.runs())
    train(SPEC, run)
    put(run, ("notes.txt",))
    put(other, ("config.json", ".env"))
    demo_module.remove_runs(plan, tmp_path)
    assert sorted(snapshot(tmp_path)) == sorted(
        [f"{run.name}/notes.txt", f"{other.name}/.env", f"{other.name}/config.json"]
    )


def test_a_run_that_succeeds_removes_its_own_traceback_alone(tmp_path: Path):
    from labelkin.runs import DataCache, Job, train_job

    for name, content in (("own", "Traceback (most recent call last):\n"), ("mine", "what went wrong: nothing\n")):
        train(SPEC, tmp_path / name)
        (tmp_path / name / "error.txt").write_text(content)
        assert train_job(Job("a run", SPEC, tmp_path / name), DataCache()).kind == "finished"
    assert not (tmp_path / "own" / "error.txt").exists()
    assert (tmp_path / "mine" / "error.txt").exists()


def test_an_archive_that_the_user_put_in_the_data_folder_stays(tmp_path: Path):
    pytest.importorskip("pooch")
    (tmp_path / "set").mkdir()
    put(tmp_path / "set", ("a.txt",))
    archive = tmp_path / "set.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "set", "set")
    os.rename(tmp_path / "set", tmp_path / "elsewhere")
    digest = hashlib.md5(archive.read_bytes()).hexdigest()
    place = Place(
        ("set",), Path.is_dir, "the folder", (Download("http://localhost/set.tar.gz", digest, unpacks_to="set"),)
    )
    download_files(place, tmp_path)
    assert (tmp_path / "set" / "a.txt").exists()
    assert archive.exists()
    other = place._replace(downloads=(place.downloads[0]._replace(md5="0" * 32),))
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match="checksum"):
        download_files(other, tmp_path)
    assert snapshot(tmp_path) == before


def test_a_store_with_another_programs_config_is_listed_without_it(tmp_path: Path, finished: Path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (tmp_path / "run").mkdir()
    for file in finished.iterdir():
        (tmp_path / "run" / file.name).write_bytes(file.read_bytes())
    assert [record.path.name for record in Store(tmp_path).records()] == ["run"]
