"""Parallel corpora: sentences, tokens and vocabularies."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count

HYPHEN = "@-@"  # one inside a word, as the Moses tokenizer writes it with its option -a, so that it can be put back
CLITIC = r"['’](?:s|re|ve|ll|d|m|t)\b"
PIECES = re.compile(
    rf"(?P<hyphen>(?<=\w)-(?=\w))|\d+(?:[.,]\d+)+|{CLITIC}|\w+(?={CLITIC})|\w+['’](?=\w)|\w+|[^\w\s]", re.IGNORECASE
)
NO_SPACE_BEFORE = re.compile(rf" ([.,;:!?%)\]}}]|{CLITIC})", re.IGNORECASE)
NO_SPACE_AFTER = re.compile(r"([(\[{]|\w['’]) ")


class Tokenizer(NamedTuple):
    split: Callable[[str], list[str]]
    join: Callable[[Sequence[str]], str]


def split_words(text: str) -> list[str]:
    """Words, and punctuation apart: `"a man's t-shirt."` to `a man 's t @-@ shirt .`, `"l'homme"` to `l' homme`."""
    return [HYPHEN if found.lastgroup == "hyphen" else found.group() for found in PIECES.finditer(text)]


def join_words(tokens: Sequence[str]) -> str:
    """The sentence as it is written; quotation marks keep the spaces around them."""
    text = " ".join(tokens).replace(f" {HYPHEN} ", "-")
    return NO_SPACE_AFTER.sub(r"\1", NO_SPACE_BEFORE.sub(r"\1", text))


def split_characters(text: str) -> list[str]:
    """Characters without the space between words, as suits Chinese."""
    return [character for character in text if not character.isspace()]


TOKENIZERS: dict[str, Tokenizer] = {
    "words": Tokenizer(split_words, join_words),
    "space": Tokenizer(str.split, " ".join),  # tokens already, with spaces between them
    "characters": Tokenizer(split_characters, "".join),
}


END, UNKNOWN = 0, 1  # END also begins a sentence; padding needs no word, since its weight is 0
SPECIAL = ("</s>", "<unk>")


class Vocabulary:
    """Words by position. The first two are the end of a sentence and the unknown word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIAL, *(word for word in words if word not in SPECIAL))
        self._positions = {word: position for position, word in enumerate(self.words)}

    @classmethod
    def of(
        cls, sentences: Iterable[Sequence[str]], *, min_count: int = 1, max_words: int | None = None
    ) -> "Vocabulary":
        """Words that occur `min_count` times or more, the `max_words` most frequent of them; equals by alphabet."""
        check_count("min_count", min_count)
        if max_words is not None:
            check_count("max_words", max_words)
        counts = Counter(token for sentence in sentences for token in sentence)
        kept = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
        found = cls(kept[:max_words])
        if len(found) == len(SPECIAL):
            most = max(counts.values(), default=0)
            raise InputError(
                f"min_count: the vocabulary lacks every word, since none occurs {min_count} times (at most {most}); lower it."
            )
        return found

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Positions, without the end; a sign of the end inside a sentence is an unknown word."""
        return [self._positions.get(token, UNKNOWN) or UNKNOWN for token in tokens]

    def decode(self, positions: Iterable[int]) -> list[str]:
        """Words up to the end of the sentence."""
        tokens = []
        for position in positions:
            if position == END:
                break
            tokens.append(self.words[position])
        return tokens


Texts = tuple[list[str], list[str]]  # source and target, line by line


class Language(NamedTuple):
    """How the sentences of one side become positions and back."""

    vocabulary: Vocabulary
    tokens: str = "words"
    lower: bool = True

    def split(self, text: str) -> list[str]:
        return TOKENIZERS[self.tokens].split(text.lower() if self.lower else text)

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.encode(self.split(text))

    def decode(self, positions: Sequence[int]) -> list[str]:
        return self.vocabulary.decode(positions)

    def join(self, tokens: Sequence[str]) -> str:
        return TOKENIZERS[self.tokens].join(tokens)

    def normalize(self, text: str) -> str:
        return text.lower() if self.lower else text


@dataclass(frozen=True)
class Sentences:
    """Sentences of positions end to end, each closed by END; `starts` has one entry more than there are sentences."""

    flat: Tensor
    starts: Tensor

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "Sentences":
        closed = [np.asarray([*sentence, END]) for sentence in sentences]
        starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in closed])])
        return cls(torch.from_numpy(np.concatenate(closed)), torch.from_numpy(starts))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Tensor:
        """(n,) END counted."""
        return self.starts[1:] - self.starts[:-1]


@dataclass(frozen=True)
class Pairs:
    """One part of a corpus."""

    source: Sentences
    target: Sentences
    references: list[str]  # the target sentences as written, lower-cased where the corpus is

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Corpus:
    name: str
    source: Language
    target: Language
    parts: dict[str, Pairs]  # "train", "test" and perhaps "val"


def build_corpus(
    name: str,
    texts: Mapping[str, Texts],
    *,
    tokens: str = "words",
    lower: bool = True,
    min_count: int = 1,
    max_words: int | None = None,
    max_length: int | None = None,
) -> Corpus:
    """Vocabularies from the training part, and all parts in them.

    `tokens` is "words" (punctuation apart), "space" (tokens already) or "characters". `min_count` and `max_words` cut the
    vocabularies of both sides. Training pairs with more than `max_length` tokens on a side are left out.
    """
    check_choice("tokens", tokens, tuple(TOKENIZERS))
    if max_length is not None:
        check_count("max_length", max_length)
    split = TOKENIZERS[tokens].split
    sides = []
    for side in (0, 1):
        words = (split(text.lower() if lower else text) for text in texts["train"][side])
        vocabulary = Vocabulary.of(words, min_count=min_count, max_words=max_words)
        sides.append(Language(vocabulary, tokens, lower))
    parts = {part: _pairs(sides[0], sides[1], *pair) for part, pair in texts.items()}
    if max_length is not None:
        parts["train"] = _short(sides[0], sides[1], texts["train"], max_length)
    return Corpus(name, sides[0], sides[1], parts)


def _pairs(source: Language, target: Language, sources: Sequence[str], targets: Sequence[str]) -> Pairs:
    return Pairs(
        Sentences.of([source.encode(text) for text in sources]),
        Sentences.of([target.encode(text) for text in targets]),
        [target.normalize(text) for text in targets],
    )


def _short(source: Language, target: Language, texts: Texts, most: int) -> Pairs:
    kept = [pair for pair in zip(*texts, strict=True) if _fits(source, pair[0], most) and _fits(target, pair[1], most)]
    if not kept:
        raise InputError(f"max_length: no training pair has at most {most} tokens on both sides; raise it.")
    return _pairs(source, target, [pair[0] for pair in kept], [pair[1] for pair in kept])


def _fits(language: Language, text: str, most: int) -> bool:
    return len(language.split(text)) <= most
