"""A run measured on data that changed since it was trained, and on tables whose columns stand elsewhere."""

import csv
import json
import shutil
import warnings
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

import labelkin
from labelkin import InputError
from labelkin.report._inspect_run import RunData
from labelkin.runs import RunFolder, RunSpec, evaluate
from labelkin.runs._places import located, started_in
from support.commands import FOUND, PIXELS, call, refused, write_images
from support.texts import paragraphs

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("default:.*the run was trained on:UserWarning"),
]

QUICK = ("--objective", "one-hot", "--epochs", "3", "--batch-size", "16", "--lr", "0.01")
CHANGED = "the data changed since this run was trained"


def train(data, run, *options):
    result = call("train", data, *options, *QUICK, "--out", run)
    assert result.exit_code == 0, result.stderr
    return RunFolder(run).final["accuracy"]


def write_posts(path: Path, lines, header=("body", "stars")) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *lines])
    return path


def posts():
    return [(text, topic) for topic, text in paragraphs()]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    write_images(tmp_path / "photos", {0: "a", 1: "b", 2: "c"}, count=40)
    return tmp_path / "photos"


def test_a_class_that_is_gone_or_renamed_is_said(photos: Path, tmp_path: Path):
    accuracy = train(photos, tmp_path / "run")
    assert evaluate(tmp_path / "run").metrics["accuracy"] == accuracy
    (photos / "a").rename(tmp_path / "a")
    told = refused("evaluate", tmp_path / "run")
    assert CHANGED in told
    assert "give them as DATA" in told
    assert evaluate(tmp_path / "run", photos).samples == 80  # of the classes that are left
    (tmp_path / "a").rename(photos / "d")  # the same images in another order of classes
    assert CHANGED in refused("evaluate", tmp_path / "run")
    assert "the run was not trained on the class 'd'" in refused("evaluate", tmp_path / "run", photos)
    (photos / "d").rename(photos / "a")
    assert evaluate(tmp_path / "run").metrics["accuracy"] == accuracy
    shutil.rmtree(photos)
    assert "the data of this run no longer exist" in refused("evaluate", tmp_path / "run")


def test_given_by_name_what_changed_is_other_data_and_measured_whole(photos: Path, tmp_path: Path):
    train(photos, tmp_path / "run")
    assert evaluate(tmp_path / "run", photos).samples == 24  # a fifth of 120
    (photos / "a/0.png").unlink()
    with pytest.raises(InputError, match=CHANGED):
        RunData(RunFolder(tmp_path / "run").config).dataset  # noqa: B018
    found = evaluate(tmp_path / "run", photos)
    assert found.samples == 119
    assert found.metrics["accuracy"] > 0.8


def test_a_run_that_was_evaluated_in_training_mode_is_told(tmp_path: Path):
    """Its own metrics use the statistics of each test batch, which a single new sample does not have."""
    given = {"backbone": "resnet-8", "epochs": 1, "data_options": {"subset": 0.2}}
    run = labelkin.train("digits", out=tmp_path / "run", evaluation="batch-statistics", **given)
    with pytest.warns(UserWarning, match="evaluated in training mode .* so that these metrics differ from those"):
        found = evaluate(run)
    assert found.metrics["accuracy"] != run.metrics["accuracy"]


def test_labels_of_a_file_of_their_own(tmp_path: Path):
    chosen = np.isin(FOUND.target, [0, 1, 2])
    np.save(tmp_path / "dx.npy", PIXELS[chosen])
    np.save(tmp_path / "dy.npy", FOUND.target[chosen])
    accuracy = train(tmp_path / "dx.npy", tmp_path / "run", "--labels", tmp_path / "dy.npy")
    assert evaluate(tmp_path / "run").metrics["accuracy"] == accuracy
    np.save(tmp_path / "dy.npy", (FOUND.target[chosen] + 1) % 3)
    assert CHANGED in refused("evaluate", tmp_path / "run")
    found = evaluate(tmp_path / "run", tmp_path / "dx.npy")
    assert found.samples == chosen.sum()
    assert found.metrics["accuracy"] < 0.2  # every label is wrong, and is taken as it is


def test_words_that_changed_are_encoded_as_in_training(tmp_path: Path):
    """And a run keeps its columns: stars are the labels of other tables, too, unless those have the usual one."""
    table = write_posts(tmp_path / "posts.csv", posts())
    run = tmp_path / "run"
    accuracy = train(table, run, "--text", "body", "--label", "stars")
    assert evaluate(run).metrics["accuracy"] == accuracy
    other = write_posts(tmp_path / "other.csv", posts()[::-1])
    whole = json.loads(call("evaluate", run, other, "--json").stdout)
    assert whole["samples"] == len(posts())
    usual = write_posts(tmp_path / "usual.csv", posts(), header=("body", "label"))
    assert evaluate(run, usual).metrics["accuracy"] == pytest.approx(whole["accuracy"])
    strange = write_posts(tmp_path / "strange.csv", posts(), header=("body", "star"))
    said = refused("evaluate", run, strange)
    assert "has no column 'stars', only 'body', 'star'; name another with --label" in said
    assert "Did you mean 'star'" in said
    write_posts(table, posts()[::-1])  # shuffled rows would bring trained ones into the test split
    assert CHANGED in refused("evaluate", run)
    assert evaluate(run, table).metrics["accuracy"] == pytest.approx(whole["accuracy"])


def test_columns_are_taken_by_name_wherever_they_stand(tmp_path: Path):
    names = [f"p{i}" for i in range(64)]
    rows = [[*map(str, row), label] for row, label in zip(FOUND.data[:300], FOUND.target[:300], strict=True)]
    write_posts(tmp_path / "t.csv", rows, (*names, "label"))
    train(tmp_path / "t.csv", tmp_path / "run")
    write_posts(tmp_path / "same.csv", rows, (*names, "label"))
    turned = [["7", *row[::-1]] for row in rows]
    write_posts(tmp_path / "turned.csv", turned, ("id", "label", *names[::-1]))
    same, found = (evaluate(tmp_path / "run", tmp_path / name) for name in ("same.csv", "turned.csv"))
    assert same.metrics["accuracy"] > 0.8
    assert found.metrics == same.metrics


def test_a_published_set_is_never_taken_for_changed(tmp_path: Path):
    train("digits", tmp_path / "run", "--subset", "0.1")
    config = json.loads((tmp_path / "run/config.json").read_text())
    (tmp_path / "run/config.json").write_text(json.dumps({**config, "id": "0"}))
    assert evaluate(tmp_path / "run").metrics["accuracy"] == RunFolder(tmp_path / "run").final["accuracy"]


def test_a_column_of_images_may_be_called_otherwise(photos: Path, tmp_path: Path):
    rows = [(file.relative_to(tmp_path), file.parent.name) for file in sorted(photos.rglob("*.png"))]
    write_posts(tmp_path / "t.csv", rows, ("photo", "label"))
    train(tmp_path / "t.csv", tmp_path / "run")
    tables = [write_posts(tmp_path / f"{name}.csv", rows, (name, "label")) for name in ("photo", "picture")]
    same, found = (evaluate(tmp_path / "run", table) for table in tables)
    assert found.metrics == pytest.approx(same.metrics, nan_ok=True)  # severity is undefined without mistakes


def test_a_run_is_evaluated_and_resumed_from_any_folder(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Relative paths start where the run was started, also after the run and its data moved together."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree.yaml").write_text("one: [a]\nmore: [b, c]\n")
    accuracy = train("photos", "run", "--taxonomy", "tree.yaml")
    known = RunFolder("run").config["id"]
    elsewhere = tmp_path / "elsewhere"
    write_images(elsewhere / "photos", {3: "a", 4: "b", 5: "c"}, count=4)  # other images of the same name
    monkeypatch.chdir(elsewhere)
    found = evaluate(tmp_path / "run")
    assert found.metrics["accuracy"] == accuracy
    assert found.data == str(tmp_path / "photos")
    assert evaluate(tmp_path / "run", "photos").samples == 12
    told = call("train", "--resume", "../run")
    assert told.exit_code == 0, told.stderr
    assert RunFolder("../run").config["id"] == known
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("run", "photos", "tree.yaml"):
        (tmp_path / name).rename(moved / name)
    assert evaluate("../moved/run").metrics["accuracy"] == accuracy


@pytest.mark.parametrize("prefix", ["hf", "timm"])
def test_folders_of_models_are_found_from_any_folder(prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Names of the hub stay as they are."""
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    spec = RunSpec(backbone=f"{prefix}:model", data_options={"encoder": "tokens:model"})
    config = {**spec.as_dict(), **started_in(spec, tmp_path / "run")}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = located(config, tmp_path / "run")
    assert found["backbone"] == f"{prefix}:{tmp_path / 'model'}"
    assert found["data_options"]["encoder"] == f"tokens:{tmp_path / 'model'}"
    hub = RunSpec(backbone=f"{prefix}:user/model")
    assert started_in(hub, tmp_path / "run") == {}


def test_data_that_are_gone_are_asked_for(photos: Path, tmp_path: Path):
    train(photos, tmp_path / "run")
    photos.rename(tmp_path / "moved")
    said = refused("evaluate", tmp_path / "run")
    assert f"{photos}: the data of this run no longer exist; restore them, or name their new location" in said
    told = call("evaluate", tmp_path / "run", tmp_path / "moved", "--unseen")
    assert told.stdout.startswith("24 samples of")


def test_a_name_that_no_file_has_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()  # the data set wins, as in `load`
    train("digits", "run", "--subset", "0.1")
    assert "started_in" not in RunFolder("run").config


def test_samples_of_the_training_are_counted_and_left_out(photos: Path, tmp_path: Path):
    train(photos, tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(tmp_path / "run", photos).seen == 0  # its own test split
    copy = tmp_path / "copy"
    shutil.copytree(photos, copy)
    told = call("evaluate", tmp_path / "run", copy)
    assert f"Note: {copy}: the run was trained on 96 of the 120 samples" in told.stderr
    found = json.loads(call("evaluate", tmp_path / "run", copy, "--unseen", "--json").stdout)
    assert (found["samples"], found["seen"]) == (24, 0)
    assert found["accuracy"] == evaluate(tmp_path / "run").metrics["accuracy"]
    write_images(tmp_path / "new", {0: "a", 1: "b", 2: "c"}, count=60)
    told = call("evaluate", tmp_path / "run", tmp_path / "new")
    assert "the run was trained on 96 of the 180 samples" in told.stderr


def test_streamed_images_are_known_by_name_and_size(photos: Path, tmp_path: Path):
    for image in photos.rglob("*.png"):  # names that differ between classes
        image.rename(image.with_name(f"{image.parent.name}-{image.name}"))
    labelkin.train(photos, out=tmp_path / "run", epochs=1, batch_size=16, data_options={"stream": True})
    shutil.copytree(photos, tmp_path / "copy")
    with pytest.warns(UserWarning, match="trained on 96 of the 120 samples"):
        assert evaluate(tmp_path / "run", tmp_path / "copy").seen == 96
    assert evaluate(tmp_path / "run", tmp_path / "copy", unseen=True).samples == 24


def test_nothing_is_left_of_data_that_the_run_knows(tmp_path: Path):
    rows = [[*map(str, row), label] for row, label in zip(FOUND.data[:300], FOUND.target[:300], strict=True)]
    header = (*(f"p{i}" for i in range(64)), "label")
    write_posts(tmp_path / "t.csv", rows, header)
    train(tmp_path / "t.csv", tmp_path / "run")
    known = RunFolder(tmp_path / "run").setup["trained_on"]["digests"]
    trained = [row for row in rows if seen_row(row, known)]
    assert len(trained) == 240
    write_posts(tmp_path / "known.csv", trained, header)
    said = refused("evaluate", tmp_path / "run", tmp_path / "known.csv", "--unseen")
    assert "trained on all 240 samples" in said


def seen_row(row, known) -> bool:
    content = np.array(row[:64], dtype=np.float32).tobytes()
    number = int.from_bytes(blake2b(content, digest_size=8).digest(), "big", signed=True)
    return number in known.tolist()
