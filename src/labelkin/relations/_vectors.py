"""Conversion between class vectors and class similarity."""

from typing import Any, Literal

import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number, listed
from labelkin.relations._matrices import ROUNDING, cosines, kin_rows, kin_softmax, read_numbers, read_square

Rule = Literal["clip", "shift", "softmax"]
RULES: tuple[Rule, ...] = ("clip", "shift", "softmax")


def read_vectors(vectors: Any) -> Tensor:
    """Return class vectors as numbers; names of encoders are refused, because encoders belong to `labelkin.data`."""
    if isinstance(vectors, str):
        raise InputError(
            f"vectors: expected numbers (K, D), got {vectors!r}; labelkin.data.class_vectors({vectors!r}, classes) computes "
            "them from class names or reads them from a file."
        )
    return read_numbers("vectors", vectors)


def embedding(vectors: Any, *, rule: Rule = "clip", temperature: float = 0.1) -> Tensor:
    """Compute a relation from the cosines of class vectors.

    Args:
        vectors: (K, D) class vectors, such as those of a text encoder (`labelkin.data.class_vectors`) or learned labels. A zero
            vector has no direction and is refused.
        rule: How to make cosines non-negative before rows are divided by their sums.
            `"clip"` is `max(0, cos)`; a class without a positive cosine is isolated.
            `"shift"` is `(1 + cos) / 2`; a class is isolated only if all others point in the opposite direction.
            `"softmax"` is `exp(cos / temperature)`; no class is isolated.
        temperature: The temperature of `"softmax"`; a low one leaves only the nearest class.

    Returns:
        (K, K) float64 relation.

    Example:
        >>> from labelkin import relations
        >>> relations.embedding([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]])
        tensor([[0., 1., 0.],
                [1., 0., 0.],
                [0., 0., 0.]], dtype=torch.float64)
    """
    check_choice("rule", rule, RULES)
    check_number("temperature", temperature, low=0, open_low=True)
    given = read_vectors(vectors).double()
    if given.ndim != 2 or len(given) < 2:
        raise InputError(
            f"vectors: expected (K, D), one vector for each of two classes or more, got {tuple(given.shape)}."
        )
    longest = given.abs().amax(-1, keepdim=True)
    zero = (longest == 0).flatten().nonzero().flatten().tolist()
    if zero:
        raise InputError(f"vectors: class {listed(zero)} has a zero vector, which has no direction; leave it out.")
    cosine = cosines(given / longest)
    if rule == "softmax":
        return kin_softmax(cosine / temperature)
    return kin_rows(cosine if rule == "clip" else (1 + cosine) / 2, floor=ROUNDING)


def similarity_to_vectors(similarity: Any) -> Tensor:
    """Compute class vectors whose inner products approximate a similarity matrix.

    The matrix is made symmetric, its entries are scaled to [0, 1], and negative eigenvalues are dropped: the Gram matrix of the
    vectors is the nearest positive semidefinite matrix.

    Args:
        similarity: (K, K) similarities that are not all equal.

    Returns:
        (K, r) float64 vectors. `r` is the number of positive eigenvalues, largest first; in each column the entry of largest
        magnitude is positive.

    Example:
        >>> from labelkin import relations
        >>> relations.similarity_to_vectors([[1.0, 0.0], [0.0, 1.0]]).shape
        torch.Size([2, 2])
    """
    given = read_square("similarity", similarity).double()
    symmetric = (given + given.T) / 2
    low, high = symmetric.min(), symmetric.max()
    if low == high:
        raise InputError(f"similarity: expected entries that differ, got {low.item()} everywhere.")
    values, axes = torch.linalg.eigh((symmetric - low) / (high - low))
    kept = values > len(values) * torch.finfo(values.dtype).eps * values[-1]
    vectors: Tensor = (axes[:, kept] * values[kept].sqrt()).flip(-1)
    heads = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return vectors * heads.sign()
