"""The label embedding network (003 Eq. 6-17): five terms, three stops."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional.cross_entropy import pick, soft_cross_entropy


class EmbeddingTerms(NamedTuple):
    """One value a sample for each term of 003 Eq. 14, and where the similarity head is right."""

    hard: Tensor  # H(y, z1'), Eq. 7
    soft: Tensor  # H(e', z1'), Eq. 13; the embedding is a constant here
    similarity: Tensor  # H(y, z2'), Eq. 8
    confidence: Tensor  # max(0, z2'_y - alpha)^p, Eq. 12
    embedding: Tensor  # H(z2'', e'), Eq. 11; the similarity head is a constant here
    right: Tensor  # z2 predicts y, the only samples the embedding learns from (App. A)


def embedding_terms(
    z1: Tensor, z2: Tensor, e: Tensor, target: Tensor, *, tau: float, alpha: float, p: float, absolute: bool = False
) -> EmbeddingTerms:
    """The terms for outputs `z1`, `z2` and the embeddings `e = E_y` of the samples' classes, all (..., K) logits.

    The paper states the stop that keeps z2 from the hidden layer, which is the head's; the two here are the released code's.
    `absolute` takes `|z2'_y - alpha|` for the hinge, as the released code for text does.
    """
    predicted = F.log_softmax(z1, -1)
    similar = pick(F.log_softmax(z2, -1), target)
    excess = similar.exp() - alpha
    return EmbeddingTerms(
        hard=-pick(predicted, target),
        soft=-(torch.softmax(e.detach(), -1) * predicted).sum(-1),
        similarity=-similar,
        confidence=excess.abs() if absolute else F.relu(excess).pow(p),
        embedding=soft_cross_entropy(e, torch.softmax(z2.detach() / tau, -1)),
        right=z2.argmax(-1) == target,
    )


def compressed_embedding(a: Tensor, b: Tensor, target: Tensor) -> Tensor:
    """`e = ReLU(A_y B)` (003 Eq. 16) for the classes asked for; the K x K matrix is never made."""
    return F.relu(a[target] @ b)
