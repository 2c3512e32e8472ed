"""Texts as counts of hashed words and pairs of words: no vocabulary is kept, and every process counts alike.

Python's own hash differs from run to run, so words are hashed by BLAKE2b and pairs by mixing the hashes of their words.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
