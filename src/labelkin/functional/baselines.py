"""Baselines of 001: learning with retrospection (Deng & Zhang) and static labels (Chen et al.)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional.cross_entropy import cross_entropy, weighted_sum, without_masked


def retrospection(
    logits: Tensor, target: Tensor, soft: Tensor, recorded: Tensor, *, tau: float, share: Tensor
) -> Tensor:
    """Compute `(1 - b) CE + b tau^2 KL(soft || softmax(logits / tau))` (LWR, Deng & Zhang).

    Samples without recorded probabilities get plain cross entropy.

    Args:
        logits: (..., K) before the softmax.
        target: (...,) class positions.
        soft: (..., K) the sample's own earlier probabilities at temperature `tau`; no gradient reaches them.
        recorded: (...,) bool, whether a sample has earlier probabilities.
        tau: temperature, above 0.
        share: the scalar b.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import retrospection
        >>> logits, soft = torch.zeros(1, 2), torch.tensor([[0.5, 0.5]])
        >>> retrospection(logits, torch.tensor([0]), soft, torch.tensor([True]), tau=5.0, share=torch.tensor(0.5))
        tensor([0.3466])
    """
    hard = cross_entropy(logits, target)
    log_probs = without_masked(F.log_softmax(logits / tau, -1), target)
    divergence = torch.xlogy(soft, soft).sum(-1) - weighted_sum(soft, log_probs)
    return torch.where(recorded, (1 - share) * hard + share * tau**2 * divergence, hard)


def huber_to_vectors(z: Tensor, vectors: Tensor) -> Tensor:
    """Compute the Huber loss (delta 1) between outputs and the vectors of their classes (Chen et al.).

    Args:
        z: (..., D) outputs.
        vectors: (..., D) the vector of each sample's class.

    Returns:
        (...,) one loss per sample, averaged over dimensions.

    Example:
        >>> import torch
        >>> from labelkin.functional import huber_to_vectors
        >>> huber_to_vectors(torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 1.0]]))
        tensor([1.])
    """
    return F.huber_loss(z, vectors, reduction="none", delta=1.0).mean(-1)
