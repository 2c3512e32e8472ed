"""Corpora: files, tokens, vocabularies, and batches of like length."""

import gzip
import os
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from labelkin import InputError
from labelkin.data._sets.sources import is_corpus
from labelkin.translate import Vocabulary, load_corpus
from labelkin.translate._batches import PairBatches
from labelkin.translate._corpus import END, TOKENIZERS, UNKNOWN, build_corpus
from support.requires import SHARED, skip_unless
from support.sentences import ENGLISH, GERMAN, write_corpus


@pytest.mark.parametrize(
    ("kind", "text", "tokens"),
    [
        ("words", "A man's t-shirt, big.", ["A", "man", "'s", "t", "@-@", "shirt", ",", "big", "."]),
        ("words", 'saftig-grünes "Gras" - ja', ["saftig", "@-@", "grünes", '"', "Gras", '"', "-", "ja"]),
        (
            "words",
            "l'homme et 3.5 (ou 1,000) d’eau",
            ["l'", "homme", "et", "3.5", "(", "ou", "1,000", ")", "d’", "eau"],
        ),
        ("space", "ein hund , der läuft", ["ein", "hund", ",", "der", "läuft"]),
        ("characters", "我 爱你。", ["我", "爱", "你", "。"]),
    ],
)
def test_sentences_are_cut(kind: str, text: str, tokens: list[str]):
    assert TOKENIZERS[kind].split(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "a man's t-shirt, big.",
        "l'homme et 3.5 (ou 1,000) d’eau",
        "Ein Boston-Terrier läuft über Gras; gut!",
        "ja - nein",
    ],
)
def test_words_are_put_together_as_they_were(text: str):
    assert TOKENIZERS["words"].join(TOKENIZERS["words"].split(text)) == text


def test_vocabularies_are_cut_by_count_and_by_size():
    sentences = [s.split() for s in ("b b b a a c c d", "d e")]
    assert Vocabulary.of(sentences).words == ("</s>", "<unk>", "b", "a", "c", "d", "e")
    assert Vocabulary.of(sentences, min_count=2).words == ("</s>", "<unk>", "b", "a", "c", "d")
    assert Vocabulary.of(sentences, max_words=2).words == ("</s>", "<unk>", "b", "a")
    with pytest.raises(
        InputError, match=r"no word occurs 4 times \(the most frequent one occurs 3 times\); use a lower number"
    ):
        Vocabulary.of(sentences, min_count=4)


def test_positions_come_back_as_words():
    words = Vocabulary.of([["ein", "hund"]])
    assert words.encode(["ein", "wolf", "</s>", "<unk>", "hund"]) == [2, UNKNOWN, UNKNOWN, UNKNOWN, 3]
    assert words.decode([2, 3, END, 2]) == ["ein", "hund"]


def test_two_files_are_a_corpus(tmp_path: Path):
    corpus = load_corpus(write_corpus(tmp_path), test_fraction=0.2, validation_fraction=0.25)
    sizes = {part: len(pairs) for part, pairs in corpus.parts.items()}
    assert sizes == {"train": 12, "val": 4, "test": 4}
    texts = [text for pairs in corpus.parts.values() for text in pairs.references]
    assert sorted(texts) == sorted(GERMAN)
    again = load_corpus(write_corpus(tmp_path), test_fraction=0.2, validation_fraction=0.25)
    other = load_corpus(write_corpus(tmp_path), test_fraction=0.2, validation_fraction=0.25, seed=1)
    assert again.parts["test"].references == corpus.parts["test"].references != other.parts["test"].references


def test_the_vocabulary_knows_the_training_part_alone(tmp_path: Path):
    corpus = load_corpus(write_corpus(tmp_path), test_fraction=0.3)
    words = {word for text in corpus.parts["train"].references for word in text.split()}
    assert set(corpus.target.vocabulary.words) == words | {"</s>", "<unk>"}


def test_pairs_stay_together(tmp_path: Path):
    corpus = load_corpus(write_corpus(tmp_path), test_fraction=0.2)
    pairs = dict(zip(GERMAN, ENGLISH, strict=True))
    for part in corpus.parts.values():
        for row, reference in enumerate(part.references):
            span = slice(int(part.source.starts[row]), int(part.source.starts[row + 1]))
            expected = corpus.source.encode(pairs[reference])
            assert part.source.flat[span].tolist() == [*expected, END]


def test_a_folder_holds_its_parts_plain_or_packed(tmp_path: Path):
    for part, rows in (("train", slice(0, 12)), ("val", slice(12, 15)), ("test", slice(15, 20))):
        for language, lines in (("en", ENGLISH), ("de", GERMAN)):
            raw = "\r\n".join(lines[rows]).encode()
            if part == "train":
                (tmp_path / f"train.{language}.gz").write_bytes(gzip.compress(raw))
            else:
                (tmp_path / f"{part}.{language}").write_bytes(raw)
    corpus = load_corpus(f"{tmp_path}:de-en")
    assert {part: pairs.references for part, pairs in corpus.parts.items()} == {
        "train": ENGLISH[:12],
        "val": ENGLISH[12:15],
        "test": ENGLISH[15:],
    }
    with pytest.raises(InputError, match=r"test_fraction: does not apply to .*, which has a test part"):
        load_corpus(f"{tmp_path}:de-en", test_fraction=0.1)
    with pytest.raises(InputError, match=r"there is no file '.*train.fr' or train.fr.gz"):
        load_corpus(f"{tmp_path}:fr-en")


def test_options_shape_the_corpus(tmp_path: Path):
    (tmp_path / "a").write_text("Der Hund\nDer Der Der Der\n" * 5, encoding="utf-8")
    names = f"{tmp_path / 'a'}:{tmp_path / 'a'}"
    cased = load_corpus(names, lower=False, max_length=3)
    assert "Der" in cased.target.vocabulary.words
    assert int(cased.parts["train"].target.lengths.max()) == 3  # two words and the end
    letters = load_corpus(names, tokens="characters")
    assert set(letters.target.vocabulary.words) == {"</s>", "<unk>", *"derhun"}
    assert len(load_corpus(names, subset=0.5).parts["train"]) < len(load_corpus(names).parts["train"])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            (b"a\nb\nc\n", b"a\nb\n"),
            r"the same number of lines in .*x and .*y, got 3 and 2; line 3 of .*x has no counterpart",
        ),
        ((b"a\n", b"a\nb\n"), r"got 1 and 2; line 2 of .*y has no counterpart"),
        ((b"a\n\nc\n", b"a\nb\nc\n"), r"x, line 2: expected a sentence, got an empty line"),
        ((b"a\nb\n", b"a\n \t\n"), r"y, line 2: expected a sentence, got an empty line"),
        ((b"a\nstra\xdfe\n", b"a\nb\n"), r"x: expected UTF-8, got byte 0xdf at byte offset 6 \(line 2\); convert"),
        ((b"", b"a\n"), r"x: expected one sentence per line, got an empty file"),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path: Path, files: tuple[bytes, bytes], message: str):
    for name, content in zip("xy", files, strict=True):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_corpus(f"{tmp_path / 'x'}:{tmp_path / 'y'}")


def test_a_broken_archive_is_refused(tmp_path: Path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"a\n" * 100)[:20])
    (tmp_path / "y").write_text("a\n")
    with pytest.raises(InputError, match=r"x.gz: not a complete .gz file"):
        load_corpus(f"{tmp_path / 'x'}:{tmp_path / 'y'}")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("multi30k:en-en", "expected two different ones"),
        ("multi30k:en-it", "expected two of en, de, fr, cs with a hyphen"),
        ("multi3k:en-de", "there is no dataset 'multi3k:en-de'.*Did you mean 'multi30k:en-de'"),
        ("cifar100:corse", "Did you mean 'cifar100:coarse'"),
        ("no/such.en:no/such.de", r"there is no file 'no/such.en' or such.en.gz"),
    ],
)
def test_corpora_that_are_not_there(data: str, message: str):
    assert is_corpus(data)
    with pytest.raises(InputError, match=message):
        load_corpus(data)


@pytest.mark.parametrize("data", ["digits", "cifar100:coarse", "table.csv", "photos/", ":", "a:", ":b"])
def test_other_data_are_no_corpora(data: str):
    assert not is_corpus(data)


def test_too_few_pairs_to_hold_out(tmp_path: Path):
    (tmp_path / "x").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"0.1 of 2 training pairs for 'test' leaves a part without pairs"):
        load_corpus(f"{tmp_path / 'x'}:{tmp_path / 'x'}")


def corpus_pairs():
    return build_corpus("twenty", {"train": (ENGLISH, GERMAN)}).parts["train"]


def test_an_epoch_visits_every_pair_once_and_another_orders_them_anew():
    batches = PairBatches(corpus_pairs(), batch_size=3, shuffle=True, seed=1)
    orders = [[row for batch in batches.epoch(e) for row in batch.index.tolist()] for e in (0, 0, 1)]
    assert len(batches) == 7
    assert sorted(orders[0]) == list(range(20))
    assert orders[0] == orders[1] != orders[2]


def test_an_epoch_goes_on_where_it_stopped():
    batches = PairBatches(corpus_pairs(), batch_size=3, shuffle=True, seed=1)
    whole, rest = list(batches.epoch(2)), list(batches.epoch(2, start=4))
    assert len(rest) == 3
    for ours, wanted in zip(rest, whole[4:], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(ours, wanted, strict=True))


def test_batches_hold_the_sentences_and_padding_weighs_nothing():
    corpus = build_corpus("twenty", {"train": (ENGLISH, GERMAN)})
    for batch in PairBatches(corpus.parts["train"], batch_size=6, shuffle=True).epoch(0):
        for place, row in enumerate(batch.index.tolist()):
            source, target = corpus.source.encode(ENGLISH[row]), corpus.target.encode(GERMAN[row])
            assert batch.lengths[place] == len(source) + 1
            assert batch.source[place, : len(source) + 1].tolist() == [*source, END]
            length = len(target) + 1
            assert batch.targets[place, :length].tolist() == [*target, END]
            assert batch.previous[place, :length].tolist() == [END, *target]
            assert batch.weight[place].tolist() == [1.0] * length + [0.0] * (batch.targets.shape[1] - length)


def test_batches_hold_pairs_of_like_length():
    """All twenty lie in one pool, so no batch's lengths lie within another's."""
    spans = [(int(b.lengths.min()), int(b.lengths.max())) for b in PairBatches(corpus_pairs(), batch_size=4).epoch(0)]
    assert all(later[0] >= earlier[1] for earlier, later in pairwise(spans))
    shuffled = PairBatches(corpus_pairs(), batch_size=4, shuffle=True).epoch(0)
    met = [(int(b.lengths.min()), int(b.lengths.max())) for b in shuffled]
    assert met != sorted(met)
    assert sorted(met) == spans


def test_ranks_share_a_batch():
    pairs = corpus_pairs()
    alone = list(PairBatches(pairs, batch_size=7, shuffle=True).epoch(0))
    ranks = [list(PairBatches(pairs, batch_size=7, shuffle=True, rank=r, world=2).epoch(0)) for r in (0, 1)]
    for whole, *parts in zip(alone, *ranks, strict=True):
        assert len({len(part.index) for part in parts}) == 1
        real = [row for part in parts for row, w in zip(part.index.tolist(), part.weight[:, 0], strict=True) if w > 0]
        assert real == whole.index.tolist()
        assert sum(float(part.weight.sum()) for part in parts) == float(whole.weight.sum())


@pytest.mark.long
@pytest.mark.parametrize("languages", ["en-de", "en-fr", "de-en"])
def test_multi30k_is_known_by_name(languages: str, monkeypatch):
    folders = [Path(os.environ.get("LABELKIN_DATA", "data")), SHARED]
    holding = [folder for folder in folders if (folder / "multi30k").is_dir()]
    skip_unless(bool(holding), "Multi30k", "multi30k")
    monkeypatch.setenv("LABELKIN_DATA", str(holding[0]))
    corpus = load_corpus(f"multi30k:{languages}", min_count=2)
    assert {part: len(pairs) for part, pairs in corpus.parts.items()} == {"train": 29000, "val": 1014, "test": 1000}
