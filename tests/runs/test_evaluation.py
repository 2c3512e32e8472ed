"""A run measured on data that changed since it was trained, and on tables whose columns stand elsewhere."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from labelkin import InputError
from labelkin.report._inspect_run import RunData
from labelkin.runs import RunFolder, evaluate
from support.commands import FOUND, PIXELS, call, refused, write_images
from support.texts import paragraphs

pytestmark = pytest.mark.long

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
    assert "there is no file or folder" in refused("evaluate", tmp_path / "run")


def test_given_by_name_what_changed_is_other_data_and_measured_whole(photos: Path, tmp_path: Path):
    train(photos, tmp_path / "run")
    assert evaluate(tmp_path / "run", photos).samples == 24  # a fifth of 120
    (photos / "a/0.png").unlink()
    with pytest.raises(InputError, match=CHANGED):
        RunData(RunFolder(tmp_path / "run").config).dataset  # noqa: B018
    found = evaluate(tmp_path / "run", photos)
    assert found.samples == 119
    assert found.metrics["accuracy"] > 0.8


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
