"""The built-in text encoders: TF-IDF of hashed words and word pairs, or of hashed pieces of words.

Words are hashed by BLAKE2b, because Python's own hash differs between processes. Pairs combine the hashes of their words.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, counted

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Encoder(ABC):
    """Interface of an encoder, which maps texts to float32 vectors (n, D); `name` is its name for users."""

    name: str
    gives_ids = False  # whether the values are token ids, which mean nothing as numbers

    def fitted(self, texts: Sequence[str]) -> Self:
        """Return an encoder fitted to the training texts; a pretrained encoder returns itself."""
        return self

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Tensor:
        """Return one vector per text, (n, D)."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return plain values and tensors from which `restored` rebuilds the encoder."""


BUCKETS = 1 << 20  # for words; word pairs have as many, numbered after these
WORD = re.compile(r"\w\w+")  # at least two letters or digits, as in scikit-learn's vectorizers
WITHIN_NAMES = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])")  # where a name in source code has two words
PIECES = (1, 2, 3, 4)  # characters
AT_ONCE = 2048  # texts
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
Hashes = npt.NDArray[np.uint64]


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return WORD.findall(text.lower())


def words_of_code(text: str) -> list[str]:
    """Return the words of source code; names such as `read_line` and `readLine` are two words."""
    return words_of(WITHIN_NAMES.sub(" ", text))


def pieces_of_words(text: str) -> list[str]:
    """Return all parts of 1 to 4 characters of the words of a text in lower case, with a space at the start and end of each."""
    words = [f" {word} " for word in text.lower().split()]
    return [word[at : at + size] for word in words for size in PIECES for at in range(len(word) - size + 1)]


def bucket_counts(texts: Sequence[str], split: Callable[[str], list[str]] = words_of) -> Iterator["csr_array"]:
    """Yield counts (at most AT_ONCE, 2 BUCKETS) of the buckets in each text; `split` returns the words of a text."""
    from scipy.sparse import csr_array  # takes 0.1 s, so it is imported only for texts

    known: dict[str, int] = {}
    for start in range(0, len(texts), AT_ONCE):
        part = texts[start : start + AT_ONCE]
        words = [[_hash(word, known) for word in split(text)] for text in part]
        own = np.repeat(np.arange(len(part)), [len(found) for found in words])
        single = np.fromiter((h for found in words for h in found), dtype=np.uint64, count=len(own))
        within = own[1:] == own[:-1]  # no pair spans two texts
        pairs = _mixed(single[:-1] * GOLDEN + single[1:])[within]
        rows = np.concatenate([own, own[1:][within]])
        buckets = np.concatenate([single % np.uint64(BUCKETS), pairs % np.uint64(BUCKETS) + np.uint64(BUCKETS)])
        ones = np.ones(len(rows), dtype=np.float32)
        counts = csr_array((ones, (rows, buckets.astype(np.int64))), shape=(len(part), 2 * BUCKETS))
        counts.sum_duplicates()
        yield counts


def _hash(word: str, known: dict[str, int]) -> int:
    """Return the hash of a word; `known` is a cache."""
    found = known.get(word)
    if found is None:
        found = known[word] = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
    return found


def _mixed(values: Hashes) -> Hashes:
    """Mix hashes so that every output bit depends on every input bit (the last steps of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


NAME = "hashed-tfidf"
CODE = "hashed-code"
CHARACTERS = "hashed-characters"
WIDTH = 4096
WORDS = 0.75  # share of words in the width, the rest for word pairs; reviews profit from pairs ("not good"), posts from words
LEAST = 2  # number of training texts that must contain a bucket: a word in a single text does not generalize
Numbers = npt.NDArray[np.float64]


class HashedTfidf(Encoder):
    """The encoder `hashed-tfidf` or `hashed-tfidf:WIDTH`: unit vectors, or zeros for a text without any known word.

    The weight of a bucket in a text is `(1 + ln tf) (1 + ln((1 + n) / (1 + df)))`, as in scikit-learn's TfidfVectorizer with
    `sublinear_tf`; n and df come from the training texts. With the training vectors scaled to length 1, the encoder keeps the
    `width` buckets with the largest sum of squared weights. The usual alternative, folding all buckets into `width` columns
    with random signs, causes too many collisions at a width that suits a dense layer.
    """

    family = NAME
    split = staticmethod(words_of)
    words = WORDS

    def __init__(self, width: int = WIDTH, *, buckets: Tensor | None = None, idf: Tensor | None = None) -> None:
        check_count(f"encoder: the width of {self.family}", width, least=4)
        self.width, self.buckets, self.idf = width, buckets, idf
        self.name = self.family if width == WIDTH else f"{self.family}:{width}"

    def fitted(self, texts: Sequence[str]) -> Self:
        parts = list(bucket_counts(texts, self.split))
        found = np.zeros(2 * BUCKETS, dtype=np.int64)
        for counts in parts:
            found += np.bincount(counts.indices, minlength=2 * BUCKETS)
        idf = np.where(found >= LEAST, 1 + np.log((1 + len(texts)) / (1 + found)), 0)
        if not idf.any():
            raise InputError(
                f"encoder: {self.family} needs training texts with words in common, got "
                f"{counted(len(texts), 'text')} without any; add "
                "more texts, or use another encoder."
            )
        held = np.zeros(2 * BUCKETS)
        for counts in parts:
            held += _squared_shares(counts, idf)
        words = int(self.words * self.width)
        kept = np.concatenate([_largest(held[:BUCKETS], words), BUCKETS + _largest(held[BUCKETS:], self.width - words)])
        return type(self)(self.width, buckets=torch.from_numpy(kept), idf=torch.from_numpy(idf[kept]).float())

    def encode(self, texts: Sequence[str]) -> Tensor:
        if self.buckets is None or self.idf is None:
            raise InputError(
                f"encoder: {self.family} is not fitted yet; call fitted(texts) with the training texts first."
            )
        column = np.full(2 * BUCKETS, -1)
        column[self.buckets.numpy()] = np.arange(len(self.buckets))
        vectors = torch.zeros(len(texts), len(self.buckets))
        start = 0
        for counts in bucket_counts(texts, self.split):
            place = column[counts.indices]
            known = place >= 0
            rows, columns = (torch.from_numpy(found[known]) for found in (start + _rows(counts), place))
            vectors[rows, columns] = torch.from_numpy(1 + np.log(counts.data[known])) * self.idf[columns]
            start += counts.shape[0]
        return torch.nn.functional.normalize(vectors, eps=1e-12)

    def state(self) -> dict[str, Any]:
        return {"name": self.name, "buckets": self.buckets, "idf": self.idf}


class HashedCode(HashedTfidf):
    """The encoder `hashed-code` or `hashed-code:WIDTH`, for source code: names are split into their words."""

    family = CODE
    split = staticmethod(words_of_code)


class HashedCharacters(HashedTfidf):
    """The encoder `hashed-characters` or `hashed-characters:WIDTH`, for names and misspelled or mixed words: parts of words."""

    family = CHARACTERS
    split = staticmethod(pieces_of_words)
    words = 1.0  # no pairs: longer parts have their own buckets


def _squared_shares(counts: "csr_array", idf: Numbers) -> Numbers:
    """Return the squared weight of each bucket (2 BUCKETS,), summed over texts scaled to length 1."""
    squares = ((1 + np.log(counts.data)) * idf[counts.indices]) ** 2
    rows = _rows(counts)
    lengths = np.bincount(rows, weights=squares, minlength=counts.shape[0])
    shares: Numbers = squares / np.where(lengths > 0, lengths, 1)[rows]
    held: Numbers = np.bincount(counts.indices, weights=shares, minlength=2 * BUCKETS).astype(np.float64)
    return held


def _rows(counts: "csr_array") -> npt.NDArray[np.int64]:
    """Return the row of each stored value of a sparse matrix."""
    return np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))


def _largest(held: Numbers, count: int) -> npt.NDArray[np.int64]:
    """Return the positions of the `count` largest positive values, ascending; the first of equal values wins."""
    order = np.argsort(-held, kind="stable")[:count]
    return np.sort(order[held[order] > 0])
