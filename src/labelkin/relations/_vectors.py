"""Between class vectors and similarities, in both directions."""

from typing import Any, Literal

import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number, listed
from labelkin.relations._matrices import ROUNDING, cosines, kin_rows, kin_softmax, read_numbers, read_square

Rule = Literal["clip", "shift", "softmax"]
RULES: tuple[Rule, ...] = ("clip", "shift", "softmax")


def read_vectors(vectors: Any) -> Tensor:
    """Numbers; a word is not looked up here, where no encoder is known."""
    if isinstance(vectors, str):
        raise InputError(
            f"vectors: expected numbers (K, D), got {vectors!r}; labelkin.data.class_vectors({vectors!r}, classes) makes "
            "them of class names or reads them from a file."
        )
    return read_numbers("vectors", vectors)


def embedding(vectors: Any, *, rule: Rule = "clip", temperature: float = 0.1) -> Tensor:
    """Kin by the cosine of given class vectors (K, D): a text encoder's (`labelkin.data.class_vectors`), or learned labels.

    A cosine may be negative, a relation may not; `rule` says what becomes of it before rows are divided by their sum:

    - `"clip"`: `max(0, cos)`. A class with no cosine above 0 is isolated: its row is zero.
    - `"shift"`: `(1 + cos) / 2`. Isolated only where every other class points the opposite way.
    - `"softmax"`: `exp(cos / temperature)`. No class is isolated; a low `temperature` (used here alone) leaves the
      nearest class alone.

    Returns (K, K) float64, entries in [0, 1], zero diagonal. A zero vector has no direction and is refused.

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
    """(K, K) similarities to (K, r) class vectors, so that they can be compared, clustered and drawn as vectors.

    The matrix is made symmetric, its entries are moved and scaled so that they span [0, 1], and of its eigenvalues the
    negative ones are dropped: the Gram matrix of the vectors is the nearest positive semi-definite matrix. `r` is the
    number of eigenvalues above rounding, largest first; each column's entry of largest size is positive.

    Returns float64. A matrix whose entries are all equal tells no classes apart and is refused.

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
