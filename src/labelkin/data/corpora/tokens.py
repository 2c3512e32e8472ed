"""Sentences to tokens and back."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
