"""The dataset of names by language: what is a text, a class, a side of the split and a family, and the encoder of its names."""

import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from babel import Locale

from labelkin._extras import MissingExtra
from labelkin.data import fingerprint, load
from labelkin.data._encoders import encoder, restored
from labelkin.data._encoders.hashed import pieces_of_words
from labelkin.data._sets import languages


@pytest.fixture
def afresh() -> Iterator[None]:
    languages.rows.cache_clear()
    yield
    languages.rows.cache_clear()


def ancestors(language: str) -> list[str]:
    tree = load("languages").taxonomy
    assert tree is not None
    return [tree.names[node] for node in tree.ancestors(tree.node(language))]


def test_a_text_is_a_name_of_its_language_and_not_the_english_one():
    codes = {language: code for _, language, code in languages.edges() if code}
    english = {name.casefold() for name in languages.names_in("en")}
    found = languages.rows()
    assert "English" not in codes
    known = {
        language: {*locale.territories.values(), *locale.languages.values(), *locale.currencies.values()}
        for language, locale in ((name, Locale.parse(code)) for name, code in codes.items())
    }
    assert all(row.text in known[row.label] and row.text.casefold() not in english for row in found)


def test_every_language_of_the_table_has_150_names_and_a_fifth_is_tested():
    found = languages.rows()
    table = [language for _, language, code in languages.edges() if code]
    assert len(set(table)) == len(table) > 60
    assert Counter(row.label for row in found) == dict.fromkeys(table, 150)
    tested = Counter(row.label for row in found if row.part == "test")
    assert all(24 <= tested[language] <= 45 for language in table), tested.most_common()[
        :3
    ]  # shared names move together


def test_a_name_of_several_languages_is_on_one_side():
    sides: dict[str, set[str]] = {}
    labels: dict[str, set[str]] = {}
    for row in languages.rows():
        sides.setdefault(row.text, set()).add(str(row.part))
        labels.setdefault(row.text, set()).add(row.label)
    assert sum(len(found) > 1 for found in labels.values()) > 300
    assert all(len(found) == 1 for found in sides.values())


def test_the_tree_has_the_families():
    assert ancestors("Danish") == ["language", "Indo-European", "Germanic", "North Germanic", "Danish"]
    assert ancestors("French") == ["language", "Indo-European", "Romance", "French"]
    assert ancestors("Latvian") == ["language", "Indo-European", "Baltic", "Latvian"]
    assert ancestors("Basque") == ["language", "Basque"]
    data = load("languages")
    assert data.taxonomy is not None
    assert data.classes == data.taxonomy.classes
    inner = [len(below) for below in data.taxonomy.children if len(below)]
    assert min(inner) > 1  # a group of one would cost nothing to confuse


def test_the_set_is_known_by_its_content_and_asks_for_its_package(monkeypatch: pytest.MonkeyPatch, afresh: None):
    before = fingerprint("languages")
    assert before.startswith("languages:")
    assert fingerprint("languages") == before
    monkeypatch.setattr(languages, "MOST", 149)
    languages.rows.cache_clear()
    assert fingerprint("languages") != before
    languages.rows.cache_clear()
    monkeypatch.setitem(sys.modules, "babel", None)
    assert fingerprint("languages") == "languages"
    with pytest.raises(MissingExtra, match=r"'languages' needs babel.*pip install 'labelkin\[languages\]'"):
        load("languages")


def test_pieces_of_words_know_where_a_word_begins_and_ends():
    assert sorted(pieces_of_words("Ab c")) == sorted(
        [" ", "a", "b", " ", " a", "ab", "b ", " ab", "ab ", " ab ", " ", "c", " ", " c", "c ", " c "]
    )
    assert pieces_of_words(" ") == []


def test_the_encoder_of_parts_is_scikit_learns_up_to_collisions():
    """With room for all parts, the vectors are those of TfidfVectorizer with the same parts, in another order."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [
        "Frankrike",
        "Frankrig",
        "Frankreich",
        "Sverige",
        "Sverige og Norge",
        "Norge",
        "Noreg",
        "Norwegen",
        "reich",
    ]
    own = encoder("hashed-characters:5000").fitted(texts)
    vectors = own.encode(texts).double().numpy()
    theirs = TfidfVectorizer(analyzer=pieces_of_words, sublinear_tf=True, min_df=2).fit_transform(texts).toarray()
    assert vectors.shape == theirs.shape
    np.testing.assert_allclose(vectors @ vectors.T, theirs @ theirs.T, atol=1e-6)
    again = restored(own.state())
    assert again.name == "hashed-characters:5000"
    assert torch.equal(again.encode(texts), own.encode(texts))
    assert encoder("hashed-characters").name == "hashed-characters"
