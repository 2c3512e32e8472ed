"""How near written sentences are to their references: BLEU by sacrebleu, ROUGE by rouge-score. 0 to 100, higher is better."""

from collections.abc import Sequence
from typing import Any

from labelkin._checks import InputError, check_choice
from labelkin._extras import require

UNITS = ("words", "characters")


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str = "13a", lowercase: bool = False
) -> float:
    """Corpus BLEU of sentences with one reference each, as sacrebleu computes it.

    Give sentences as they are written, for sacrebleu's default "13a". `tokenize="none"` takes them as tokens with spaces
    between them: with lower-cased text, what papers report that used multi-bleu.perl.
    """
    _check(hypotheses, references)
    sacrebleu = require("sacrebleu", extra="translate", use="BLEU")
    quiet = {"force": True}  # tokens on purpose, which sacrebleu would warn of
    found = sacrebleu.corpus_bleu(list(hypotheses), [list(references)], tokenize=tokenize, lowercase=lowercase, **quiet)
    return float(found.score)


def rouge(hypotheses: Sequence[str], references: Sequence[str], *, units: str = "words") -> dict[str, float]:
    """ROUGE-1, ROUGE-2 and ROUGE-L, the mean F-measure over sentences.

    `units="characters"` compares characters other than white space: rouge-score's own tokenizer keeps Latin letters and
    digits alone, so that Chinese has 0 whatever is written.
    """
    _check(hypotheses, references)
    check_choice("units", units, UNITS)
    scorer = require("rouge_score.rouge_scorer", extra="translate", use="ROUGE")
    names = ("rouge1", "rouge2", "rougeL")
    by = scorer.RougeScorer(list(names), tokenizer=Characters() if units == "characters" else None)
    found = [by.score(reference, text) for text, reference in zip(hypotheses, references, strict=True)]
    return {name: 100 * sum(score[name].fmeasure for score in found) / len(found) for name in names}


class Characters:
    """A tokenizer for rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        return [character for character in text if not character.isspace()]


def _check(hypotheses: Sequence[Any], references: Sequence[Any]) -> None:
    if len(hypotheses) != len(references) or not len(references):
        raise InputError(
            f"references: expected one for each of {len(hypotheses)} hypotheses, at least one, got {len(references)}."
        )
