"""The five terms of the label embedding network (003 Eq. 6-17)."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional._cross_entropy import expected, is_soft, pick, soft_cross_entropy, weighted_sum, without_masked


class EmbeddingTerms(NamedTuple):
    """One value per sample for each term of 003 Eq. 14, and where the similarity head is right.

    Example:
        >>> import torch
        >>> from labelkin.functional import EmbeddingTerms, embedding_terms
        >>> z = torch.zeros(2, 3)
        >>> terms = embedding_terms(z, z, z, torch.tensor([0, 1]), tau=2.0, alpha=0.9, p=1.0)
        >>> isinstance(terms, EmbeddingTerms), terms.soft.shape
        (True, torch.Size([2]))
    """

    hard: Tensor  # H(y, z1'), Eq. 7
    soft: Tensor  # H(e', z1'), Eq. 13; the embedding is a constant here
    similarity: Tensor  # H(y, z2'), Eq. 8
    confidence: Tensor  # max(0, z2'_y - alpha)^p, Eq. 12
    embedding: Tensor  # H(z2'', e'), Eq. 11; the similarity head is a constant here
    right: Tensor  # z2 predicts y, the only samples the embedding learns from (App. A); for a soft target, its share


def embedding_terms(
    z1: Tensor, z2: Tensor, e: Tensor, target: Tensor, *, tau: float, alpha: float, p: float, absolute: bool = False
) -> EmbeddingTerms:
    """Compute the five terms of the label embedding network (003 Eq. 7-13), one value per sample each.

    Three gradients are stopped. The paper names the one that keeps z2 from the backbone, which the head applies; the two
    here (no gradient to the embedding in `soft`, none to z2 in `embedding`) are those of the released code.

    For class probabilities t every term is the expected one, `sum_k t_k term(k)` (ours). z2 predicts one class m, so the
    embedding learns in row m alone, with weight `t_m`, which is `right`.

    Args:
        z1: (..., K) logits of the head that predicts.
        z2: (..., K) logits of the similarity head.
        e: (..., K) embeddings `E_y` of the samples' classes, as logits; for class probabilities the whole embedding (K, K).
        target: class positions (...,) or class probabilities (..., K).
        tau: temperature at which z2 teaches the embedding, above 0.
        alpha: confidence of z2 in the true class above which the hinge applies.
        p: power of the hinge, at least 1.
        absolute: use `|z2'_y - alpha|` instead of the hinge, as the released code for text does.

    Returns:
        An `EmbeddingTerms` of tensors (...,).

    Example:
        >>> import torch
        >>> from labelkin.functional import embedding_terms
        >>> z = torch.tensor([[3.0, 0.0]])
        >>> terms = embedding_terms(z, z, torch.eye(2)[:1], torch.tensor([0]), tau=2.0, alpha=0.9, p=1.0)
        >>> terms.hard, terms.right
        (tensor([0.0486]), tensor([True]))
    """
    predicted, similar, guess = F.log_softmax(z1, -1), F.log_softmax(z2, -1), z2.argmax(-1)
    taught = torch.softmax(e.detach(), -1)
    soft = is_soft(target)
    if soft:
        taught, e, right = target @ taught, e[guess], pick(target, guess)
    else:
        right = guess == target
    excess = (similar if soft else pick(similar, target)).exp() - alpha
    confidence = excess.abs() if absolute else F.relu(excess).pow(p)
    return EmbeddingTerms(
        hard=-expected(predicted, target),
        soft=-weighted_sum(taught, without_masked(predicted, target)),
        similarity=-expected(similar, target),
        confidence=weighted_sum(target, confidence) if soft else confidence,
        embedding=soft_cross_entropy(e, torch.softmax(z2.detach() / tau, -1)),
        right=right,
    )


def compressed_embedding(a: Tensor, b: Tensor, target: Tensor) -> Tensor:
    """Compute rows of a low-rank embedding, `e = ReLU(A_y B)` (003 Eq. 16), without the K x K matrix.

    Args:
        a: (K, h) the factor A.
        b: (h, K) the factor B.
        target: (...,) class positions.

    Returns:
        (..., K) one embedding per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import compressed_embedding
        >>> compressed_embedding(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0, -1.0]]), torch.tensor([1]))
        tensor([[2., 0.]])
    """
    return F.relu(a[target] @ b)
