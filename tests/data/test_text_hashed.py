"""Hashed TF-IDF against scikit-learn's vectorizer, which keeps a vocabulary and shares no code with it."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from labelkin._checks import InputError
from labelkin.data._encoders import encoder, restored
from support.texts import texts

CORPUS = texts()[10:40]  # in which no two words or pairs share a bucket, so that a vocabulary is the same
PROGRAM = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from support.texts import texts
from labelkin.data._encoders import encoder
vectors = encoder("hashed-tfidf:64").fitted(texts()).encode(texts())
print(hashlib.sha256(vectors.numpy().tobytes()).hexdigest())
"""


def reference(fit, **options):
    return TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2, **options).fit(fit)


def test_with_room_for_all_words_it_is_scikit_learns_tfidf():
    train, other = CORPUS[::2], CORPUS[1::2]
    expected = reference(train).transform(other).toarray()
    found = encoder("hashed-tfidf:65536").fitted(train).encode(other).numpy().astype(np.float64)
    assert found.shape[1] == expected.shape[1]  # the words and pairs in two texts or more
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-6)


def test_a_narrow_one_keeps_what_holds_most_of_the_texts():
    vectorizer = reference(CORPUS)
    weights = vectorizer.transform(CORPUS).toarray()
    names = vectorizer.get_feature_names_out()
    held = (weights**2).sum(0)
    singles, pairs = (
        sorted((k for k, name in enumerate(names) if (" " in name) == pair), key=lambda k: -held[k])
        for pair in (False, True)
    )

    def clear(order, count):
        return held[order[count - 1]] > held[order[count]] + 1e-9

    width = next(w for w in range(24, 200, 4) if clear(singles, w * 3 // 4) and clear(pairs, w // 4))  # no tie
    expected = normalize(weights[:, singles[: width * 3 // 4] + pairs[: width // 4]])
    found = encoder(f"hashed-tfidf:{width}").fitted(CORPUS).encode(CORPUS).numpy()
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-5)


@pytest.mark.long
def test_every_process_gives_the_same_vectors():
    here = encoder("hashed-tfidf:64").fitted(texts()).encode(texts())
    there = subprocess.run(
        [sys.executable, "-c", PROGRAM, os.path.dirname(os.path.dirname(__file__))],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == hashlib.sha256(here.numpy().tobytes()).hexdigest()


@pytest.mark.long
def test_rows_are_unit_vectors_or_zero_and_know_no_neighbour():
    fitted = encoder("hashed-tfidf").fitted(texts())
    odd = ["", "Zyxomma qwertzuiop", "a b c", *texts()[:5]]
    vectors = fitted.encode(odd)
    assert vectors[:3].eq(0).all()
    torch.testing.assert_close(vectors[3:].norm(dim=1), torch.ones(5))
    torch.testing.assert_close(vectors, torch.cat([fitted.encode([text]) for text in odd]))


def test_a_pair_does_not_cross_from_text_to_text():
    fitted = encoder("hashed-tfidf").fitted(["good wine", "iris data"] * 3)
    apart = fitted.encode(["good", "wine"])
    assert apart[0] @ apart[1] == 0
    assert len(fitted.buckets) == 6  # four words, two pairs: "wine iris" is none


def test_its_state_is_the_encoder():
    fitted = encoder("hashed-tfidf:128").fitted(texts())
    again = restored(fitted.state())
    assert again.name == "hashed-tfidf:128"
    assert torch.equal(again.encode(texts()), fitted.encode(texts()))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: encoder("hashed-tfidf").encode(["a"]), "call fitted"),
        (
            lambda: encoder("hashed-tfidf").fitted(["one word", "two things"]),
            "needs training texts with words in common",
        ),
        (lambda: encoder("hashed-tfidf:2"), "at least 4"),
        (lambda: encoder("hashed-tfdf"), "Did you mean 'hashed-tfidf'"),
        (
            lambda: encoder("hashed-tfidf:wide"),
            "expected hashed-tfidf, hashed-code, hashed-characters, minilm, hf:NAME, st:NAME, tokens:NAME or the folder",
        ),
    ],
)
def test_bad_input(make, says):
    with pytest.raises(InputError, match=says):
        make()
