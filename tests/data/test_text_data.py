"""Tables of texts, and what becomes of them: the vectors belong to the texts, and only training texts are learned from."""

import csv
import json

import pytest
import torch

from labelkin._checks import InputError
from labelkin.data import TextSplit, load
from labelkin.data._encoders import restored
from labelkin.data._held_out import read_held_out
from labelkin.data._unlabeled import read_unlabeled, sample_format
from support.commands import call, refused
from support.texts import paragraphs, texts

HEADER = ("number", "topic", "body")
LINES = [(i, topic, text) for i, (topic, text) in enumerate(paragraphs())]


def write_csv(path, header=HEADER, lines=LINES):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *lines])
    return path


def write_jsonl(path, header=HEADER, lines=LINES):
    path.write_text("".join(json.dumps(dict(zip(header, line, strict=True))) + "\n" for line in lines))
    return path


def write_parquet(path, header=HEADER, lines=LINES):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = zip(*lines, strict=True)
    parquet.write_table(pyarrow.table({name: list(c) for name, c in zip(header, columns, strict=True)}), path)
    return path


NAMED = ("--text", "body", "--label", "topic")
WRITERS = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "posts.csv")


@pytest.mark.long
@pytest.mark.parametrize("suffix", WRITERS)
def test_a_table_of_texts(tmp_path, suffix):
    data = load(WRITERS[suffix](tmp_path / f"posts{suffix}"), text="body", label="topic", encoder="hashed-tfidf:64")
    assert data.classes == ("cancer", "diabetes", "digits", "iris", "wine")
    assert data.shape == (64,)
    told = {text: topic for topic, text in paragraphs()}
    for split in (data.train, data.test):
        assert [told[text] for text in split.texts] == [data.classes[k] for k in split.targets.tolist()]
    assert sorted(data.train.texts + data.test.texts) == sorted(texts())


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [{"validation_fraction": 0.2}, {"subset": 0.5}, {"classes": ["wine", "iris"]}, {"label_noise": 0.4}, {"seed": 3}],
)
def test_every_vector_is_that_of_its_text(table, options):
    data = load(table, text="body", label="topic", **options)
    fitted = data.train.encoder
    for split in data.splits.values():
        assert isinstance(split, TextSplit)
        assert len(split.texts) == len(split)
        torch.testing.assert_close(split.inputs, torch.cat([fitted.encode([text]) for text in split.texts]))


@pytest.mark.long
def test_only_the_training_split_is_learned_from(tmp_path):
    header = ("split", "label", "text")
    train = [("train", topic, text) for topic, text in paragraphs()]
    seen = []
    for name, text in (("a", texts()[0]), ("b", "aardvark aardvark " + texts()[0] + texts()[-1])):
        path = write_csv(tmp_path / f"{name}.csv", header, [*train, ("test", "wine", text), ("test", "wine", text)])
        seen.append(load(path, encoder="hashed-tfidf").train)
    assert torch.equal(seen[0].inputs, seen[1].inputs)
    assert torch.equal(seen[0].encoder.idf, seen[1].encoder.idf)


def test_a_folder_of_parts(tmp_path):
    write_jsonl(tmp_path / "train.jsonl", lines=LINES[::2])
    write_jsonl(tmp_path / "test.jsonl", lines=LINES[10:40:2])
    data = load(tmp_path, text="body", label="topic")
    assert data.test.texts == tuple(texts()[10:40:2])


def test_one_scale_for_all_features(table):
    data = load(table, text="body", label="topic")
    scaled = data.normalize(data.train.inputs)
    assert scaled.square().mean().item() == pytest.approx(1, rel=1e-4)
    cosine = torch.nn.functional.cosine_similarity
    torch.testing.assert_close(cosine(scaled[0], scaled[1], dim=0), cosine(*data.train.inputs[:2], dim=0))


@pytest.mark.long
def test_texts_without_a_known_word_are_counted(tmp_path):
    odd = [(0, "wine", "Zyxomma!"), (0, "iris", "Qwertzuiop?"), (0, "wine", "?!")]
    parts = {"train.csv": LINES, "test.csv": LINES[:5] + odd}
    for name, lines in parts.items():
        write_csv(tmp_path / name, lines=lines)
    with pytest.warns(UserWarning, match="3 of 8 test texts have no word that hashed-tfidf knows"):
        load(tmp_path, text="body", label="topic")
    write_csv(tmp_path / "test.csv", lines=odd)
    with pytest.raises(InputError, match="knows no word in any of the 3 test texts"):
        load(tmp_path, text="body", label="topic")


def latin(path):
    path.write_bytes(path.read_bytes().replace(b"Fisher", b"F\xefsher", 1))


def emptied(path):
    write_csv(path, lines=[*LINES[:3], (3, "wine", "  "), *LINES[4:], (9, "wine", "")])


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (None, {"text": "bdy"}, r"text: .*posts.csv has no column 'bdy'.* Did you mean 'body'\?"),
        (None, {"text": "body", "label": "topc"}, r"label: .* has no column 'topc'.* Did you mean 'topic'\?"),
        (None, {"encoder": "hashed-tfidf"}, "text: .* has no column 'text'"),
        (None, {"text": "body", "image": "x"}, "image: does not apply to .*; it takes 'text', 'label', 'encoder'"),
        (
            None,
            {"text": "body", "encoder": "word2vec"},
            "encoder: expected hashed-tfidf, hashed-code, hashed-characters, minilm",
        ),
        (emptied, {"text": "body"}, r"line \d+: expected a text in column 'body', .*\(2 empty rows in all\)"),
    ],
)
def test_bad_input(table, change, options, says):
    if change:
        change(table)
    with pytest.raises(InputError, match=says):
        load(table, **{"label": "topic", **options})


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_wrong_encoding_is_named_by_its_byte(tmp_path, suffix):
    path = WRITERS[suffix](tmp_path / f"posts{suffix}")
    latin(path)
    offset = path.read_bytes().index(b"\xef")
    with pytest.raises(InputError, match=rf"not UTF-8 at byte {offset} \(0xef\)"):
        load(path, text="body", label="topic")


def test_new_texts_are_encoded_as_in_training(table, tmp_path):
    data = load(table, text="body", label="topic")
    samples = sample_format(data, table, text="body", label="topic")
    assert restored(samples.encoder).name == "hashed-tfidf"
    folder = tmp_path / "new"
    folder.mkdir()
    for i, text in enumerate(texts()[:3]):
        (folder / f"{i}.txt").write_text(text)
    expected = data.train.encoder.encode(texts())
    files, rows, inputs = next(read_unlabeled([folder, folder / "1.txt"], shape=data.shape, samples=samples))
    assert [file.rpartition("/")[2] for file in files] == ["0.txt", "1.txt", "2.txt", "1.txt"]
    assert rows == [None] * 4
    torch.testing.assert_close(inputs, expected[[0, 1, 2, 1]])
    (found,) = read_unlabeled([write_jsonl(tmp_path / "new.jsonl")], shape=data.shape, samples=samples)
    assert found.rows == list(range(len(LINES)))
    torch.testing.assert_close(found.inputs, expected)
    held = read_held_out(table, shape=data.shape, samples=samples, label="topic")
    torch.testing.assert_close(held.split.inputs, expected)
    with pytest.raises(
        InputError, match=r"expected a text file, a folder of text files, or a file that ends in '\.csv'"
    ):
        read_unlabeled([write_csv(tmp_path / "new.doc")], shape=data.shape, samples=samples)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = tmp_path_factory.mktemp("texts")
    trained = call("train", write_csv(home / "posts.csv"), *NAMED, "--objective", "one-hot", "--out", home / "run")
    assert trained.exit_code == 0, trained.stderr
    return home / "run"


@pytest.mark.long
@pytest.mark.parametrize("suffix", WRITERS)
def test_an_empty_text_gets_no_class(run, tmp_path, suffix):
    new = [(0, "wine", text) for text in ("A red one.", "A white one.", "Both.", " ", "None.", "")]
    table = WRITERS[suffix](tmp_path / f"new{suffix}", lines=new)
    line = 5 if suffix == ".csv" else 4  # after the header
    told = refused("predict", run, table, "-o", tmp_path / "out.csv")
    assert f"new{suffix}, line {line} (row 3): expected a text in column 'body'" in told
    assert "got an empty cell (2 empty rows in all); remove them" in told
    (tmp_path / "letters").mkdir()
    for name, text in (("a", LINES[0][2]), ("b", "\n")):
        (tmp_path / f"letters/{name}.txt").write_text(text)
    assert "b.txt: the file contains no text" in refused(
        "predict", run, tmp_path / "letters", "-o", tmp_path / "out.csv"
    )
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.filterwarnings("default::UserWarning")
def test_texts_without_a_known_word_are_said(run, tmp_path):
    write_csv(tmp_path / "new.csv", lines=[*LINES[:3], (0, "wine", "Zyxomma!"), (0, "iris", "Qwertzuiop?")])
    told = call("predict", run, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert told.stdout == f"Wrote 5 predictions to {tmp_path / 'out.csv'}\n"
    assert "Note: 2 of 5 texts have no word that hashed-tfidf knows" in told.stderr
    write_csv(tmp_path / "whole.csv", lines=[*LINES, (0, "wine", "Zyxomma!")])
    measured = call("evaluate", run, tmp_path / "whole.csv")
    assert f"1 of {len(LINES) + 1} texts have no word that hashed-tfidf knows" in measured.stderr


@pytest.mark.long
@pytest.mark.filterwarnings("default:.*the run was trained on")
def test_the_commands(table, tmp_path):
    """Trained to vectors from a file, then measured on another table and asked for new texts."""
    vectors = write_csv(tmp_path / "vectors.csv", ("class", *"abcde"), [(t, *v) for t, v in one_hot()])
    run = tmp_path / "run"
    options = ["--text", "body", "--label", "topic", "--test", "0.1", "--epochs", "30", "--batch-size", "16"]
    method = ["--objective", "static-labels", "--set", f"static-labels.vectors={vectors}", "--backbone", "text-head"]
    trained = call("train", table, *options, *method, "--out", run)
    assert trained.exit_code == 0, trained.stderr
    vectors.unlink()  # the run keeps what it was built from
    other = write_jsonl(tmp_path / "other.jsonl", ("body", "label"), [(text, topic) for topic, text in paragraphs()])
    measured = json.loads(call("evaluate", run, other, "--json").stdout)
    assert measured["samples"] == len(LINES)
    assert measured["accuracy"] > 0.85  # it was trained on 44 of the 49
    call("predict", run, table, "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        predicted = [row["class"] for row in csv.DictReader(file)]
    right = sum(found == topic for found, (topic, _) in zip(predicted, paragraphs(), strict=True))
    assert right / len(LINES) == pytest.approx(measured["accuracy"])
    assert "Did you mean 'body'" in refused(
        "train", table, "--text", "bdy", "--label", "topic", "--objective", "one-hot"
    )


def one_hot():
    return [(topic, torch.eye(5)[k].tolist()) for k, topic in enumerate(sorted({topic for topic, _ in paragraphs()}))]
