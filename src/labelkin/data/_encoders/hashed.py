"""The built-in text encoder: TF-IDF of hashed words and word pairs.

Python's own hash differs from run to run, so words are hashed by BLAKE2b and pairs by mixing the hashes of their words.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Encoder(ABC):
    """Texts in, vectors (n, D) of float32 out; `name` is what a user calls it by."""

    name: str

    def fitted(self, texts: Sequence[str]) -> Self:
        """An encoder that has seen the training texts; one that was trained elsewhere stays as it is."""
        return self

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Tensor:
        """One row a text, in their order."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain values and tensors that `restored` makes the same encoder from."""


BUCKETS = 1 << 20  # of words; pairs of words have as many of their own, above these
WORD = re.compile(r"\w\w+")  # two letters or digits at least, as scikit-learn's vectorizers have it
AT_ONCE = 2048  # texts
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
Hashes = npt.NDArray[np.uint64]


def bucket_counts(texts: Sequence[str]) -> Iterator["csr_array"]:
    """(at most AT_ONCE, 2 BUCKETS) how often each bucket is in each text, part by part."""
    from scipy.sparse import csr_array  # a tenth of a second that only texts should cost

    known: dict[str, int] = {}
    for start in range(0, len(texts), AT_ONCE):
        part = texts[start : start + AT_ONCE]
        words = [[_hash(word, known) for word in WORD.findall(text.lower())] for text in part]
        own = np.repeat(np.arange(len(part)), [len(found) for found in words])
        single = np.fromiter((h for found in words for h in found), dtype=np.uint64, count=len(own))
        within = own[1:] == own[:-1]  # a pair does not reach into the next text
        pairs = _mixed(single[:-1] * GOLDEN + single[1:])[within]
        rows = np.concatenate([own, own[1:][within]])
        buckets = np.concatenate([single % np.uint64(BUCKETS), pairs % np.uint64(BUCKETS) + np.uint64(BUCKETS)])
        ones = np.ones(len(rows), dtype=np.float32)
        counts = csr_array((ones, (rows, buckets.astype(np.int64))), shape=(len(part), 2 * BUCKETS))
        counts.sum_duplicates()
        yield counts


def _hash(word: str, known: dict[str, int]) -> int:
    found = known.get(word)
    if found is None:
        found = known[word] = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
    return found


def _mixed(values: Hashes) -> Hashes:
    """Every bit of the outcome depends on every bit of the input (the last steps of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


NAME = "hashed-tfidf"
WIDTH = 4096
WORDS = 0.75  # of the width, pairs of words the rest (ours: reviews gain by pairs, "not good", and posts by words)
LEAST = 2  # training texts that a bucket must be in: what is in one alone tells nothing about another
Numbers = npt.NDArray[np.float64]


class HashedTfidf(Encoder):
    """`hashed-tfidf`, or `hashed-tfidf:WIDTH`: unit vectors, all zero for a text without a word that was kept.

    A bucket's weight in a text is `(1 + ln tf) (1 + ln((1 + n) / (1 + df)))`, as scikit-learn's TfidfVectorizer has it with
    `sublinear_tf`; n and df come from the texts that it is fitted on. Of the buckets those `width` are kept that hold the
    most of the training texts' squared length once each text has length 1; the usual way, folding all buckets into the
    width with random signs, drowns them in each other at a width that a dense layer can take.
    """

    def __init__(self, width: int = WIDTH, *, buckets: Tensor | None = None, idf: Tensor | None = None) -> None:
        check_count("encoder: the width of hashed-tfidf", width, least=4)
        self.width, self.buckets, self.idf = width, buckets, idf
        self.name = NAME if width == WIDTH else f"{NAME}:{width}"

    def fitted(self, texts: Sequence[str]) -> Self:
        parts = list(bucket_counts(texts))
        found = np.zeros(2 * BUCKETS, dtype=np.int64)
        for counts in parts:
            found += np.bincount(counts.indices, minlength=2 * BUCKETS)
        idf = np.where(found >= LEAST, 1 + np.log((1 + len(texts)) / (1 + found)), 0)
        if not idf.any():
            raise InputError(
                f"encoder: {NAME} can learn no weights from {len(texts)} training texts that have no word in common; give "
                "more texts, or another encoder."
            )
        held = np.zeros(2 * BUCKETS)
        for counts in parts:
            held += _squared_shares(counts, idf)
        words = int(WORDS * self.width)
        kept = np.concatenate([_largest(held[:BUCKETS], words), BUCKETS + _largest(held[BUCKETS:], self.width - words)])
        return type(self)(self.width, buckets=torch.from_numpy(kept), idf=torch.from_numpy(idf[kept]).float())

    def encode(self, texts: Sequence[str]) -> Tensor:
        if self.buckets is None or self.idf is None:
            raise InputError(f"encoder: {NAME} takes its weights from training texts; call fitted(texts) first.")
        column = np.full(2 * BUCKETS, -1)
        column[self.buckets.numpy()] = np.arange(len(self.buckets))
        vectors = torch.zeros(len(texts), len(self.buckets))
        start = 0
        for counts in bucket_counts(texts):
            place = column[counts.indices]
            known = place >= 0
            rows, columns = (torch.from_numpy(found[known]) for found in (start + _rows(counts), place))
            vectors[rows, columns] = torch.from_numpy(1 + np.log(counts.data[known])) * self.idf[columns]
            start += counts.shape[0]
        return torch.nn.functional.normalize(vectors, eps=1e-12)

    def state(self) -> dict[str, Any]:
        return {"name": self.name, "buckets": self.buckets, "idf": self.idf}


def _squared_shares(counts: "csr_array", idf: Numbers) -> Numbers:
    """(2 BUCKETS,) the squared weight of each bucket, summed over texts of length 1."""
    squares = ((1 + np.log(counts.data)) * idf[counts.indices]) ** 2
    rows = _rows(counts)
    lengths = np.bincount(rows, weights=squares, minlength=counts.shape[0])
    shares: Numbers = squares / np.where(lengths > 0, lengths, 1)[rows]
    held: Numbers = np.bincount(counts.indices, weights=shares, minlength=2 * BUCKETS).astype(np.float64)
    return held


def _rows(counts: "csr_array") -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))


def _largest(held: Numbers, count: int) -> npt.NDArray[np.int64]:
    """The places of the `count` largest that are above zero, ascending; the first of equals."""
    order = np.argsort(-held, kind="stable")[:count]
    return np.sort(order[held[order] > 0])
