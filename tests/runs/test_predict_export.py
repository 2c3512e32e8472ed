"""What a finished run is for: measuring, predicting and exporting, through the command line. Real digits, tiny runs."""

import csv
import errno
import json
import os

import numpy as np
import pytest
import torch

import labelkin
from labelkin.data._readers.images import ImageForm, read_image
from labelkin.runs import RunFolder, evaluate
from support.commands import FOUND, PIXELS, call, files_below, refused, write_images

pytestmark = pytest.mark.long

PLACES = {0: "round/0", 8: "round/8", 1: "straight/1", 7: "straight/7"}
QUICK = ("--epochs", "2", "--batch-size", "64", "--lr", "0.01")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Runs on digits, on a nested folder of images and on a table, and the data of the latter two."""
    home = tmp_path_factory.mktemp("home")
    train(home / "one-hot", "digits", "one-hot")
    train(home / "static-labels", "digits", "static-labels", "--calibration", "0")  # so it has no probabilities
    write_images(home / "photos", PLACES, count=30)
    train(home / "nested", home / "photos", "hierarchical")
    write_table(home / "table.csv", [f"p{i}" for i in range(64)], FOUND.data[:600], FOUND.target[:600])
    train(home / "columns", home / "table.csv", "one-hot")
    return home


def train(run, data, objective, *further):
    result = call("train", data, "--objective", objective, *QUICK, *further, "--out", run)
    assert result.exit_code == 0, result.stderr


def write_table(path, names, values, labels=None):
    header = [*names, *(["label"] if labels is not None else [])]
    rows = [list(map(str, row)) for row in values]
    if labels is not None:
        rows = [[*row, str(label)] for row, label in zip(rows, labels, strict=True)]
    path.write_text("\n".join(",".join(row) for row in [header, *rows]))


def predicted(run, *inputs, out):
    result = call("predict", run, *inputs, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert f"to {out}" in result.stdout
    if out.suffix == ".jsonl":
        return [json.loads(line) for line in out.read_text().splitlines()]
    return list(csv.DictReader(out.open()))


def scores_of(run, pixels):
    """Scores from the parts of the model, put together by hand."""
    model = labelkin.load_run(run)
    inputs = (torch.from_numpy(pixels).float() / 255 - model.mean[:, None, None]) / model.std[:, None, None]
    with torch.no_grad():
        return model.model.objective.scores(model.model(inputs)), model.classes


# predict


def test_images_get_class_probability_and_path(home, tmp_path):
    rows = predicted(home / "nested", home / "photos", home / "photos/round/0/3.png", out=tmp_path / "p.csv")
    files = sorted((home / "photos").rglob("*.png"))
    assert [row["input"] for row in rows] == [*map(str, files), str(home / "photos/round/0/3.png")]
    pixels = np.stack([PIXELS[FOUND.target == int(file.parent.name)][int(file.stem)] for file in files])
    scores, classes = scores_of(home / "nested", pixels[:, None])
    assert [row["class"] for row in rows[:-1]] == [classes[i] for i in scores.argmax(-1).tolist()]
    likely = scores.exp().max(-1).values
    assert torch.allclose(torch.tensor([float(row["probability"]) for row in rows[:-1]]), likely, atol=1e-5)
    assert all(row["path"] == f"root/{PLACES[int(row['class'])]}" for row in rows)
    assert {row["row"] for row in rows} == {""}
    right = [row["class"] == file.parent.name for row, file in zip(rows, files, strict=False)]
    assert np.mean(right) > 0.8


def test_images_of_another_form_are_fitted_as_in_training(home, tmp_path):
    from PIL import Image

    folder = tmp_path / "photos"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
    for i, image in enumerate(PIXELS[:8]):
        large = Image.fromarray(image).resize((20, 30)).convert("RGB")
        large.save(folder / "ab"[i % 2] / f"{i}.png")
    rows = predicted(home / "one-hot", folder, out=tmp_path / "p.csv")
    pixels = np.stack([read_image(folder / row["input"], ImageForm(1, 8, 8)).numpy() for row in rows])
    scores, classes = scores_of(home / "one-hot", pixels)
    assert [row["class"] for row in rows] == [classes[i] for i in scores.argmax(-1).tolist()]


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_get_their_rows_and_no_path_where_no_taxonomy_was_given(suffix, home, tmp_path):
    if suffix == ".npy":
        np.save(tmp_path / "x.npy", PIXELS[:1500])
    else:
        np.savez(tmp_path / "x.npz", images=PIXELS[:1500], other=np.zeros(3))
    rows = predicted(home / "one-hot", tmp_path / f"x{suffix}", out=tmp_path / "p.jsonl")
    scores, classes = scores_of(home / "one-hot", PIXELS[:1500, None])
    assert [row["class"] for row in rows] == [classes[i] for i in scores.argmax(-1).tolist()]
    assert [row["row"] for row in rows] == list(range(1500))
    assert {row["path"] for row in rows} == {None}


def test_an_objective_without_probabilities_leaves_them_empty(home, tmp_path):
    np.save(tmp_path / "x.npy", PIXELS[:5])
    assert {
        row["probability"] for row in predicted(home / "static-labels", tmp_path / "x.npy", out=tmp_path / "p.csv")
    } == {""}
    rows = predicted(home / "static-labels", tmp_path / "x.npy", out=tmp_path / "p.jsonl")
    assert {row["probability"] for row in rows} == {None}


def test_a_table_is_read_by_the_names_of_its_columns(home, tmp_path):
    names, values = [f"p{i}" for i in range(64)], FOUND.data[600:700]
    write_table(tmp_path / "t.csv", names, values)
    expected = predicted(home / "columns", tmp_path / "t.csv", out=tmp_path / "a.csv")
    right = [row["class"] == str(y) for row, y in zip(expected, FOUND.target[600:700], strict=True)]
    assert np.mean(right) > 0.8
    shuffled = np.random.default_rng(0).permutation(64)
    extra = np.column_stack([np.full(100, 9), values[:, shuffled]])
    write_table(tmp_path / "u.csv", ["id", *(names[i] for i in shuffled)], extra)
    found = predicted(home / "columns", tmp_path / "u.csv", out=tmp_path / "b.csv")
    assert [(row["row"], row["class"]) for row in found] == [(row["row"], row["class"]) for row in expected]
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in values.tolist()]
    (tmp_path / "v.jsonl").write_text("\n".join(lines))
    again = predicted(home / "columns", tmp_path / "v.jsonl", out=tmp_path / "c.csv")
    assert [row["probability"] for row in again] == [row["probability"] for row in expected]


def test_a_table_of_image_paths(home, tmp_path):
    file = home / "photos" / "round/8/1.png"
    (tmp_path / "t.csv").write_text(f"id,photo\n1,{file}\n2,{home / 'photos/straight/7/2.png'}\n")
    rows = predicted(home / "nested", tmp_path / "t.csv", out=tmp_path / "p.csv")
    direct = predicted(home / "nested", file, home / "photos/straight/7/2.png", out=tmp_path / "q.csv")
    assert [row["class"] for row in rows] == [row["class"] for row in direct]
    assert [(row["input"], row["row"]) for row in rows] == [
        (str(tmp_path / "t.csv"), "0"),
        (str(tmp_path / "t.csv"), "1"),
    ]


def test_inputs_that_cannot_be_used_are_refused_and_nothing_is_written(home, tmp_path):
    np.save(tmp_path / "small.npy", PIXELS[:3, :4])
    np.save(tmp_path / "floats.npy", PIXELS[:3].astype(np.float32))
    write_table(tmp_path / "t.csv", [f"p{i}" for i in range(63)] + ["p_63"], FOUND.data[:2])
    write_images(tmp_path / "photos", {0: "0"}, count=2)
    (tmp_path / "photos/0/1.png").write_bytes(b"no image")
    (tmp_path / "empty").mkdir()
    before = files_below(tmp_path)
    cases = [
        ("one-hot", "small.npy", "expected samples of shape (1, 8, 8), as in training, got (1, 4, 8)"),
        ("one-hot", "floats.npy", "expected bytes (uint8)"),
        ("one-hot", "absent", "there is no file or folder"),
        ("one-hot", "empty", "contains no image"),
        ("one-hot", "photos", "1.png"),
        ("one-hot", "photos", "skip unreadable images with --on-error skip (in Python: on_error='skip')"),
        ("one-hot", "t.csv", "column of image paths"),
        ("columns", "t.csv", "expected the column 'p63' that the model was trained on. Did you mean 'p_63'"),
        ("columns", "photos", "which is not the shape of an image"),
    ]
    for run, given, sentence in cases:
        assert sentence in refused("predict", home / run, tmp_path / given, "-o", tmp_path / "p.csv"), given
    assert "ends in .csv or .jsonl" in refused("predict", home / "one-hot", tmp_path, "-o", tmp_path / "p.txt")
    assert "create it first" in refused("predict", home / "one-hot", tmp_path, "-o", tmp_path / "no" / "p.csv")
    assert files_below(tmp_path) == before


@pytest.mark.filterwarnings("default::UserWarning")
def test_an_unreadable_image_is_skipped_where_asked(home, tmp_path):
    write_images(tmp_path / "photos", {0: "0"}, count=3)
    (tmp_path / "photos/0/1.png").write_bytes(b"no image")
    result = call("predict", home / "one-hot", tmp_path / "photos", "-o", tmp_path / "p.csv", "--on-error", "skip")
    assert result.exit_code == 0
    assert "0/1.png" in result.stderr
    assert [row["input"][-5:] for row in csv.DictReader((tmp_path / "p.csv").open())] == ["0.png", "2.png"]


HEADER = "input,row,class,probability,path\n"  # of an earlier prediction


def test_predictions_replace_a_file_whole_or_not_at_all(home, tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", PIXELS[:5])
    (tmp_path / "p.csv").write_text(HEADER)

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "no space left" in refused("predict", home / "one-hot", tmp_path / "x.npy", "-o", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == HEADER
    assert files_below(tmp_path) == ["p.csv", "x.npy"]


def test_predictions_do_not_take_the_place_of_what_they_are_made_from(home, tmp_path):
    table = (home / "table.csv").read_text()
    write_table(tmp_path / "keep.csv", [f"p{i}" for i in range(64)], FOUND.data[600:610])
    keep = (tmp_path / "keep.csv").read_text()
    (tmp_path / "link.csv").symlink_to("keep.csv")
    run = home / "columns"
    for given, output, sentence in [
        ("keep.csv", tmp_path / "keep.csv", "keep.csv: this is one of the inputs, which would be overwritten"),
        ("keep.csv", tmp_path / "link.csv", "link.csv: this is one of the inputs"),
        ("link.csv", tmp_path / "keep.csv", "keep.csv: this is one of the inputs"),
        ("keep.csv", home / "table.csv", "table.csv: this is a file that the run was trained on"),
        ("keep.csv", run / "metrics.csv", "metrics.csv: this is a file of the run itself"),
    ]:
        assert sentence in refused("predict", run, tmp_path / given, "-o", output)
    assert (tmp_path / "keep.csv").read_text() == keep
    assert (home / "table.csv").read_text() == table
    assert predicted(run, tmp_path / "keep.csv", out=tmp_path / "p.csv") == predicted(
        run, tmp_path / "keep.csv", out=tmp_path / "p.csv"
    )


def test_parts_of_a_folder_that_was_trained_on_are_not_overwritten(tmp_path):
    names = [f"p{i}" for i in range(64)]
    (tmp_path / "data").mkdir()
    for part, rows in (("train", slice(200)), ("test", slice(200, 300))):
        write_table(tmp_path / f"data/{part}.csv", names, FOUND.data[rows], FOUND.target[rows])
    train(tmp_path / "run", tmp_path / "data", "one-hot")
    write_table(tmp_path / "new.csv", names, FOUND.data[300:310])
    told = refused("predict", tmp_path / "run", tmp_path / "new.csv", "-o", tmp_path / "data/test.csv")
    assert "test.csv: this is a file that the run was trained on" in told


def test_help_names_what_is_taken():
    told = " ".join(call("predict", "--help").stdout.replace("│", " ").split())
    assert "Images (for a text run: .txt files), folders of them, .npy or .npz arrays, or .csv, .jsonl or" in told
    assert ".parquet tables" in told


# evaluate


@pytest.mark.parametrize("run", ["one-hot", "nested", "columns"])
def test_a_run_measured_again_gives_what_training_wrote(run, home):
    found = json.loads(call("evaluate", home / run, "--json").stdout)
    final = RunFolder(home / run).final
    assert {name: found[name] for name in final if name != "epoch"} == {
        name: pytest.approx(value) for name, value in final.items() if name != "epoch"
    }
    assert "accuracy" in call("evaluate", home / run).stdout


def test_other_data_is_measured_whole_with_its_classes_in_the_runs_order(home, tmp_path):
    chosen = np.isin(FOUND.target, list(PLACES))
    pixels, targets = PIXELS[chosen], FOUND.target[chosen]
    np.savez(tmp_path / "other.npz", x=pixels, y=targets)  # numbered 0, 1, 7, 8, where the run has 0, 8, 1, 7
    found = evaluate(home / "nested", tmp_path / "other.npz")
    scores, classes = scores_of(home / "nested", pixels[:, None])
    right = [int(classes[i]) == target for i, target in zip(scores.argmax(-1).tolist(), targets, strict=True)]
    assert (found.samples, found.metrics["accuracy"]) == (len(pixels), pytest.approx(np.mean(right)))


@pytest.mark.filterwarnings("default:.*the run was trained on")
def test_data_with_other_classes_is_refused(home, tmp_path):
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    np.savez(tmp_path / "named.npz", x=PIXELS, y=names[FOUND.target])
    train(tmp_path / "run", tmp_path / "named.npz", "one-hot")
    fewer = FOUND.target != 1
    np.savez(tmp_path / "fewer.npz", x=PIXELS[fewer], y=names[FOUND.target[fewer]])
    assert call("evaluate", tmp_path / "run", tmp_path / "fewer.npz").exit_code == 0  # some classes may be missing
    names[7] = "sevn"
    np.savez(tmp_path / "typo.npz", x=PIXELS, y=names[FOUND.target])
    told = refused("evaluate", tmp_path / "run", tmp_path / "typo.npz")
    assert "the run was not trained on the class 'sevn'. Did you mean 'seven'" in told


def test_other_images_are_brought_to_the_runs_form(home, tmp_path):
    from PIL import Image

    for digit, place in PLACES.items():
        (tmp_path / "photos" / place).mkdir(parents=True)
        for i, image in enumerate(PIXELS[FOUND.target == digit][:10]):
            Image.fromarray(image).resize((32, 32), Image.Resampling.NEAREST).save(
                tmp_path / "photos" / place / f"{i}.png"
            )
    found = evaluate(home / "nested", tmp_path / "photos")
    assert found.samples == 40
    assert found.metrics["accuracy"] > 0.8


def test_the_data_trained_on_stands_for_its_own_test_set(home):
    whole = evaluate(home / "nested", home / "photos")
    assert whole.samples == 24  # a fifth of 120, not what was trained on
    assert whole.metrics["accuracy"] == RunFolder(home / "nested").final["accuracy"]
