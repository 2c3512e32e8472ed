"""Compare sentences with references: BLEU by sacrebleu, ROUGE by rouge-score; 0 to 100, higher is better."""

from collections.abc import Sequence
from typing import Any

from labelkin._checks import InputError, check_choice
from labelkin._extras import require

UNITS = ("words", "characters")


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> float:
    """Return the corpus BLEU of sentences with one reference each, as sacrebleu computes it.

    Args:
        hypotheses: The sentences to evaluate, as plain text.
        references: One reference per sentence.
        tokenize: A tokenizer of sacrebleu; "13a" is its default. With "none", sentences are tokens separated by spaces, which
            on lower-case text gives the score of multi-bleu.perl, as many papers report.
        lowercase: Whether to ignore case.

    Returns:
        BLEU, from 0 to 100.

    Example:
        >>> from labelkin.translate import bleu
        >>> round(bleu(["the cat sat on the mat"], ["the cat sat on the mat"]), 1)
        100.0
    """
    _check(hypotheses, references)
    sacrebleu = require("sacrebleu", extra="translate", use="BLEU")
    quiet = {"force": True}  # sacrebleu would warn about tokenized text
    found = sacrebleu.corpus_bleu(list(hypotheses), [list(references)], tokenize=tokenize, lowercase=lowercase, **quiet)
    return float(found.score)


def rouge(hypotheses: Sequence[str], references: Sequence[str], *, units: str = "words") -> dict[str, float]:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L, the mean F-measure over sentences.

    Args:
        hypotheses: The sentences to evaluate.
        references: One reference per sentence.
        units: "words", or "characters" to compare all characters except white space. rouge-score's own tokenizer only keeps
            Latin letters and digits, so Chinese text always scores 0 with "words".

    Returns:
        Name -> score, from 0 to 100.

    Example:
        >>> from labelkin.translate import rouge
        >>> rouge(["the cat"], ["the cat"])
        {'rouge1': 100.0, 'rouge2': 100.0, 'rougeL': 100.0}
    """
    _check(hypotheses, references)
    check_choice("units", units, UNITS)
    scorer = require("rouge_score.rouge_scorer", extra="translate", use="ROUGE")
    names = ("rouge1", "rouge2", "rougeL")
    by = scorer.RougeScorer(list(names), tokenizer=Characters() if units == "characters" else None)
    found = [by.score(reference, text) for text, reference in zip(hypotheses, references, strict=True)]
    return {name: 100 * sum(score[name].fmeasure for score in found) / len(found) for name in names}


class Characters:
    """Tokenizer for rouge-score that splits a text into characters."""

    def tokenize(self, text: str) -> list[str]:
        """Return the characters of a text except white space."""
        return [character for character in text if not character.isspace()]


def _check(hypotheses: Sequence[Any], references: Sequence[Any]) -> None:
    if len(hypotheses) != len(references) or not len(references):
        raise InputError(
            f"references: expected one per hypothesis ({len(hypotheses)}) and at least one, got {len(references)}."
        )
