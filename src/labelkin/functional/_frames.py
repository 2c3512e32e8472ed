"""Fixed class vectors from tree distances: the hierarchy-aware frame (HAFrame) and the unit sphere (Barz & Denzler)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError
from labelkin.functional._cross_entropy import cross_entropy, is_soft, pick


def frame_similarity(distance: Tensor, gamma: float) -> Tensor:
    """Compute the cosines of a hierarchy-aware frame, `S = (1 - s) exp(-gamma d / max d) + s` (HAFrame, Liang & Davis).

    The offset s is the smallest number in [-1, -1 / (K - 1)] for which S is positive semidefinite, so that classes lie as far
    apart as the tree allows. The authors try 100 values; here s follows from `q`, the sum of the entries of the inverse of
    `E = exp(-gamma d / max d)`: S has a zero eigenvalue at `s = -1 / (q - 1)`.

    Args:
        distance: (K, K) symmetric distances of K >= 2 classes, zero on the diagonal alone.
        gamma: how fast similarity falls with distance, above 0.

    Returns:
        (K, K) cosines in float64, with ones on the diagonal.

    Example:
        >>> import torch
        >>> from labelkin.functional import frame_similarity
        >>> frame_similarity(1 - torch.eye(3), 50.0)  # no structure: the simplex, with cosines of -1 / (K - 1)
        tensor([[ 1.0000, -0.5000, -0.5000],
                [-0.5000,  1.0000, -0.5000],
                [-0.5000, -0.5000,  1.0000]], dtype=torch.float64)
    """
    distance = distance.double()
    decay = torch.exp(-gamma * distance / distance.max())
    factor, failed = torch.linalg.cholesky_ex(decay)
    if int(failed):
        raise InputError(
            "distance: exp(-gamma d / max d) is not positive definite, so no frame has these similarities; "
            "use 'height', 'depth' or 'edges' as the distance, or a larger gamma."
        )
    total = float(torch.cholesky_solve(torch.ones_like(decay[:, :1]), factor).sum())
    offset = max(-1.0, -1.0 / (total - 1.0)) if total > 1 else -1.0
    return ((1 - offset) * decay + offset).fill_diagonal_(1.0)


def frame_vectors(similarity: Tensor) -> Tensor:
    """Compute class vectors whose inner products are given similarities: the symmetric square root of the matrix.

    Of all vectors with these inner products, which differ by a rotation, these need no random numbers, and they follow the
    order of the classes: permuted similarities give permuted rows and columns.

    Args:
        similarity: (K, K) symmetric and positive semidefinite, up to rounding.

    Returns:
        (K, K) vectors W in float64, one per row, with `W W^T = similarity`.

    Example:
        >>> import torch
        >>> from labelkin.functional import frame_vectors
        >>> w = frame_vectors(torch.tensor([[1.0, 0.5], [0.5, 1.0]]))
        >>> w @ w.T
        tensor([[1.0000, 0.5000],
                [0.5000, 1.0000]], dtype=torch.float64)
    """
    values, axes = torch.linalg.eigh(similarity.double())
    rounding = 64 * len(values) * torch.finfo(values.dtype).eps * float(values[-1])
    if float(values[0]) < -1e-6 * float(values[-1]):
        raise InputError(
            f"similarity: expected a positive semidefinite matrix, got an eigenvalue of {float(values[0]):.3g}; "
            "use similarities of distances in a tree."
        )
    roots = torch.where(values > rounding, values.clamp_min(0).sqrt(), 0.0)
    vectors: Tensor = (axes * roots) @ axes.T
    return vectors


def haframe(
    features: Tensor, target: Tensor, vectors: Tensor, similarity: Tensor, *, share: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the loss of HAFrame, `(1 - share) CE(W f, y) + share * sum_k (cos(f, w_k) - S_yk)^2`.

    Args:
        features: (..., K) features f.
        target: class positions (...,) or class probabilities (..., K).
        vectors: (K, K) the frame W, unit rows.
        similarity: (K, K) its cosines S.
        share: weight of the cosine term, in [0, 1].

    Returns:
        Three tensors (...,): the loss, the cross entropy and the cosine term of each sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import haframe
        >>> total, hard, cosine = haframe(torch.tensor([[3.0, 0.0]]), torch.tensor([0]), torch.eye(2), torch.eye(2), share=0.4)
        >>> cosine
        tensor([0.])
    """
    cosines = F.normalize(features, dim=-1) @ vectors.T
    if is_soft(target):  # the expected loss, with the square written out
        squares = target.sum(-1) * cosines.square().sum(-1) + target @ similarity.square().sum(-1)
        cosine = squares - 2 * (cosines * (target @ similarity)).sum(-1)
    else:
        cosine = (cosines - similarity[target]).square().sum(-1)
    hard = cross_entropy(features @ vectors.T, target)
    return (1 - share) * hard + share * cosine, hard, cosine


def cosine_to_vectors(z: Tensor, target: Tensor, vectors: Tensor) -> Tensor:
    """Compute `1 - cos(z, v_y)` for unit vectors of the classes (Barz & Denzler).

    Args:
        z: (..., D) outputs.
        target: class positions (...,) or class probabilities (..., K).
        vectors: (K, D) one unit vector per class.

    Returns:
        (...,) one loss per sample, from 0 to 2.

    Example:
        >>> import torch
        >>> from labelkin.functional import cosine_to_vectors
        >>> cosine_to_vectors(torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.tensor([0, 0]), torch.eye(2))
        tensor([0., 1.])
    """
    cosines = F.normalize(z, dim=-1) @ vectors.T
    if is_soft(target):
        return target.sum(-1) - (target * cosines).sum(-1)
    return 1 - pick(cosines, target)
