"""Parallel corpora: sentences, tokens and vocabularies."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count, counted

HYPHEN = "@-@"  # a hyphen inside a word, as the Moses tokenizer writes it with -a, so that it can be restored
CLITIC = r"['’](?:s|re|ve|ll|d|m|t)\b"
PIECES = re.compile(
    rf"(?P<hyphen>(?<=\w)-(?=\w))|\d+(?:[.,]\d+)+|{CLITIC}|\w+(?={CLITIC})|\w+['’](?=\w)|\w+|[^\w\s]", re.IGNORECASE
)
NO_SPACE_BEFORE = re.compile(rf" ([.,;:!?%)\]}}]|{CLITIC})", re.IGNORECASE)
NO_SPACE_AFTER = re.compile(r"([(\[{]|\w['’]) ")


class Tokenizer(NamedTuple):
    """A pair of functions that split a text into tokens and join them again."""

    split: Callable[[str], list[str]]
    join: Callable[[Sequence[str]], str]


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation.

    >>> " ".join(split_words("a man's t-shirt."))
    "a man 's t @-@ shirt ."
    >>> split_words("l'homme")
    ["l'", 'homme']
    """
    return [HYPHEN if found.lastgroup == "hyphen" else found.group() for found in PIECES.finditer(text)]


def join_words(tokens: Sequence[str]) -> str:
    """Join tokens to a sentence; quotation marks keep the spaces around them.

    >>> join_words(["a", "man", "'s", "t", "@-@", "shirt", "."])
    "a man's t-shirt."
    """
    text = " ".join(tokens).replace(f" {HYPHEN} ", "-")
    return NO_SPACE_AFTER.sub(r"\1", NO_SPACE_BEFORE.sub(r"\1", text))


def split_characters(text: str) -> list[str]:
    """Split a text into characters without white space, as suits Chinese."""
    return [character for character in text if not character.isspace()]


TOKENIZERS: dict[str, Tokenizer] = {
    "words": Tokenizer(split_words, join_words),
    "space": Tokenizer(str.split, " ".join),  # already tokenized, with spaces between the tokens
    "characters": Tokenizer(split_characters, "".join),
}


END, UNKNOWN = 0, 1  # END also starts a sentence; padding needs no separate word, because its weight is 0
SPECIAL = ("</s>", "<unk>")


class Vocabulary:
    """The words of a language by position; the first two are the end of a sentence and the unknown word.

    Args:
        words: The words, in order.

    Example:
        >>> from labelkin.translate import Vocabulary
        >>> vocabulary = Vocabulary(["cat", "dog"])
        >>> len(vocabulary), vocabulary.encode(["dog", "bird"])
        (4, [3, 1])
        >>> vocabulary.decode([2, 3, 0])
        ['cat', 'dog']
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIAL, *(word for word in words if word not in SPECIAL))
        self._positions = {word: position for position, word in enumerate(self.words)}

    @classmethod
    def of(
        cls, sentences: Iterable[Sequence[str]], *, min_count: int = 1, max_words: int | None = None
    ) -> "Vocabulary":
        """Build a vocabulary from sentences.

        Args:
            sentences: Sentences as lists of tokens.
            min_count: Leave out words that occur less often.
            max_words: Keep only this many of the most frequent words; ties are sorted alphabetically.
        """
        check_count("min_count", min_count)
        if max_words is not None:
            check_count("max_words", max_words)
        counts = Counter(token for sentence in sentences for token in sentence)
        kept = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
        found = cls(kept[:max_words])
        if len(found) == len(SPECIAL):
            most = max(counts.values(), default=0)
            raise InputError(
                f"min_count: no word occurs {counted(min_count, 'time')} (the most frequent one occurs "
                f"{counted(most, 'time')}); use a lower number."
            )
        return found

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the positions of tokens, without the end; an end token inside a sentence becomes the unknown word."""
        return [self._positions.get(token, UNKNOWN) or UNKNOWN for token in tokens]

    def decode(self, positions: Iterable[int]) -> list[str]:
        """Return the words up to the end of the sentence."""
        tokens = []
        for position in positions:
            if position == END:
                break
            tokens.append(self.words[position])
        return tokens


Texts = tuple[list[str], list[str]]  # source and target sentences


class Language(NamedTuple):
    """One side of a corpus: converts sentences to positions and back."""

    vocabulary: Vocabulary
    tokens: str = "words"
    lower: bool = True

    def split(self, text: str) -> list[str]:
        """Split a text into tokens."""
        return TOKENIZERS[self.tokens].split(text.lower() if self.lower else text)

    def encode(self, text: str) -> list[int]:
        """Return the positions of the tokens of a text."""
        return self.vocabulary.encode(self.split(text))

    def decode(self, positions: Sequence[int]) -> list[str]:
        """Return the tokens at the given positions."""
        return self.vocabulary.decode(positions)

    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens to a text."""
        return TOKENIZERS[self.tokens].join(tokens)

    def normalize(self, text: str) -> str:
        """Return the text in lower case, if the language uses that."""
        return text.lower() if self.lower else text


@dataclass(frozen=True)
class Sentences:
    """Sentences of positions, concatenated, each followed by END.

    Sentence i is `flat[starts[i] : starts[i + 1]]`.
    """

    flat: Tensor
    starts: Tensor

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "Sentences":
        """Concatenate sentences."""
        closed = [np.asarray([*sentence, END]) for sentence in sentences]
        starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in closed])])
        return cls(torch.from_numpy(np.concatenate(closed)), torch.from_numpy(starts))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Tensor:
        """(n,) lengths with END."""
        return self.starts[1:] - self.starts[:-1]


@dataclass(frozen=True)
class Pairs:
    """One part of a corpus: source and target sentences, and the target texts as references."""

    source: Sentences
    target: Sentences
    references: list[str]  # target sentences as text, in lower case if the corpus is

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus, encoded with the vocabularies of its training part.

    Args:
        name: Name of the corpus.
        source: Language of the source sentences.
        target: Language of the target sentences.
        parts: Sentence pairs by part: "train", "test" and optionally "val".

    Example:
        >>> from labelkin.translate import Corpus
        >>> from labelkin.translate._corpus import build_corpus
        >>> corpus = build_corpus("toy", {"train": (["a cat"], ["eine katze"]), "test": (["a dog"], ["ein hund"])})
        >>> isinstance(corpus, Corpus), len(corpus.parts["train"]), corpus.source.vocabulary.words
        (True, 1, ('</s>', '<unk>', 'a', 'cat'))
    """

    name: str
    source: Language
    target: Language
    parts: dict[str, Pairs]


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
    """Build vocabularies from the training part, and encode all parts with them.

    Args:
        name: Name of the corpus.
        texts: Part -> source and target sentences; "train" is required.
        tokens: "words" (words and punctuation), "space" (already tokenized) or "characters".
        lower: Whether to convert the texts to lower case.
        min_count: Leave out words that occur less often, on both sides.
        max_words: Keep only this many of the most frequent words, on both sides.
        max_length: Leave out training pairs with more tokens than this on either side.
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
    """Encode the sentences of one part."""
    return Pairs(
        Sentences.of([source.encode(text) for text in sources]),
        Sentences.of([target.encode(text) for text in targets]),
        [target.normalize(text) for text in targets],
    )


def _short(source: Language, target: Language, texts: Texts, most: int) -> Pairs:
    """Encode the training pairs that have at most `most` tokens on both sides."""
    kept = [pair for pair in zip(*texts, strict=True) if _fits(source, pair[0], most) and _fits(target, pair[1], most)]
    if not kept:
        raise InputError(
            f"max_length: no training pair has at most {counted(most, 'token')} on both sides; use a larger number."
        )
    return _pairs(source, target, [pair[0] for pair in kept], [pair[1] for pair in kept])


def _fits(language: Language, text: str, most: int) -> bool:
    return len(language.split(text)) <= most
