"""BLEU and ROUGE against hand-worked examples."""

import math

import pytest

from labelkin import InputError
from labelkin.translate import bleu, rouge


def test_bleu_is_the_geometric_mean_of_n_gram_precisions():
    """5/6 words, 3/5, 2/4 and 1/3 longer grams are right; both have six tokens."""
    expected = 100 * math.exp(sum(map(math.log, (5 / 6, 3 / 5, 2 / 4, 1 / 3))) / 4)
    assert bleu(["a b c d x f"], ["a b c d e f"], tokenize="none") == pytest.approx(expected)


def test_a_short_text_pays_for_its_brevity():
    found = bleu(["a b c d e"], ["a b c d e f"], tokenize="none")
    assert found == pytest.approx(100 * math.exp(1 - 6 / 5))


def test_the_default_cuts_punctuation_and_minds_capitals():
    assert bleu(["Ein Hund läuft im Park ."], ["Ein Hund läuft im Park."]) == pytest.approx(100)
    assert bleu(["ein hund läuft im park."], ["Ein Hund läuft im Park."]) < 50
    assert bleu(["ein hund läuft im park."], ["Ein Hund läuft im Park."], lowercase=True) == pytest.approx(100)


@pytest.mark.long
def test_rouge_counts_characters_where_asked():
    """Of 4 characters each, 3 are shared; of 3 pairs, 1; the longest common subsequence has 3."""
    found = rouge(["我爱北京"], ["我在北京"], units="characters")
    assert found == pytest.approx({"rouge1": 75.0, "rouge2": 100 / 3, "rougeL": 75.0})
    assert rouge(["我爱北京"], ["我爱北京"]) == {"rouge1": 0.0, "rouge2": 0.0, "rougeL": 0.0}


@pytest.mark.long
def test_rouge_of_words_is_a_mean_over_sentences():
    found = rouge(["the cat sat", "a dog"], ["the cat ran", "a dog"])
    assert found == pytest.approx({"rouge1": (200 / 3 + 100) / 2, "rouge2": 75.0, "rougeL": (200 / 3 + 100) / 2})


@pytest.mark.parametrize("measure", [bleu, rouge])
@pytest.mark.parametrize(("texts", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_each_text_needs_a_reference(measure, texts: list[str], references: list[str]):
    with pytest.raises(InputError, match="references: expected one per hypothesis"):
        measure(texts, references)
