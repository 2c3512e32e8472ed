"""The encoder that is always there: TF-IDF of hashed words and pairs of words, with nothing to download."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count
from labelkin.data.encoders.base import Encoder
from labelkin.data.encoders.words import BUCKETS, bucket_counts

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
