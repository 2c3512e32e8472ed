"""Tables as other programs write them: separators, encodings, categories, missing values, classes of one sample."""

import json

import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError
from labelkin.data import load
from labelkin.data._readers.columns import filled, find_categories
from labelkin.data._readers.rows import encoding_of, read_rows, separator_of
from labelkin.runs import RunFolder
from support.commands import call, refused

COLORS = ("red", "blue", "gr\u00fcn")
QUICK = ("--objective", "one-hot", "--epochs", 1, "--batch-size", 16)


def table(path, rows=60, *, sep=",", encoding="utf-8", empty=7, names=("\u00c4pfel", "birne", "kiwi")):
    """Fruits by width (a number), color (a category) and weight, every `empty`-th of which is missing."""
    lines = [sep.join(("width", "color", "weight", "label"))]
    for i in range(rows):
        weight = "" if empty and i % empty == 0 else f"{i % 3 * 2 + i / 100}"
        lines.append(sep.join((f"{i % 3 + i / 50}", COLORS[i % 3], weight, names[i % 3])))
    path.write_bytes("\n".join(lines).encode(encoding))
    return path


def inputs_of(found):
    return torch.cat([found.train.inputs, found.test.inputs]).sort(0).values


@pytest.fixture
def plain(tmp_path):
    return load(table(tmp_path / "plain.csv", empty=0))


@pytest.mark.parametrize(
    ("name", "sep", "encoding"),
    [
        ("t.csv", ";", "utf-8"),
        ("t.csv", "\t", "utf-8"),
        ("t.tsv", "\t", "utf-8"),
        ("t.csv", "|", "utf-8-sig"),
        ("t.csv", ",", "utf-16"),
    ],
)
def test_separators_and_unicode_are_recognized(plain, tmp_path, name, sep, encoding):
    found = load(table(tmp_path / name, sep=sep, encoding=encoding, empty=0))
    assert found.classes == plain.classes
    assert torch.equal(inputs_of(found), inputs_of(plain))


def test_other_encodings_are_said_or_named(plain, tmp_path):
    path = table(tmp_path / "t.csv", encoding="cp1252", empty=0)
    with pytest.warns(UserWarning, match=r"t\.csv is not UTF-8 \(line 2\); it is read as Windows-1252"):
        found = load(path)
    assert found.classes == plain.classes
    other = table(tmp_path / "mac.csv", encoding="mac-roman", empty=0)
    assert load(other, encoding="mac-roman").classes == plain.classes
    with pytest.raises(
        InputError, match="encoding: expected the name of an encoding, such as utf-8 or latin-1, got 'utf-9'"
    ):
        load(path, encoding="utf-9")
    with pytest.raises(
        InputError,
        match=r"not readable as ascii .*; save it as UTF-8, or name its encoding \(--encoding of train and compare\)",
    ):
        load(path, encoding="ascii")
    with pytest.raises(InputError, match="encoding: does not apply to digits"):
        load("digits", encoding="utf-8")


def test_damaged_utf_8_is_not_taken_for_another_encoding(tmp_path):
    path = table(tmp_path / "t.csv")
    content = path.read_bytes().split(b"\n")
    content[4] = content[4].replace("\u00c4".encode(), b"\xc4")
    path.write_bytes(b"\n".join(content))
    with pytest.raises(InputError, match=r"line 5: not readable as UTF-8 \(byte 0xc4\), as other lines are"):
        encoding_of(path)


@pytest.mark.parametrize(
    ("header", "mark"),
    [
        ("a,b", ","),
        ("a;b", ";"),
        ("a\tb", "\t"),
        ("a|b", "|"),
        ("a", ","),
        ('"x,y";b', ";"),
        ("a,b;c", ","),
        ("a;b, c;d", ";"),
    ],
)
def test_the_separator_is_that_of_the_header(header, mark):
    assert separator_of(header) == mark


def test_numbers_with_a_decimal_comma(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;label\n1,5;-2,25e1;x\n")
    assert list(read_rows(tmp_path / "t.csv").rows) == [(2, ["1.5", "-2.25e1", "x"])]
    (tmp_path / "u.csv").write_text('a,label\n"1,5",x\n"2",y\n')
    with pytest.raises(
        InputError, match="expected a number in column 'a', got '1,5'"
    ):  # a thousand, or one and a half?
        load(tmp_path / "u.csv")


# Categories


def test_categories_become_columns_of_0_and_1(tmp_path):
    found = load(table(tmp_path / "t.csv", empty=0), test_fraction=0.5)
    assert found.shape == (5,)  # width, three colors, weight
    for split in (found.train, found.test):
        assert torch.equal(split.inputs[:, 1:4].sum(1), torch.ones(len(split)))
        for row, target in zip(split.inputs, split.targets, strict=True):
            color = {"\u00c4pfel": "red", "birne": "blue", "kiwi": "gr\u00fcn"}[found.classes[target]]
            assert sorted(COLORS)[int(row[1:4].argmax())] == color


def test_what_is_no_category_is_refused_as_before(tmp_path):
    rows = [f"{i},name {i},{'x' if i == 9 else i},{'ab'[i % 2]}" for i in range(20)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,name,b,label", *rows]))
    assert find_categories(path, ["a", "name", "b"], None) == {}
    with pytest.raises(InputError, match="line 2: expected a number in column 'name', got 'name 0'"):
        load(path)
    with pytest.raises(InputError, match="line 11: expected a number in column 'b', got 'x'"):
        load(path, features=["a", "b"])
    mostly = ["x", *["1", "2"] * 9]
    path.write_text("\n".join(["a,label", *(f"{value},{'ab'[i % 2]}" for i, value in enumerate(mostly))]))
    with pytest.raises(InputError, match="line 2: expected a number in column 'a', got 'x'"):
        load(path)


# Missing values


def test_missing_numbers_are_the_mean_of_the_training_samples(tmp_path):
    path = table(tmp_path / "t.csv")
    with pytest.warns(
        UserWarning,
        match=r"9 values missing in column weight \(9\); they are replaced by the mean of the training samples",
    ):
        found = load(path)
    known = [f"{i % 3 * 2 + i / 100}" for i in range(60) if i % 7]
    assert bool(torch.isfinite(inputs_of(found)).all())
    values = np.array(sorted(map(np.float32, known)))
    in_train = [v for v in found.train.inputs[:, 4].tolist() if np.isclose(values, v, atol=1e-6).any()]
    fills = {
        round(v, 4)
        for s in (found.train, found.test)
        for v in s.inputs[:, 4].tolist()
        if not np.isclose(values, v, atol=1e-6).any()
    }
    assert fills == {round(float(np.mean(np.float32(in_train))), 4)}


@pytest.mark.parametrize("mark", ["NA", "n/a", "nan", "NULL", "None", "?", " "])
def test_words_for_a_missing_value(tmp_path, mark):
    (tmp_path / "t.csv").write_text("a,label\n" + f"1,x\n{mark},x\n3,x\n4,y\n5,y\n6,y\n")
    with pytest.warns(UserWarning, match=r"1 value missing in column a \(1\)"):
        assert bool(torch.isfinite(inputs_of(load(tmp_path / "t.csv"))).all())


def test_a_column_that_numbers_the_rows_is_named(tmp_path):
    lines = ["color,id,width,label", *(f"{COLORS[i % 3]},{i},{i % 7},{'ab'[i % 2]}" for i in range(40))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.warns(
        UserWarning, match=r"the values of 'id' number the rows, and it is used as a feature; name the features"
    ):
        load(tmp_path / "t.csv")
    load(tmp_path / "t.csv", features=["id", "width"])  # chosen, so nothing is said
    load(tmp_path / "t.csv", features=["width"])


def test_a_column_without_values_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,label\n" + "1,,x\n2,,y\n" * 3)
    with (
        pytest.warns(UserWarning, match="6 values missing"),
        pytest.raises(InputError, match="got none in column 1 of the training samples"),
    ):
        load(tmp_path / "t.csv")


def test_filling_keeps_what_is_there():
    given = torch.tensor([[1.0, float("nan")], [float("nan"), 4.0]])
    assert filled(given, torch.tensor([7.0, 8.0])).tolist() == [[1.0, 8.0], [7.0, 4.0]]


# Runs on such tables


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*missing in column")
@pytest.mark.filterwarnings("default:.*not seen in training")
@pytest.mark.filterwarnings("default:.*the run was trained on")
def test_a_run_keeps_categories_and_means_and_predicts_with_them(tmp_path):
    path = table(tmp_path / "t.csv", sep=";")
    trained = call("train", path, *QUICK, "--out", tmp_path / "run")
    assert trained.exit_code == 0, trained.stderr
    setup = RunFolder(tmp_path / "run").setup
    assert setup["samples"]["categories"] == {"color": sorted(COLORS)}
    assert setup["samples"]["fill"] == pytest.approx(setup["mean"].tolist())
    new = tmp_path / "new.csv"
    new.write_text("color,weight,width\nred,1,2\npurple,,2\n")
    told = call("predict", tmp_path / "run", new, "-o", tmp_path / "out.csv")
    assert told.exit_code == 0, told.stderr
    assert "1 value of column 'color' not seen in training" in told.stderr
    model = labelkin.load_run(tmp_path / "run")
    weight = setup["samples"]["fill"][4]
    by_hand = torch.tensor([[2, 0, 0, 1, 1], [2, 0, 0, 0, weight]], dtype=torch.float32)
    expected = model.predict(by_hand)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [name in line for name, line in zip(expected.classes, lines[1:], strict=True)] == [True, True]
    evaluated = json.loads(call("evaluate", tmp_path / "run", table(tmp_path / "other.csv"), "--json").stdout)
    assert evaluated["samples"] == 60


@pytest.mark.long
@pytest.mark.filterwarnings("default:.*the run was trained on")
def test_evaluate_takes_data_that_lack_classes(tmp_path):
    assert call("train", table(tmp_path / "t.csv", empty=0), *QUICK, "--out", tmp_path / "run").exit_code == 0
    part = (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "part.csv").write_text(
        "\n".join([part[0], *(line for line in part[1:] if "kiwi" not in line)]), encoding="utf-8"
    )
    told = json.loads(call("evaluate", tmp_path / "run", tmp_path / "part.csv", "--json").stdout)
    assert told["samples"] == 40
    (tmp_path / "more.csv").write_text("\n".join([*part, "1,red,2,fig"]), encoding="utf-8")
    assert "was not trained on the class 'fig'" in refused("evaluate", tmp_path / "run", tmp_path / "more.csv")


def test_a_class_of_one_sample_is_trained_on(tmp_path):
    path = table(tmp_path / "t.csv", empty=0)
    path.write_text(path.read_text(encoding="utf-8") + "\n5,red,1,solo", encoding="utf-8")
    with pytest.warns(UserWarning, match="1 class with one sample, which is trained on and not tested: 'solo'"):
        found = load(path)
    solo = found.classes.index("solo")
    assert int((found.train.targets == solo).sum()) == 1
    assert not (found.test.targets == solo).any()


# Row names, which pandas and R write before the other columns, without a name.


def with_row_names(path, *, start=0, sep=","):
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    lines = [f'""{sep}{first}', *(f"{start + i}{sep}{line}" for i, line in enumerate(rest))]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("sep", [",", ";"])
def test_row_names_are_no_feature(tmp_path, plain, sep):
    found = load(with_row_names(table(tmp_path / "t.csv", empty=0, sep=sep), sep=sep))
    assert torch.equal(inputs_of(found), inputs_of(plain))
    (tmp_path / "hole.csv").write_text("width,,label\n1,2,a\n")
    with pytest.raises(InputError, match=r"hole.csv: columns: expected non-empty strings, got ''"):
        read_rows(tmp_path / "hole.csv")


def test_the_index_of_pandas_in_parquet_is_no_feature(tmp_path, plain):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns, rows = read_rows(table(tmp_path / "t.csv", empty=0))
    cells = {name: [row[i] for _, row in read_rows(tmp_path / "t.csv").rows] for i, name in enumerate(columns)}
    numbers = {name: [float(v) for v in cells[name]] for name in ("width", "weight")}
    index = {"__index_level_0__": list(range(7, 7 + len(list(rows))))}
    parquet.write_table(pyarrow.table({**cells, **numbers, **index}), tmp_path / "t.parquet")
    assert torch.equal(inputs_of(load(tmp_path / "t.parquet")), inputs_of(plain))


@pytest.mark.long
def test_predictions_for_a_table_with_row_names(tmp_path):
    path = table(tmp_path / "t.csv", empty=0)
    assert call("train", path, *QUICK, "--out", tmp_path / "run").exit_code == 0
    for name in ("plain.csv", "named.csv"):
        (tmp_path / name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    with_row_names(tmp_path / "named.csv")
    outputs = []
    for name in ("plain.csv", "named.csv"):
        assert call("predict", tmp_path / "run", tmp_path / name, "-o", tmp_path / "out.csv").exit_code == 0
        outputs.append((tmp_path / "out.csv").read_text().replace(name, "x"))
        (tmp_path / "out.csv").unlink()
    assert outputs[0] == outputs[1]
