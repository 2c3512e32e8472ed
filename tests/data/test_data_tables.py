"""Arrays and tables of one's own: numpy files, CSV, JSON lines, parquet. The samples are iris flowers and digits."""

import csv
import json

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_iris

from labelkin._checks import InputError
from labelkin.data import load

IRIS, DIGITS = load_iris(), load_digits()
SPECIES = [str(IRIS.target_names[k]) for k in IRIS.target]
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]


def rows():
    return [[*map(float, x), name] for x, name in zip(IRIS.data, SPECIES, strict=True)]


def write_csv(path, header, lines):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])
    return path


def write_jsonl(path, header, lines):
    path.write_text("".join(json.dumps(dict(zip(header, line, strict=True))) + "\n" for line in lines))
    return path


def write_parquet(path, header, lines):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = list(zip(*lines, strict=True))
    parquet.write_table(pyarrow.table({name: list(column) for name, column in zip(header, columns, strict=True)}), path)
    return path


WRITERS = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}


def as_set(data):
    """Every sample with its class name, whatever the split."""
    samples = [
        (tuple(np.round(x.tolist(), 5)), data.classes[y])
        for split in data.splits.values()
        for x, y in zip(split.inputs, split.targets.tolist(), strict=True)
    ]
    return sorted(samples)


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_table_of_numbers(tmp_path, suffix):
    path = WRITERS[suffix](tmp_path / f"iris{suffix}", [*COLUMNS, "label"], rows())
    data = load(path, test_fraction=0.3)
    assert data.classes == ("setosa", "versicolor", "virginica")
    assert (len(data.train), len(data.test), data.shape) == (105, 45, (4,))
    wanted = sorted((tuple(np.round(x, 5).tolist()), name) for *x, name in rows())
    assert as_set(data) == wanted
    train = data.train.inputs.double().numpy()
    np.testing.assert_allclose(data.normalize.mean, train.mean(0), rtol=1e-6)
    np.testing.assert_allclose(data.normalize.std, train.std(0), rtol=1e-6)


@pytest.mark.parametrize("suffix", WRITERS)
def test_columns_by_name_and_a_split_column(tmp_path, suffix):
    lines = [[i, *row, "train" if i % 3 else "test"] for i, row in enumerate(rows())]
    path = WRITERS[suffix](tmp_path / f"iris{suffix}", ["id", *COLUMNS, "species", "split"], lines)
    data = load(path, label="species", features=["petal width", "sepal length"])
    assert (len(data.train), len(data.test)) == (100, 50)
    np.testing.assert_allclose(data.test.inputs, IRIS.data[::3][:, [3, 0]], rtol=1e-6)


def test_a_folder_of_tables_gives_its_split(tmp_path):
    write_csv(tmp_path / "train.csv", [*COLUMNS, "label"], rows()[::2])
    write_csv(tmp_path / "test.csv", [*COLUMNS, "label"], rows()[1::2])
    data = load(tmp_path)
    np.testing.assert_allclose(data.test.inputs, IRIS.data[1::2], rtol=1e-6)
    # The columns of another table follow their names, not their places.
    write_csv(tmp_path / "test.csv", ["note", "label", *COLUMNS[::-1]], [["-", r[4], *r[3::-1]] for r in rows()[1::2]])
    assert torch.equal(load(tmp_path).test.inputs, data.test.inputs)
    write_csv(tmp_path / "test.csv", [*COLUMNS, "label"], [[1, 2, 3, 4, "rose"]])
    with pytest.raises(InputError, match="no training sample has the label 'rose'"):
        load(tmp_path)


def test_classes_that_are_numbers_come_in_their_order(tmp_path):
    lines = [[i, k] for i, k in enumerate([10, 9, 2, 10, 9, 2])]
    assert load(write_csv(tmp_path / "t.csv", ["x", "label"], lines), test_fraction=0.5).classes == ("2", "9", "10")


def test_a_column_that_never_varies_stays_finite(tmp_path):
    lines = [[0.1, 2 * i, "ab"[i % 2]] for i in range(10)]
    data = load(write_csv(tmp_path / "t.csv", ["same", "x", "label"], lines))
    assert data.normalize(data.train.inputs)[:, 0].abs().max() < 1e-6


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_table_of_image_paths(tmp_path, suffix):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "images").mkdir()
    lines = []
    for i, (pixels, digit) in enumerate(zip(DIGITS.images[:40], DIGITS.target[:40], strict=True)):
        image.fromarray((pixels * 15).astype(np.uint8)).save(tmp_path / "images" / f"{i}.png")
        lines.append([f"images/{i}.png", int(digit), "train" if i < 30 else "test"])
    path = WRITERS[suffix](tmp_path / f"table{suffix}", ["path", "digit", "split"], lines)
    data = load(path, label="digit")
    assert torch.equal(data.test.inputs[:, 0], torch.from_numpy(DIGITS.images[30:40] * 15).to(torch.uint8))
    assert data.test.targets.tolist() == DIGITS.target[30:40].tolist()
    (tmp_path / "images" / "7.png").unlink()
    with pytest.raises(InputError, match=r"lists 1 image that does not exist: '.*images/7\.png'"):
        load(path, label="digit")
    with pytest.warns(UserWarning, match=r"skipped: '.*images/7\.png'"):
        assert len(load(path, label="digit", on_error="skip").train) == 29


def csv_text(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b,labl\n1,2,x\n", {}, r"label: .* has no column 'label', only 'a', 'b', 'labl'; .*--label.* Did you mean 'labl'\?"),
        ("farbe,b,c,d,e,f,art\n1,2,3,4,5,6,x\n", {}, r"only 'farbe', 'b', 'c', 'd', 'e', 'f', 'art'; .* in Python\)\.$"),
        ("a,species\n1,x\n", {"label": "Species"}, "Did you mean 'species'?"),
        ("a,label\n1,x\n", {"features": ["aa"]}, "features: .* has no column 'aa'"),
        ("a,label\n1,x\n", {"image": "photo"}, "image: .* has no column 'photo'"),
        ("a,b,label\n1,,x\n2,nan,y\ninf,4,x\n", {}, r"1 value .* in column a \(1\), first in line 4"),
        ("a,b,label\n1,2,x\n1,2,3,x\n", {}, "line 3: expected 3 values as in the header, got 4"),
        ("a,b,label\n1,2,x\n\n1,x\n", {}, "line 4: expected 3 values as in the header, got 2"),
        ("a,label\n1,x\nseven,y\n", {}, "line 3: expected a number in column 'a', got 'seven'; name the numeric columns"),
        ("a,label\n1,x\n2,\n", {}, "line 3: expected a label in column 'label', got .* as in --label family,label"),
        ("a,label,split\n1,x,train\n2,y,later\n", {}, "line 3: expected 'train', 'val' or 'test' .* got 'later'"),
        ("a,label,split\n1,x,test\n", {}, "expected rows with 'train' in the column 'split'"),
        ("a,a,label\n1,2,x\n", {}, "duplicate name 'a'"),
        ("label\nx\n", {}, "expected at least one input column besides the label"),
        ("a,label\n", {}, "the table has columns but no rows"),
        ("", {}, "the table is empty"),
        ("a,label\n1,x\n2,x\n", {}, "expected at least two classes, got only 'x'"),
    ],
)  # fmt: skip
def test_bad_csv(tmp_path, text, options, message):
    with pytest.raises(InputError, match=message):
        load(csv_text(tmp_path / "t.csv", text), **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"a": 1, "label": "x"}\n{"a": 1}\n',
            "line 2: expected the same keys as in the first line; only one of the two has 'label'",
        ),
        ('{"a": 1, "label": "x"}\n{"a": 1,\n', "line 2: not JSON"),
        ("[1, 2]\n", "line 1: expected a JSON object"),
        ('{"a": [1, 2], "label": "x"}\n', r"line 1: expected a number in column 'a', got \[1, 2\]"),
        (
            '{"text": "' + "From: somebody " * 9 + '", "label": "x"}\n',
            r"column 'text', got '(From: somebody ){2}.*\.\.\.;",
        ),
    ],
)
def test_bad_jsonl(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        load(csv_text(tmp_path / "t.jsonl", text))


def test_bytes_that_are_no_table(tmp_path):
    for suffix in (".csv", ".jsonl", ".npz", ".npy"):
        path = tmp_path / f"t{suffix}"
        path.write_bytes(b"\xff\xfe\x00\x81" * 10)
        with pytest.raises(InputError, match=f"t{suffix}"):
            load(path)
    with pytest.raises(InputError, match=r"expected a folder of images, or a file that ends in '\.npz'"):
        load(csv_text(tmp_path / "t.xlsx", "x"))


# numpy


@pytest.mark.parametrize(
    ("keys", "extra"),
    [
        (("x_train", "y_train", "x_test", "y_test"), {}),
        (("train_images", "train_labels", "test_images", "test_labels"), {}),
        (("X_train", "Y_train", "X_test", "Y_test"), {"classes": np.array([f"digit {k}" for k in range(10)])}),
    ],
)
def test_npz_with_its_own_split(tmp_path, keys, extra):
    images, labels = (DIGITS.images * 15).astype(np.uint8), DIGITS.target
    arrays = dict(zip(keys, (images[:1500], labels[:1500, None], images[1500:], labels[1500:, None]), strict=True))
    np.savez(tmp_path / "d.npz", **arrays, **extra)
    data = load(tmp_path / "d.npz")
    assert torch.equal(data.test.inputs[:, 0], torch.from_numpy(images[1500:]))
    assert data.test.targets.tolist() == labels[1500:].tolist()
    assert data.classes[3] == ("digit 3" if extra else "3")


@pytest.mark.parametrize("channels_last", [False, True])
def test_npz_without_a_split_and_with_colours(tmp_path, channels_last):
    images = np.stack([DIGITS.images, DIGITS.images.transpose(0, 2, 1), 16 - DIGITS.images], axis=1)
    given = images.transpose(0, 2, 3, 1) if channels_last else images
    np.savez(tmp_path / "d.npz", images=given, labels=np.array(["n" + str(k) for k in DIGITS.target]))
    data = load(tmp_path / "d.npz")
    assert data.shape == (3, 8, 8)
    assert data.train.inputs.dtype == torch.float32
    assert data.classes == tuple(f"n{k}" for k in range(10))
    assert len(data.test) == round(0.2 * 1797)
    assert {x.numpy().tobytes() for x in data.test.inputs} <= {x.tobytes() for x in images.astype(np.float32)}


def test_npy_with_labels_beside_it_or_named(tmp_path):
    np.save(tmp_path / "X.npy", IRIS.data)
    with pytest.raises(
        InputError,
        match=r"expected labels for these inputs; name their file with --labels .*, or save them in the same folder as y\.npy",
    ):
        load(tmp_path / "X.npy")
    np.save(tmp_path / "species.npy", np.array(SPECIES))
    np.save(tmp_path / "y.npy", IRIS.target.astype(np.float64))
    assert load(tmp_path / "X.npy").classes == ("0", "1", "2")
    assert load(tmp_path / "X.npy", labels=tmp_path / "species.npy").classes == tuple(IRIS.target_names)
    with pytest.raises(InputError, match="labels: there is no file"):
        load(tmp_path / "X.npy", labels=tmp_path / "nowhere.npy")


def with_nan(array):
    array = array.copy()
    array[[4, 7], [1, 1]] = np.nan
    array[9, 2] = np.inf
    return array


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": IRIS.data}, "expected inputs and targets, as x and y or x_train and y_train, got 'x'"),
        (
            {"x": with_nan(IRIS.data), "y": IRIS.target},
            r"3 values .* in column 1 \(2\), 2 \(1\), first in sample 4",
        ),
        ({"x": IRIS.data, "y": IRIS.target[:-1]}, r"expected 150 labels, one per input, got shape \(149,\)"),
        ({"x": IRIS.data, "y": IRIS.target + 0.5}, "whole numbers or names, got fractions or NaN"),
        (
            {"x": np.zeros((6, 3, 8, 3)), "y": np.arange(6) % 2},
            r"height and width larger than that, got shape \(6, 3, 8, 3\)",
        ),
        ({"x": np.zeros(6), "y": np.arange(6) % 2}, r"got shape \(6,\)"),
        ({"x": np.array(["a"] * 6), "y": np.arange(6) % 2}, "expected numeric inputs"),
        ({"x": IRIS.data, "y": np.array(SPECIES, dtype=object)}, "contains Python objects"),
        (
            {"x": IRIS.data, "y": IRIS.target, "classes": np.array(["a", "b", "c", "d"])},
            "expected one name per class, got 4 names for 3 classes",
        ),
    ],
)
def test_bad_npz(tmp_path, arrays, message):
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "d.npz")


def test_a_table_with_semicolons_is_recognized(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;label\n" + "1;2,5;x\n3;4;y\n" * 3)
    found = load(tmp_path / "t.csv")
    assert found.shape == (2,)
    assert sorted(set(torch.cat([found.train.inputs, found.test.inputs])[:, 1].tolist())) == [2.5, 4.0]


def test_the_line_that_is_not_utf_8_is_named(tmp_path):
    lines = ["a,label", *(f"{k},x" for k in range(5000)), "1,caf\xe9", "2,y"]
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode("latin-1"))
    with (
        pytest.warns(UserWarning, match=r"t\.csv is not UTF-8 \(line 5002\); it is read as Windows-1252"),
        pytest.warns(UserWarning, match="2 classes with one sample"),
    ):
        assert load(tmp_path / "t.csv").classes == ("caf\xe9", "x", "y")
