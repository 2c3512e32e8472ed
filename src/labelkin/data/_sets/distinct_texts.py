"""Choose and split texts by the digests of their content, so that the result does not depend on the order of the sources."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256

from labelkin.data._readers.texts import TextRow

TESTED = 0.2  # share of each class's texts in the test split


def split_texts(texts: Mapping[str, Iterable[str]], *, fewest: int, most: int) -> list[TextRow]:
    """Return the rows of a set from the texts of each class.

    A class with fewer than `fewest` different texts is left out; of more than `most`, those with the smallest digests are kept.
    A fifth of each class is the test split. A text that occurs in several classes is in one split only.
    """
    distinct = {label: {sha256(text.encode()).digest(): text for text in found} for label, found in texts.items()}
    kept = {
        label: dict(sorted(found.items())[:most]) for label, found in sorted(distinct.items()) if len(found) >= fewest
    }
    tested = tested_digests(kept.values())
    return [
        TextRow(label, text, "test" if digest in tested else "train")
        for label, found in kept.items()
        for digest, text in found.items()
    ]


def tested_digests(classes: Collection[Collection[bytes]]) -> set[bytes]:
    """Return the digests of the texts in the test split, given those of each class.

    The digest alone decides about a text of several classes. Then each class is filled up to a fifth, in the order of the
    reversed digests, which is independent of the order in which texts were kept.
    """
    copies = Counter(digest for found in classes for digest in found)
    tested = {digest for digest, count in copies.items() if count > 1 and digest[-1] < 256 * TESTED}
    for found in classes:
        left = max(round(TESTED * len(found)) - len(tested.intersection(found)), 0)
        alone = sorted((digest for digest in found if copies[digest] == 1), key=lambda digest: digest[::-1])
        tested.update(alone[:left])
    return tested
